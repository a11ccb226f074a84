#!/bin/bash
# stage.sh <directory>: builds the tests of this folder and resident_check into a directory that can be carried to a machine with GPUs and without
# build tools; run.sh there runs them. BAZEL: the command with the build's caches.
set -euo pipefail
destination=${1:?usage: stage.sh <directory>}
bazel=${BAZEL:-bazel}
mapfile -t tests < <($bazel query --output=label 'kind(cc_test, //test/gpu/...)' 2>/dev/null)
$bazel build "${tests[@]}" //runtime/cuda/resident/testing:resident_check
rm -rf "$destination"
mkdir -p "$destination"
for label in "${tests[@]}"; do
  path=${label#//}
  install -m 755 "bazel-bin/${path/://}" "$destination/"
done
install -m 755 bazel-bin/runtime/cuda/resident/testing/resident_check test/gpu/run.sh test/gpu/sanitize.sh "$destination/"
strip "$destination"/*_test "$destination/resident_check"
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
