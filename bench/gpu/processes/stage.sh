#!/bin/bash
# stage.sh <directory> [each|small|large|blocks|started]: builds gpu_collectives, gpu_exchange, gpu_host_time, gpu_started and gpu_training_step, the plans of algorithms/device_plans.tsv and, in
# plans/resident, of algorithms/resident_plans.tsv (each: those
# that it is chosen from; small, large: those for small and large sizes, for `run.sh <ranks> small` and `large`; blocks: all-reduces of 1 to 64
# thread blocks; both others for `run.sh <ranks> each`; started: those for the resident daemon, for `run.sh <ranks> each-ordinary-started`) and the runner into a directory that can be carried to a
# machine with GPUs and without build tools. BAZEL: the command that builds.
set -euo pipefail
destination=${1:?usage: stage.sh <directory> [each|small|large|blocks|started]}
${BAZEL:-bazel} build //bench/gpu/processes:all //bench/gpu:link_patterns //bench/gpu:message_steps //tools/occlc
rm -rf "$destination"
mkdir -p "$destination/plans/resident"
install -m 755 bazel-bin/bench/gpu/processes/{gpu_collectives,gpu_exchange,gpu_host_time,gpu_started,gpu_training_step} bazel-bin/bench/gpu/{link_patterns,message_steps} bench/gpu/processes/run.sh "$destination/"
strip "$destination"/{gpu_collectives,gpu_exchange,gpu_host_time,gpu_started,gpu_training_step,link_patterns,message_steps}

compile() { # <number> <collective> <ranks> <algorithm>[:<parameter>] <instances> <limit> <protocol>
  read -ra options < <(algorithms/compile_plans.py options device "$5" "$6" "$7")
  [ "${4%:*}" = "$4" ] || options+=(-D "${4#*:}")
  bazel-bin/tools/occlc/occlc compile "algorithms/$2/${4%:*}.coll" -D "ranks=$3" "${options[@]}" \
    -o "$destination/plans/$folder$2_$3_$1_${4/:/-}-$7-$5.cbor"
}

compile_table() { # <file>
  while IFS=$'\t' read -r collective ranks algorithm instances limit protocol buffers; do
    [ "$buffers" != ordinary ] || continue
    number=$((number + 1))
    for n in ${RANKS:-2 4 8}; do
      [[ ,$ranks, == *,$n,* ]] || continue
      compile $number "$collective" "$n" "$algorithm" "$instances" "$limit" "$protocol"
    done
  done < <(grep -v '^#' "$1")
}

number=100 folder=
if [ "${2:-}" = each ]; then
  for ranks in ${RANKS:-4}; do
    for collective in allreduce allgather reducescatter broadcast reduce alltoall; do
      for variant in ll-1 ll-4 ll-16 simple-4 simple-16 direct-16 direct-32 direct-64; do
        compile $((number += 1)) $collective $ranks all_pairs "${variant#*-}" - "${variant%-*}"
      done
    done
    for variant in ll-1 ll-2 ll-4 ll-8 simple-4 simple-8; do
      compile $((number += 1)) allreduce $ranks one_shot "${variant#*-}" - "${variant%-*}"
    done
    for instances in 32 64; do
      compile $((number += 1)) allreduce $ranks ring $instances - simple
    done
    for variant in simple-16 direct-64 beside-64; do
      compile $((number += 1)) alltoall $ranks shifted "${variant#*-}" - "${variant%-*}"
    done
    for variant in apart beside; do
      compile $((number += 1)) allgather $ranks shifted 64 - $variant
    done
    for instances in 32 64; do
      compile $((number += 1)) broadcast $ranks scatter_allgather $instances - direct
      compile $((number += 1)) reduce $ranks scatter_gather $instances - direct
    done
    for collective in broadcast reduce; do
      compile $((number += 1)) $collective $ranks chain:chunks=8 32 - simple
    done
  done
elif [ "${2:-}" = small ]; then
  for ranks in ${RANKS:-4}; do
    for variant in ll-1 ll-4 ll-16 ll-32 ll128-4 ll128-32 simple-8; do
      compile $((number += 1)) allreduce $ranks one_shot "${variant#*-}" - "${variant%-*}"
    done
    for collective in allreduce allgather reducescatter broadcast reduce alltoall; do
      for variant in ll-4 ll-32 ll-64 ll128-4 ll128-32 ll128-64 simple-16 direct-32; do
        compile $((number += 1)) $collective $ranks all_pairs "${variant#*-}" - "${variant%-*}"
      done
    done
    for variant in ll-64 ll128-64 direct-64; do
      compile $((number += 1)) broadcast $ranks scatter_allgather "${variant#*-}" - "${variant%-*}"
      compile $((number += 1)) reduce $ranks scatter_gather "${variant#*-}" - "${variant%-*}"
    done
  done
elif [ "${2:-}" = large ]; then
  for ranks in ${RANKS:-4}; do
    for instances in 16 24 32 48 64; do
      compile $((number += 1)) alltoall $ranks shifted $instances - beside
      compile $((number += 1)) allgather $ranks shifted $instances - beside
      compile $((number += 1)) broadcast $ranks scatter_allgather $instances - direct
      compile $((number += 1)) reduce $ranks scatter_gather $instances - direct
      compile $((number += 1)) reducescatter $ranks all_pairs $instances - direct
    done
    for instances in 32 64; do
      compile $((number += 1)) allreduce $ranks ring $instances - simple
      compile $((number += 1)) allreduce $ranks all_pairs $instances - direct
      for collective in allgather reducescatter; do
        compile $((number += 1)) $collective $ranks ring $instances - simple
      done
      for collective in broadcast reduce; do
        compile $((number += 1)) $collective $ranks chain:chunks=1 $instances - chain
        compile $((number += 1)) $collective $ranks chain:chunks=8 $instances - simple
      done
      compile $((number += 1)) allgather $ranks shifted $instances - direct
    done
  done
elif [ "${2:-}" = started ]; then
  for ranks in ${RANKS:-2}; do
    for instances in 8 16 32; do
      for collective in allreduce allgather reducescatter reduce; do
        compile $((number += 1)) $collective $ranks all_pairs $instances - simple
      done
      compile $((number += 1)) allgather $ranks shifted $instances - simple
      compile $((number += 1)) alltoall $ranks shifted $instances - simple
      compile $((number += 1)) broadcast $ranks scatter_allgather $instances - simple
      compile $((number += 1)) reduce $ranks scatter_gather $instances - simple
    done
    for instances in 16 32; do
      compile $((number += 1)) broadcast $ranks chain:chunks=1 $instances - chain
      compile $((number += 1)) reducescatter $ranks all_pairs $instances - chain
      compile $((number += 1)) allreduce $ranks all_pairs $instances - exchange
      compile $((number += 1)) alltoall $ranks shifted $instances - exchange
      compile $((number += 1)) allgather $ranks shifted $instances - exchange
    done
  done
elif [ "${2:-}" = blocks ]; then
  for ranks in ${RANKS:-2 4}; do
    for instances in 1 2 4 8 16 32 64; do
      compile $((number += 1)) allreduce $ranks all_pairs $instances - direct
      compile $((number += 1)) allreduce $ranks ring $instances - simple
    done
  done
else
  compile_table algorithms/device_plans.tsv
  folder=resident/
  compile_table algorithms/resident_plans.tsv
fi
git rev-parse --short HEAD > "$destination/commit"
du -sh "$destination"
