#!/bin/bash
# run.sh <ranks> [table|inplace|each|small|large|training|exchange|links][-bfloat16][-ordinary][-started][-machines]: measures what stage.sh has staged, from the directory it lies in: a table for each
# collective, each plan's result checked before it is timed; ordinary: buffers of cudaMalloc, and in a table plans that
# the library chooses; machines: each rank as on a machine of its own, over TCP on 127.0.0.1; started: with each, ours by the persistent kernel; training: the all-reduces of a step of ResNet-50; exchange: sends and receives. NVLink multicast stays
# off. bench/report.py --add takes what it prints into bench/results: gpus_<ranks>, of training asynchronous. links: what the links of all GPUs carry, by who accesses whom, and a thread block, by the bytes of its steps. COLLECTIVES chooses some; DAEMON_BLOCKS: the resident daemon's thread blocks; OCCL_BENCH_ARENA_MIB: arenaBytes.
here=$(cd "$(dirname "$0")" && pwd)
ranks=${1:?usage: run.sh <ranks> [table|inplace|each|small|large|training|exchange|links][-bfloat16][-ordinary][-started][-machines]}
mode=${2:-table}
export NCCL_NVLS_ENABLE=0
# A copy of NCCL that comes with PyTorch will do.
nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)/lib
export LD_LIBRARY_PATH="$nccl:${LD_LIBRARY_PATH:-}"
echo "commit $(cat "$here/commit"), $ranks x $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
if [ "$mode" = training ]; then
  exec timeout -s KILL "${LIMIT:-50}" "$here/gpu_training_step" "$ranks" 21 "${DAEMON_BLOCKS:-32}" "$here/plans/allreduce_${ranks}"_*.cbor -- \
    "$here/plans/resident/allreduce_${ranks}"_*.cbor
fi
[ "$mode" != exchange ] || exec timeout -s KILL "${LIMIT:-50}" "$here/gpu_exchange" "$ranks"
[ "$mode" != links ] || exec timeout -s KILL "${LIMIT:-50}" bash -c '"$0/link_patterns" && "$0/message_steps"' "$here"
failed=0
for collective in ${COLLECTIVES:-allreduce allgather reducescatter broadcast reduce alltoall}; do
  [[ $mode-$collective != inplace*-alltoall ]] || continue # there is none
  plans=("$here/plans/${collective}_${ranks}"_*.cbor)
  [[ ! $mode =~ ^(table|inplace).*-ordinary(-machines)?$ ]] || plans=()
  if ! timeout -s KILL "${LIMIT:-50}" "$here/gpu_collectives" "$ranks" "$mode" "$collective" "${plans[@]}"; then
    echo "FAILED: $collective"
    failed=1
  fi
done
exit $failed
