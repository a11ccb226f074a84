#!/bin/bash
# stage.sh DIRECTORY [PYTHON]: puts the backend occl, built, and the programs of this folder into a directory that can be carried to a machine with
# GPUs, PyTorch and no build tools; run.sh there runs them. PYTHON: one of the version that runs PyTorch there (this machine's python3), which needs its
# headers here, but no PyTorch. TORCH: the version of PyTorch there (2.11.0). BAZEL: the command with the build's caches; OCCL_LIBRARY and
# OCCL_NCCL_LIBRARY: a liboccl.so.0 and a libnccl.so.2, both with CUDA, that are built already.
set -euo pipefail
cd "$(dirname "$0")/../../.."
destination=$(realpath -m "${1:?usage: stage.sh DIRECTORY [PYTHON]}")
for_python=${2:-}
library=${OCCL_LIBRARY:-}
nccl=${OCCL_NCCL_LIBRARY:-}
if [ -z "$library" ] || [ -z "$nccl" ]; then
  "${BAZEL:-tools/dev/bazel.sh}" build //packaging:liboccl.so.0 //nccl:libnccl.so.2
  library=${library:-bazel-bin/packaging/liboccl.so.0} nccl=${nccl:-bazel-bin/nccl/libnccl.so.2}
fi
python=$(tools/dev/torch_cpu.py "${TORCH:-2.11.0}")
rm -rf "$destination"
mkdir -p "$destination/include" "$destination/python/occl" "$destination/test"
install -m 755 "$library" "$destination/liboccl.so.0"
install -m 755 "$nccl" "$destination/libnccl.so.2"
strip "$destination/liboccl.so.0" "$destination/libnccl.so.2"
install -m 644 runtime/api/occl*.h "$destination/include/"
cp -r python/occl/*.py python/occl/torch "$destination/python/occl/"
cp -r test/torch/{harness,operations,training}.py test/torch/hangs test/torch/gpu "$destination/test/"
find "$destination" -name __pycache__ -prune -exec rm -r {} +
mv "$destination/test/gpu/run.sh" "$destination/run.sh"
rm "$destination/test/gpu/stage.sh"
# From the staged files: the extension is found by what they contain.
OCCL_TORCH_CACHE=$destination/cache OCCL_INCLUDE=$destination/include PYTHONPATH=$destination/python PYTHONDONTWRITEBYTECODE=1 \
  "$python" "$destination/python/occl/torch/build.py" ${for_python:+"$for_python"}
git rev-parse --short HEAD >"$destination/commit"
du -sh "$destination"
