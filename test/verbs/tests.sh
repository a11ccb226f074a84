#!/bin/bash
# Runs all tests with the tag `verbs`, each in guests of its own. `make verbs` calls it; TESTS names some, with blanks between them.
# What a test needs beside two devices it says by `env`: OCCL_TOPO is run.py's --topo.
set -euo pipefail
cd "$(dirname "$0")/../.."

kernel=$(test/verbs/kernel.sh)
tools/dev/bazel.sh test --show_progress --show_progress_rate_limit=10 --noshow_loading_progress --build_tests_only \
  --test_tag_filters=verbs --run_under="$PWD/test/verbs/run.py --kernel $kernel --" --test_env=OCCL_REQUIRE_VERBS=1 \
  --strategy=TestRunner=local --local_test_jobs=1 --nocache_test_results --keep_going -- ${TESTS:-//...}
