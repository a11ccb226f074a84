#!/bin/bash
# run.sh [WORD]...: runs what stage.sh has staged, from the directory it lies in, with PYTHON (python3), which has PyTorch: all, or what begins with a
# WORD (case, model, hang, hang/h4). OCCL_TEST_RANKS (2) processes on the GPUs that there are; LIMIT seconds for each (60), TOTAL for all (540).
# LOG: where all output goes (log). Ends with a table and a line "N passed, N failed, N not run".
# run.sh compare [--only COLUMN] [NAME]...: the programs that hang with other libraries, with NCCL, OCCL's libnccl.so.2 and the backend occl (compare.py).
here=$(cd "$(dirname "$0")" && pwd)
log=${LOG:-$here/log}
export LIMIT=${LIMIT:-60} TOTAL=${TOTAL:-540} PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
export OCCL_NCCL_LIBRARY=$here/libnccl.so.2
export OCCL_LIBRARY=$here/liboccl.so.0 OCCL_INCLUDE=$here/include OCCL_TORCH_CACHE=${OCCL_TORCH_CACHE:-$here/cache} PYTHONPATH=$here/python
program=run.py
[ "${1:-}" != compare ] || { program=compare.py && shift; }
{
  echo "commit $(cat "$here/commit"), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
  "${PYTHON:-python3}" "$here/test/gpu/$program" "$@"
} 2>&1 </dev/null | tee "$log"
exit "${PIPESTATUS[0]}"
