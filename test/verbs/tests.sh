#!/bin/bash
# Runs all tests with the tag `verbs`, each in guests of its own, then those of ranks on several islands over RDMA. `make verbs`
# calls it; TESTS names some of the first, with blanks between them, and leaves out the others.
# What a test needs beside two devices it says by `env`: OCCL_TOPO is run.py's --topo.
set -euo pipefail
cd "$(dirname "$0")/../.."

kernel=$(test/verbs/kernel.sh)
status=0
run() { # --test_env for it..., -- TESTS...
  tools/dev/bazel.sh test --show_progress --show_progress_rate_limit=10 --noshow_loading_progress --build_tests_only \
    --strategy=TestRunner=local --local_test_jobs=1 --nocache_test_results --keep_going --test_env=OCCL_REQUIRE_VERBS=1 \
    --run_under="$PWD/test/verbs/run.py --kernel $kernel --memory 3000 --timeout 800 --" "$@" || status=$?
}

run --test_tag_filters=verbs -- ${TESTS:-//...}
# A guest has one processor: left out are tests of six and more ranks that take it longer than they may, and one whose ranks have
# to meet within 0.3 s.
slow=$(printf "*ManyCallsReuseMemory/%s:" {3..6})*DeadlineOnOneIslandEndsAll*
[ -n "${TESTS:-}" ] || run --test_env=OCCL_NET=verbs --test_timeout=900 --test_filter="-$slow" -- \
  //test/machines:{failure,islands,rendezvous,split,transfer,transfer_failure}_test
exit $status
