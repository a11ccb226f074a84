#!/bin/bash
# Runs bench/host_allreduce with 2, 4 and 8 processes and writes a report. Arguments: occlc, host_allreduce, the folder of the
# all-reduce algorithms, the folder of the reports.
set -euo pipefail

occlc=$1 program=$2 algorithms=$3 reports=$4
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
report=$reports/$(date +%F)-host-allreduce.md
mpi=(mpirun --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

# Small messages: everybody reads everything (one step). Large ones: everybody reduces a part, then reads the others'.
limit=16384
table=$(mktemp -p "$plans")
load=$(cut -d ' ' -f 1 /proc/loadavg)
for ranks in 2 4 8; do
  "$occlc" compile "$algorithms/one_shot.coll" -D "ranks=$ranks" --max-bytes "$limit" \
    -o "$plans/one_shot-$ranks.plan.json"
  "$occlc" compile "$algorithms/all_pairs.coll" -D "ranks=$ranks" -o "$plans/all_pairs-$ranks.plan.json"
  echo "$ranks ranks"
  "${mpi[@]}" -n "$ranks" "$program" --plan "$plans/one_shot-$ranks.plan.json" \
    --plan "$plans/all_pairs-$ranks.plan.json" | tee -a "$table"
done

mkdir -p "$reports"
{
  echo "# All-reduce on one host, against Open MPI"
  echo
  echo "- Machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)," \
    "Linux $(uname -r | cut -d . -f 1,2); load average at the start: $load"
  echo "- OCCL at commit $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- . ':!bench/results' || echo ', with changes'); $(mpirun --version | head -1); $(g++ --version | head -1)"
  echo "- Command: \`make bench\`. Floats, sum, out of place; ranks are processes; one_shot to $limit bytes, all_pairs above."
  echo "- The two take turns, operation by operation, in the same processes on the same buffers, a barrier before each."
  echo "  Times are those of the slowest rank: medians over the operations (the last column compares the means)."
  echo
  awk '/^\| ranks/ && seen++ {getline; next} {print}' "$table"
} >"$report"
echo "Written: $report"
