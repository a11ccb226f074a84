#!/bin/sh
# stage.sh <directory>: builds the slice, its plans and its runner into a directory that can be
# carried to a machine with GPUs and without build tools. BAZEL: the command that builds.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: bench/gpu/slice/stage.sh <directory>" >&2
  exit 2
fi
destination=$1
${BAZEL:-bazel} build //bench/gpu/slice:interpreter_slice //bench/gpu/plans:make_plans //tools/occlc
mkdir -p "$destination/plans"
install -m 755 bazel-bin/bench/gpu/slice/interpreter_slice bench/gpu/slice/run_slice.sh "$destination/"
strip "$destination/interpreter_slice"
bazel-bin/bench/gpu/plans/make_plans "$destination/plans"
# Each instance of an algorithm is a thread block with a part of the data and a channel of its own.
for ranks in 2 4 8; do
  for pair in one_shot:one_shot two_shot:all_pairs ring:ring direct:all_pairs:--direct; do
    name=${pair%%:*} source=${pair#*:}
    case $source in *:*) option=${source#*:} ;; *) option= ;; esac
    for blocks in 1 2 4 8 16 32 64; do
      # shellcheck disable=SC2086
      bazel-bin/tools/occlc/occlc compile "algorithms/allreduce/${source%:*}.coll" -D "ranks=$ranks" \
        --instances "$blocks" $option -o "$destination/plans/${name}_${ranks}x$blocks.cbor"
    done
  done
done
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
