#!/bin/bash
# Builds everything, runs all tests and ends with a line "N passed, N failed". Arguments go to Bazel, e.g. --config=asan; TESTS
# names other tests than all, with blanks between them.
set -uo pipefail
cd "$(dirname "$0")/../.."

events=$(mktemp)
trap 'rm -f "$events"' EXIT
tools/dev/bazel.sh test --keep_going --show_progress --show_progress_rate_limit=10 --noshow_loading_progress \
  --test_summary=none --build_event_json_file="$events" "$@" -- ${TESTS:-//...}
status=$?
python3 tools/dev/test_summary.py "$events" "$status"
