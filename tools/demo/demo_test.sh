#!/bin/bash
# The demo, shortened, and what becomes of it when a rank is killed. Arguments: as demo.sh.
set -euo pipefail

here=$(dirname "$0")
ITERATIONS=2 SEED=1 "$here/demo.sh" "$@" | tee "$TEST_TMPDIR/output"
grep -q "checked .* 0 wrong elements" "$TEST_TMPDIR/output"
grep -q "rank . waits for rank . (.*) in collective '" "$TEST_TMPDIR/output"

# One rank of a long run dies: the others end by themselves, in bounded time, and say who it was.
occlc=$1 run=$2 train=$3 algorithms=$4
"$occlc" compile "$algorithms/all_pairs.coll" -D ranks=4 -o "$TEST_TMPDIR/plan.json"
# shellcheck disable=SC2016
"$run" -n 4 --grace 20000 -- bash -c '
  echo $$ >"$TEST_TMPDIR/pid-$OCCL_RANK"
  exec "$0" --plan "$TEST_TMPDIR/plan.json" --iterations 100000' "$train" \
  >"$TEST_TMPDIR/killed" 2>&1 &
job=$!
for _ in $(seq 300); do
  ! grep -q iterations "$TEST_TMPDIR/killed" || break
  sleep 0.1
done
sleep 1
kill -9 "$(cat "$TEST_TMPDIR/pid-2")"
begin=$SECONDS
status=0
wait "$job" || status=$?
cat "$TEST_TMPDIR/killed"
[ "$status" -eq 137 ]
[ $((SECONDS - begin)) -lt 15 ]
grep -q "occl-run: rank 2 (process .*) was killed by signal 9" "$TEST_TMPDIR/killed"
[ "$(grep -c "all-reduce: .*rank 2" "$TEST_TMPDIR/killed")" -eq 3 ]
for rank in 0 1 2 3; do
  if kill -0 "$(cat "$TEST_TMPDIR/pid-$rank")" 2>/dev/null; then
    echo "rank $rank still runs" >&2
    exit 1
  fi
done
