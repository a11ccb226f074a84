#!/bin/bash
# sanitize.sh <ranks> [<tool>...]: runs some of what stage.sh has staged under tools of compute-sanitizer, memcheck unless others are named, from the
# directory it lies in, each with a limit of LIMIT seconds (30), and ends with a table of what was found. The first row is a kernel that stores to where
# no memory is, which memcheck has to find. Under the sanitizer kernels of one process on one device wait for each other: with a GPU a rank, ranks are
# threads; else they are processes, or share the persistent kernel.
#
# racecheck finds two words that are no races: CudaTeam::isOver, whose accesses barrier 1 separates, which the tool does not take for one, and
# StraightShared::isDone, which a warp polls.
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:?usage: sanitize.sh <ranks> [<tool>...]}
shift
[ $# -ne 0 ] || set -- memcheck
# Nothing is loaded while kernels wait: instrumenting what is loaded then would wait for them.
export NCCL_NVLS_ENABLE=0 OCCL_TEST_RANKS=$ranks CUDA_MODULE_LOADING=EAGER
sanitizer=${COMPUTE_SANITIZER:-$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -1)}
[ -x "$sanitizer" ] || { echo "sanitize.sh: there is no compute-sanitizer; COMPUTE_SANITIZER names it" >&2; exit 2; }
gpus=$(nvidia-smi -L | grep -c '^GPU')
echo "commit $(cat "$here/commit"), $ranks ranks, $gpus GPUs, compute-sanitizer $("$sanitizer" --version | sed -n 's/^Version //p')"

if [ "$gpus" -ge "$ranks" ]; then
  list="stream_order_test --gtest_filter=Plans/StreamOrder.MemoryIsSetBetweenCollectives/*
scaled_test --gtest_filter=Scaled.InPlaceByPlansForTwoBuffers:Scaled.Averages
transfer_test --gtest_filter=Transfers.SizesFromWhichTransfersGoOtherwise:Transfers.ToItself
parts_test --gtest_filter=Parts.MarksOfStreams:Parts.KernelsExchange
started_test --gtest_filter=Started.AllKindsAndCounts"
else
  list="resident_check lines
started_test --gtest_filter=Started.AllKindsAndCounts
in_stream_process_test --gtest_filter=InStreamProcesses.AllCollectivesAreRight
parts_process_test --gtest_filter=PartsInProcesses.ARingIsRight"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
table="" bad=0

# under <tool> <test> <argument>: sets status, passed, seconds, and errors: "" without a summary.
under() {
  local begin=$SECONDS
  # Calls of CUDA that fail and are handled are no errors; the parent of ranks that are processes calls nothing of CUDA.
  timeout -k 5 "${LIMIT:-30}" "$sanitizer" --tool "$1" --target-processes all --require-cuda-init no --report-api-errors no --print-limit 20 \
    "$here/$2" "$3" >"$log" 2>&1
  status=$? seconds=$((SECONDS - begin))
  passed=$(sed -n 's/^\[  PASSED  \] \([1-9][0-9]*\) test.*/\1/p; s/^passed .*/1/p' "$log" | tail -1)
  # One summary, or one for each process: hazards that may be none (warnings) count, too.
  errors=$(sed -n 's/^=\+ ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/^=\+ RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' "$log" |
    awk '{ sum += $1 } END { if (NR) print sum }')
}

# row <tool> <test> <whether it is as it should be> <text>
row() {
  local verdict=PASS
  if ! $3; then
    verdict=FAIL bad=$((bad + 1))
    grep -v '^\[ \(RUN\|      OK\)' "$log" | head -60
  fi
  table+=$(printf '%-10s %-23s %s  %s' "$1" "$2" $verdict "$4")$'\n'
}

under memcheck beside_users_test --gtest_filter=BesideUsers.AnIllegalAccessIsNamedOnAllRanks
if grep -q 'Device not supported' "$log"; then
  echo "sanitize.sh: compute-sanitizer does not support this device or driver" >&2
  exit 2
fi
row memcheck "a planted error" "$([ "${errors:-0}" -gt 0 ] && echo true || echo false)" "${errors:-no} errors found, $seconds s"

for tool in "$@"; do
  while read -r test argument; do
    under "$tool" "$test" "$argument"
    clean=false
    [ $status -eq 0 ] && [ -n "$passed" ] && [ "$errors" = 0 ] && clean=true
    [ $status -ne 124 ] && [ $status -ne 137 ] || status="$status (the limit)"
    row "$tool" "$test" $clean "${errors:-no count of} errors, ${passed:-no} cases passed, status $status, $seconds s"
  done <<<"$list"
done
printf '\n%s%s of these failed\n' "$table" "$bad"
[ "$bad" -eq 0 ]
