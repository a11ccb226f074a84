#!/bin/bash
# `make demo`: from .coll files to verified gradients, then the same run without what makes OCCL different.
# Arguments: occlc, occl-run, train, the folder of the all-reduce algorithms.
set -euo pipefail

occlc=$1 run=$2 train=$3 algorithms=$4
ranks=8 iterations=${ITERATIONS:-20} seed=${SEED:-$RANDOM}
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT

echo "1. Compile and verify the all-reduce algorithms for $ranks ranks"
for source in "$algorithms"/*.coll; do
  name=$(basename "$source" .coll)
  options=(-D "ranks=$ranks")
  case $name in
  one_shot) options+=(--max-bytes 16384) ;;
  hierarchical | nv_group | two_level) options=(-D nodes=2 -D "gpus=$((ranks / 2))") ;;
  esac
  echo "  $name.coll"
  "$occlc" check "$source" "${options[@]}" 2>&1 | sed 's/^/    /'
  "$occlc" compile "$source" "${options[@]}" -o "$plans/$name.plan.json"
done

echo
echo "2. Train: $iterations iterations; every rank submits its gradients in a random order of its own"
job=("$train" --plan "$plans/one_shot.plan.json" --plan "$plans/all_pairs.plan.json" --seed "$seed")
"$run" -n "$ranks" -- "${job[@]}" --iterations "$iterations"

echo
echo "3. The same without preemption: the ranks wait for each other in a cycle, which is found and reported"
"$run" -n "$ranks" -- "${job[@]}" --iterations "$iterations" --preemption off

echo
echo "Done: $((iterations * 161)) all-reduces on each of $ranks ranks, in any order, all correct (seed $seed);" \
  "without preemption, a deadlock."
