#!/bin/bash
# run.sh [WORD]...: runs what stage.sh has staged, from the directory it lies in, with PYTHON (python3): all cases of arrays.py, or those that have a
# WORD in their names. Ranks are two processes (OCCL_TEST_RANKS) on the GPUs that there are, one or more. LIMIT: seconds of a case (90). LOG: where all
# output goes (log). Ends with a line "N passed, N failed, N skipped".
here=$(cd "$(dirname "$0")" && pwd)
export OCCL_LIBRARY=$here/liboccl.so.0 PYTHONPATH=$here/python PYTHONUNBUFFERED=1
{
  echo "commit $(cat "$here/commit"), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
  "${PYTHON:-python3}" "$here/test/arrays.py" "$@"
} 2>&1 </dev/null | tee "${LOG:-$here/log}"
exit "${PIPESTATUS[0]}"
