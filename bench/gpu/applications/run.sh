#!/bin/bash
# run.sh <ranks> [check] [jacobi|loss|gemm]...: runs what stage.sh has staged, from the directory it lies in: the applications of examples/partitioned
# beside the same written as today, a table each. All results are compared before anything is timed; check: nothing is timed, as where ranks share a
# GPU. NVLink multicast stays off. A size that fails is said, and the next one goes on. LIMIT: seconds for each, 240.
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:?usage: run.sh <ranks> [check] [jacobi|loss|gemm]...}
shift
check=()
[ "${1:-}" != check ] || { check=(check); shift; }
export NCCL_NVLS_ENABLE=0 CUDA_DEVICE_MAX_CONNECTIONS=32
# Copies of NCCL and cuBLAS that come with PyTorch will do.
for folder in nccl cublas cu13; do
  found=$(python3 -c "import importlib; print(list(importlib.import_module('nvidia.$folder').__path__)[0])" 2>/dev/null) &&
    LD_LIBRARY_PATH="$found/lib:${LD_LIBRARY_PATH:-}"
done
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64"
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
echo "commit $(cat "$here/commit"), $ranks ranks, $(nvidia-smi -L | grep -c '^GPU') x $gpu"
[ $# -ne 0 ] || set -- jacobi loss gemm
failed=0
for application in "$@"; do
  if ! timeout -s KILL "${LIMIT:-240}" "$here/gpu_$application" "$ranks" "${check[@]}"; then
    echo "FAILED: $application"
    failed=1
  fi
done
exit $failed
