#!/bin/bash
# run.sh [WORD]...: runs what stage.sh has staged, from the directory it lies in: each case of the tests and each program in a process of its own, with
# a limit of LIMIT seconds (60), with 2 ranks and with 4; all of them on the first GPU, those of programs on as many as OCCL_TEST_GPUS says.
# WORDs: only what has one of them in its name. What does not begin within TOTAL seconds (540) is not run. LOG: where all output goes (log).
# Ends with a line "N passed, N failed, N skipped, N not run".
here=$(cd "$(dirname "$0")" && pwd)
log=${LOG:-$here/log}
export LIMIT=${LIMIT:-60} NCCL_NVLS_ENABLE=0
words=("$@")
output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0 failed=0 skipped=0 left=0 failures=()
: >"$log" || exit 2
echo "commit $(cat "$here/commit"), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)" | tee -a "$log"

wanted() {
  local word
  [ ${#words[@]} -eq 0 ] && return 0
  for word in "${words[@]}"; do [[ $1 == *"$word"* ]] && return 0; done
  return 1
}

one() { # name, a pattern of what it prints if it was skipped, command...
  local name=$1 skip=$2 begin=$SECONDS status
  shift 2
  wanted "$name" || return 0
  if [ $SECONDS -gt "${TOTAL:-540}" ]; then
    left=$((left + 1))
    return 0
  fi
  timeout -k 5 $((LIMIT + 10)) "$@" >"$output" 2>&1 </dev/null
  status=$?
  { echo "==== $name: status $status, $((SECONDS - begin)) s" && cat "$output"; } >>"$log"
  if [ $status -ne 0 ]; then
    failed=$((failed + 1)) failures+=("$name")
    echo "FAILED $name: status $status, $((SECONDS - begin)) s"
    grep -v '^\[\|^Note\|^$\|^Running main' "$output" | tail -14 | cut -c1-400
  elif grep -q "$skip" "$output"; then
    skipped=$((skipped + 1))
    echo "SKIPPED $name: $(grep -m1 "$skip" "$output" | cut -c1-200)"
  else
    passed=$((passed + 1))
    echo "passed $name, $((SECONDS - begin)) s"
  fi
}

cases() { # ranks
  local test suite line path=("LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  for test in "$here"/*_test; do
    suite=
    while read -r line; do
      case $line in
      *.) suite=$line ;;
      "" | Running*) ;;
      *) one "$(basename "$test") $suite$line, $1 ranks" 'SKIPPED' \
          env OCCL_TEST_RANKS="$1" "${path[@]}" timeout -k 5 "$LIMIT" "$test" --gtest_filter="$suite$line" ;;
      esac
    done < <(env "${path[@]}" "$test" --gtest_list_tests)
  done
}

programs() { # ranks, program...
  local ranks=$1 program
  shift
  for program in "$@"; do
    one "$program, $ranks ranks" '^SKIPPED' env OCCL_TEST_RANKS="$ranks" "$here/programs/run.sh" "$here" "$program"
  done
}

cases 2
programs=(torch_collectives torch_graph torch_ddp torch_resnet torch_fsdp torch_tensor_parallel torch_pipeline torch_experts torch_memory torch_pool
  transformers_llama accelerate_ddp lightning_ddp cupy_sums jax_psum jax_devices)
programs 2 "${programs[@]}"
cases 4
programs 4 "${programs[@]}"
for name in ${failures[@]+"${failures[@]}"}; do echo "failed: $name"; done | tee -a "$log"
echo "$passed passed, $failed failed, $skipped skipped, $left not run" | tee -a "$log"
[ "$failed" -eq 0 ] && [ "$left" -eq 0 ]
