#!/bin/bash
# device_plans_test.sh <occlc> <straight_check> <device_plans.tsv> <ranks>: the plans in lines of the table compile and are straight
# (docs/gpu-kernels.md) up to the size that the table gives them; interpreted, they would take ten times as long. Calls of them fit into the
# memory that the calls of a communicator share.
set -euo pipefail
occlc=$1 check=$2 table=$3 ranks=$4
algorithms=$(dirname "$table")
number=0
while IFS=$'\t' read -r collective of algorithm instances limit protocol _; do
  case $protocol in ll | ll128) ;; *) continue ;; esac
  case ,$of, in *,"$ranks",*) ;; *) continue ;; esac
  plan=$TEST_TMPDIR/$collective-$algorithm-$protocol-$instances-$limit.cbor
  parameters=(-D "ranks=$ranks")
  [ "${algorithm%:*}" = "$algorithm" ] || parameters+=(-D "${algorithm#*:}")
  "$occlc" compile "$algorithms/$collective/${algorithm%:*}.coll" "${parameters[@]}" --instances "$instances" --protocol "$protocol" \
    --no-aggregate-local --spread-local --max-bytes "$limit" -o "$plan"
  "$check" "$plan" 4 1000 $((limit / 2 + 4)) $((limit - 4)) "$limit"
  number=$((number + 1))
done < <(grep -v '^#' "$table")
[ "$number" -ge 10 ] || { echo "only $number plans in lines" >&2; exit 1; }
