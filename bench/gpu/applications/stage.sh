#!/bin/bash
# stage.sh <directory>: builds gpu_jacobi, gpu_loss and gpu_gemm and the runner into a directory that can be carried to a machine with GPUs and
# without build tools. BAZEL: the command that builds.
set -euo pipefail
destination=${1:?usage: stage.sh <directory>}
programs=(gpu_jacobi gpu_loss gpu_gemm)
${BAZEL:-bazel} build "${programs[@]/#///bench/gpu/applications:}"
rm -rf "$destination"
mkdir -p "$destination"
install -m 755 "${programs[@]/#/bazel-bin/bench/gpu/applications/}" bench/gpu/applications/run.sh "$destination/"
strip "${programs[@]/#/$destination/}"
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
