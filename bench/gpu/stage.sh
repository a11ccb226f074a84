#!/bin/sh
# stage.sh <directory>: builds the slice, its plans and its runner into a directory that can be
# carried to a machine with GPUs and without build tools. BAZEL: the command that builds.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: bench/gpu/stage.sh <directory>" >&2
  exit 2
fi
destination=$1
${BAZEL:-bazel} build //bench/gpu:interpreter_slice //bench/gpu:make_plans //tools/occlc
mkdir -p "$destination/plans"
install -m 755 bazel-bin/bench/gpu/interpreter_slice bench/gpu/run_slice.sh "$destination/"
strip "$destination/interpreter_slice"
bazel-bin/bench/gpu/make_plans "$destination/plans"
# Plans of one thread block a rank come from the compiler; it does not yet spread an all-reduce over
# several.
for ranks in 2 4 8; do
  for pair in one_shot:one_shot two_shot:all_pairs ring:ring; do
    bazel-bin/tools/occlc/occlc compile "algorithms/allreduce/${pair#*:}.coll" -D "ranks=$ranks" \
      -o "$destination/plans/${pair%:*}_${ranks}x1.cbor"
  done
done
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
