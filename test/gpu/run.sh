#!/bin/bash
# run.sh <ranks> [<test>...]: runs what stage.sh has staged, from the directory it lies in, each test with a limit of LIMIT seconds (180), and
# ends with a line "N passed, N failed". Ranks are GPUs if there are so many, else they share them. NVLink multicast stays off.
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:?usage: run.sh <ranks> [<test>...]}
shift
export NCCL_NVLS_ENABLE=0 OCCL_TEST_RANKS=$ranks
echo "commit $(cat "$here/commit"), $ranks ranks, $(nvidia-smi -L | grep -c '^GPU') x $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
[ $# -ne 0 ] || set -- $(cd "$here" && ls ./*_test) resident_check
passed=0 failed=0 skipped=0
for test in "$@"; do
  name=$(basename "$test") log=$(mktemp)
  begin=$SECONDS
  timeout -k 5 "${LIMIT:-180}" "$here/$name" >"$log" 2>&1
  status=$?
  cases=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -1)
  left=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log" | tail -1)
  passed=$((passed + ${cases:-$((status == 0))})) skipped=$((skipped + ${left:-0}))
  echo "$name: status $status, ${cases:-?} cases passed, ${left:-0} skipped, $((SECONDS - begin)) s"
  if [ $status -ne 0 ]; then
    bad=$(grep -c '^\[  FAILED  \].*ms)$' "$log")
    failed=$((failed + (bad > 0 ? bad : 1)))
    grep -A12 -E 'Failure$|FAILED|rror' "$log" | head -60
    tail -15 "$log"
  fi
  rm -f "$log"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
