#!/bin/bash
# run.sh [WORD]...: runs what stage.sh has staged, from the directory it lies in, with PYTHON (python3): all cases of arrays.py and triton_kernels.py,
# or those that have a WORD in their names. Ranks are two processes (OCCL_TEST_RANKS) on the GPUs that there are, one or more; Triton's cases need two.
# LIMIT: seconds of a case (90). LOG: where all output goes (log). Each of the two ends with a line "N passed, N failed, N skipped".
here=$(cd "$(dirname "$0")" && pwd)
export OCCL_LIBRARY=$here/liboccl.so.0 OCCL_DEVICE_BITCODE=$here/occl_device.bc PYTHONPATH=$here/python PYTHONUNBUFFERED=1
{
  echo "commit $(cat "$here/commit"), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
  status=0
  for program in "$here"/test/{arrays,triton_kernels}.py; do
    [ ! -e "$program" ] || "${PYTHON:-python3}" "$program" "$@" || status=1
  done
  exit "$status"
} 2>&1 </dev/null | tee "${LOG:-$here/log}"
exit "${PIPESTATUS[0]}"
