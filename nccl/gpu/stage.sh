#!/bin/bash
# stage.sh <directory>: builds libnccl.so.2, the tests of this folder and what runs the programs of test/programs into a directory that can be
# carried to a machine with a GPU and without build tools; run.sh there runs all. BAZEL: the command with the build's caches.
set -euo pipefail
destination=${1:?usage: stage.sh <directory>}
bazel=${BAZEL:-bazel}
mapfile -t tests < <($bazel query --output=label 'kind(cc_test, //nccl/gpu:*)' 2>/dev/null)
[ ${#tests[@]} -ne 0 ] || { echo "stage.sh: no tests; is there a CUDA toolkit?" >&2; exit 1; }
$bazel build "${tests[@]}" //nccl:libnccl.so.2
rm -rf "$destination"
mkdir -p "$destination/programs"
for label in "${tests[@]}"; do
  install -m 755 "bazel-bin/nccl/gpu/${label#*:}" "$destination/"
done
install -m 755 bazel-bin/nccl/libnccl.so.2 nccl/gpu/run.sh "$destination/"
install -m 755 test/programs/*.py test/programs/*.sh "$destination/programs/"
strip "$destination"/*_test "$destination/libnccl.so.2"
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
