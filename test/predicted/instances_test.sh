#!/bin/bash
# instances_test.sh <occlc> <device_plans.tsv> <h200.topo>: where nobody says what becomes of local copies, those of --instances are spread
# over thread blocks: by the cost model as good as if that is asked for, and several times as fast as if one thread block does them all.
set -euo pipefail
occlc=$(realpath "$1") algorithms=$(realpath "$(dirname "$2")") topologies=$(realpath "$(dirname "$3")")
# shellcheck source=test/predicted/predicted.sh
. "$(dirname "$0")/predicted.sh"
cd "$TEST_TMPDIR"
failed=0
while read -r collective algorithm instances bytes times; do
  for blocks in "" "--max-thread-blocks $instances"; do
    # shellcheck disable=SC2086
    for way in default: spread:--no-aggregate-local\ --spread-local joined:--aggregate-local\ --no-spread-local; do
      compile "${way%%:*}.cbor" "$collective" 4 "$algorithm" --instances "$instances" $blocks ${way#*:}
    done
    default=$(us default.cbor 4 "$bytes") spread=$(us spread.cbor 4 "$bytes") joined=$(us joined.cbor 4 "$bytes")
    echo "$collective $algorithm, $instances instances $blocks, $bytes: default $default us, spread $spread, joined $joined"
    cmp -s default.cbor spread.cbor && atMost "$(awk "BEGIN {print 1 / $times}")" "$default" "$joined" || failed=1
  done
done <<'ROWS'
allgather all_pairs 32 4MiB 8
allgather shifted 32 4MiB 8
allgather ring 64 1MiB 8
alltoall all_pairs 32 4MiB 8
alltoall shifted 32 4MiB 8
broadcast chain 32 4MiB 8
gather direct 32 4MiB 5
scatter direct 32 4MiB 5
ROWS
exit $failed
