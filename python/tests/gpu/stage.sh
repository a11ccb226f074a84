#!/bin/bash
# stage.sh DIRECTORY: puts the Python package, its library, and the programs of this folder into a directory that can be carried to a machine with
# GPUs, numpy, PyTorch, CuPy or JAX, and no build tools; run.sh there runs them. BAZEL: the command with the build's caches.
set -euo pipefail
cd "$(dirname "$0")/../../.."
destination=$(realpath -m "${1:?usage: stage.sh DIRECTORY}")
"${BAZEL:-tools/dev/bazel.sh}" build //packaging:liboccl.so.0 //runtime/cuda/bitcode //tools/occlc
rm -rf "$destination"
mkdir -p "$destination/python" "$destination/test"
install -m 755 bazel-bin/packaging/liboccl.so.0 "$destination/"
strip "$destination/liboccl.so.0"
cp -r python/occl "$destination/python/"
rm -r "$destination/python/occl/torch"
find "$destination" -name __pycache__ -prune -exec rm -r {} +
install -m 755 python/tests/gpu/*.py examples/triton/*.py "$destination/test/"
# Without clang 19 there is none, and no case of Triton.
if [ -e bazel-bin/runtime/cuda/bitcode/occl_device.bc ]; then
  install -m 644 bazel-bin/runtime/cuda/bitcode/occl_device.bc "$destination/"
else
  rm "$destination/test/triton_kernels.py"
fi
install -m 755 python/tests/gpu/run.sh "$destination/"
install -m 644 docs/python.md "$destination/test/"
bazel-bin/tools/occlc/occlc compile algorithms/allreduce/ring.coll -D ranks=2 -o "$destination/test/ring.plan.json"
git rev-parse --short HEAD >"$destination/commit"
du -sh "$destination"
