#!/bin/bash
# nccl_tests.sh DIR FOLDER [WORD]...: runs the programs of nccl-tests, FOLDER/*_perf as its `make` leaves them in build/, with DIR/libnccl.so.2
# in the place of NCCL: every one with all types, operations and roots, each result checked (-c 1), in and out of place, then with odd counts,
# blocking, captured in a graph, with a thread for each rank, and with registered buffers. WORDs: only what has one of them in its name, as
# "all_reduce_perf graph". OCCL_TEST_GPUS: ranks, each with a GPU of its own (all GPUs). A run has LIMIT seconds (120), all together TOTAL (1500).
# LOG: where all output goes (log). Fails if a program did not use DIR's library. Ends with a line "N passed, N failed, N not run".
usage="usage: nccl_tests.sh DIR_OF_LIBNCCL FOLDER_OF_NCCL_TESTS [WORD]..."
library=$(readlink -f "${1:?$usage}/libnccl.so.2")
[ -f "$library" ] || { echo "nccl_tests.sh: there is no $1/libnccl.so.2" >&2; exit 2; }
folder=${2:?$usage} log=${LOG:-log}
shift 2
words=("$@")
ranks=${OCCL_TEST_GPUS:-$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')}
[ "$ranks" -gt 0 ] || { echo "nccl_tests.sh: there is no GPU; OCCL_TEST_GPUS says how many ranks" >&2; exit 2; }
compgen -G "$folder/*_perf" >/dev/null || { echo "nccl_tests.sh: there is no program *_perf in $folder" >&2; exit 2; }
notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT
export NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$notes/%p.log NCCL_NVLS_ENABLE=0
passed=0 failed=0 left=0 failures=()
: >"$log" || exit 2

wanted() {
  local word
  [ ${#words[@]} -eq 0 ] && return 0
  for word in "${words[@]}"; do [[ $1 == *"$word"* ]] && return 0; done
  return 1
}

# What is wrong with a run that has ended with a status; nothing if all is well.
wrong() { # status, output
  [ "$1" -eq 0 ] || echo "status $1"
  grep -q '^# Out of bounds values : 0 OK' "$2" || echo "it does not say that all values are right"
  grep -qs "rank 0 of $ranks, device 0" "$notes"/*.log || echo "no communicator of $ranks ranks was made by $library"
}

run() { # program, title, options...
  local name begin=$SECONDS status found
  name="$(basename "$1") $2"
  wanted "$name" || return 0
  if [ $SECONDS -gt "${TOTAL:-1500}" ]; then
    left=$((left + 1))
    return 0
  fi
  rm -f "$notes"/*.log
  LD_PRELOAD=$library timeout -k 5 "${LIMIT:-120}" "$1" -n 2 -w 1 -c 1 "${@:3}" >"$notes/output" 2>&1 </dev/null
  status=$?
  found=$(wrong "$status" "$notes/output")
  { echo "==== $name: ${*:3}, status $status" && cat "$notes/output"; } >>"$log"
  if [ -z "$found" ]; then
    passed=$((passed + 1))
    echo "passed $name, $((SECONDS - begin)) s"
    return 0
  fi
  failed=$((failed + 1)) failures+=("$name")
  echo "FAILED $name (${*:3}): $found"
  grep -v '^#' "$notes/output" | tail -8 | cut -c1-300
  tail -qn 3 "$notes"/*.log 2>/dev/null | cut -c1-400
}

for program in "$folder"/*_perf; do
  run "$program" all -g "$ranks" -d all -o all -r all -b 8 -e 4M -f 16
  run "$program" odd -g "$ranks" -d all -b 1000 -e 3001 -i 667
  run "$program" large -g "$ranks" -b 256M -e 256M
  run "$program" blocking -g "$ranks" -z 1 -b 8 -e 1M -f 32
  run "$program" graph -g "$ranks" -G 3 -b 8 -e 1M -f 32
  run "$program" threads -t "$ranks" -g 1 -b 8 -e 1M -f 32
  run "$program" groups -g "$ranks" -m 4 -b 8 -e 1M -f 32
  run "$program" registered -g "$ranks" -R 1 -b 8 -e 16M -f 32
  run "$program" windows -g "$ranks" -R 2 -b 8 -e 16M -f 32
done
for name in ${failures[@]+"${failures[@]}"}; do echo "failed: $name"; done | tee -a "$log"
echo "$passed passed, $failed failed, $left not run" | tee -a "$log"
[ "$failed" -eq 0 ] && [ "$left" -eq 0 ]
