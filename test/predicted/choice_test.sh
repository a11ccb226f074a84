#!/bin/bash
# choice_test.sh <occlc> <device_plans.tsv> <h200.topo> <ranks>: what occlc chooses by prediction for the sizes of the table, which was made by
# measuring. It finds no plan of the table faster than its own, and takes the table's protocol at most sizes.
set -euo pipefail
occlc=$(realpath "$1") table=$(realpath "$2") algorithms=$(realpath "$(dirname "$2")") topologies=$(realpath "$(dirname "$3")") ranks=$4
# shellcheck source=test/predicted/predicted.sh
. "$(dirname "$0")/predicted.sh"
cd "$TEST_TMPDIR"

# best_of <protocol>: the least time among the candidates in stats.txt, us.
best_of() {
  # What goes on in another line is indented by four.
  sed -e ':a' -e 'N;$!ba' -e 's/\n    / /g' stats.txt | sed -n "s/^  protocol $1[ ,].*: \([0-9.]*\) \([um]s\) at .*/\1 \2/p" |
    awk '{t = $2 == "ms" ? 1000 * $1 : $1; if (NR == 1 || t < best) best = t} END {print best + 0}'
}

rows=0 agree=0 failed=0
while IFS=$'\t' read -r collective of algorithm instances limit protocol buffers; do
  [ "$buffers" != ordinary ] || continue # chosen among plans that access buffers
  case ,$of, in *,"$ranks",*) ;; *) continue ;; esac
  case $collective in gather | scatter) continue ;; esac # not measured
  # As bench/gpu/processes/stage.sh compiles them.
  blocks=$instances expected=$protocol
  case $protocol in
    direct) options=(--protocol simple --direct) expected=simple ;;
    apart) options=(--protocol simple --direct --no-multicast) expected=simple ;;
    beside) options=(--protocol simple --direct --no-multicast --max-thread-blocks $((blocks = 2 * instances))) expected=simple ;;
    chain) options=(--protocol simple --no-aggregate-local --spread-local --depth 4 --max-thread-blocks $((blocks = 2 * instances))) expected=simple ;;
    *) options=(--protocol "$protocol" --no-aggregate-local --spread-local) ;;
  esac
  [ "$limit" != - ] || limit=67108864
  compile table.cbor "$collective" "$ranks" "$algorithm" --instances "$instances" "${options[@]}"
  compile auto.cbor "$collective" "$ranks" "$algorithm" --protocol auto --instances auto --direct --max-thread-blocks "$blocks" \
    --topology "$topologies/h200.topo" -D "gpus=$ranks" --bytes "$limit" --stats 2>stats.txt
  best=$(best_of '[a-z0-9]*') best_expected=$(best_of "$expected")
  before=$(us table.cbor "$ranks" "$limit") after=$(us auto.cbor "$ranks" "$limit")
  echo "$collective $algorithm $limit: table $protocol $instances $before us; $after us: $(grep '^chosen' stats.txt)"
  # What differs by half a percent is as good.
  atMost 1.006 "$after" "$before" || failed=1
  rows=$((rows + 1))
  # What differs by a twentieth is a matter of what was measured.
  ! atMost 1.05 "$best_expected" "$best" || agree=$((agree + 1))
done < <(grep -v '^#' "$table")
echo "the table's protocol is the fastest, or nearly, in $agree of $rows rows"
[ $rows -ge 15 ] && [ $((4 * agree)) -ge $((3 * rows)) ] && [ $failed = 0 ]
