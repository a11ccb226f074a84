#!/bin/sh
# run_slice.sh <ranks> [check|direct|measure]: runs what stage.sh staged, from the directory it lies in.
# Ranks are GPUs if there are so many, else they share the first one: then nothing is measured.
# bench/report.py --add takes the kernels by hand and NCCL of measure into bench/results (gpus_8).
# Correctness comes first, on small runs under compute-sanitizer too. NVLink multicast stays off.
set -u
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:?usage: run_slice.sh <ranks> [check|direct|measure]}
what=${2:-measure}
slice=$here/interpreter_slice
plans=$here/plans
export NCCL_NVLS_ENABLE=0
failed=0

# A copy of NCCL that comes with PyTorch will do.
nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)/lib
export LD_LIBRARY_PATH="$nccl:${LD_LIBRARY_PATH:-}"

run() { # <seconds> <command...>
  limit=$1
  shift
  timeout -k 5 "$limit" "$@"
  status=$?
  if [ $status -ne 0 ]; then
    echo "FAILED ($status): $*"
    failed=1
  fi
  return $status
}

echo "commit $(cat "$here/commit")"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
gpus=$(nvidia-smi -L | grep -c '^GPU')

if [ "$gpus" -lt "$ranks" ]; then
  mode=one-device
else
  mode=
fi
# shellcheck disable=SC2086
run 150 "$slice" check "$plans" "$ranks" $mode || exit 1
if [ "$what" = check ]; then
  for tool in memcheck racecheck; do
    echo "compute-sanitizer $tool"
    run 120 compute-sanitizer --tool $tool --error-exitcode 9 "$slice" quick-check "$plans" \
      "$ranks" one-device
  done
elif [ -n "$mode" ]; then
  echo "nothing is measured: $gpus GPUs for $ranks ranks"
elif [ "$what" = direct ]; then
  run 170 "$slice" direct "$plans" "$ranks"
  run 60 "$slice" steps "$plans" "$ranks"
else
  run 280 "$slice" measure "$plans" "$ranks"
  run 120 "$slice" protocols "$plans" "$ranks"
  run 60 "$slice" steps "$plans" "$ranks"
fi
exit $failed
