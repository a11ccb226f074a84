#!/bin/bash
# What a second link brings: an all-reduce of two ranks on two network namespaces, whose links send at a rate, over one link and
# over both. As root, or where users may make namespaces, in the root of a checkout:
#   tools/dev/bazel.sh build //tools/occl-run //tools/occlc
#   bench/machines/rails.sh [RATES [COUNT]]
# RATES is a list of tc's, in quotes; COUNT are float32. Columns: rate, MB/s over one link and over both (bytes of a part by the
# median of ten calls), their ratio, bytes that came by each link of the first machine in the calls over both, larger by smaller.
set -euo pipefail
cd "$(dirname "$0")/../.."
rates=${1:-200mbit 800mbit}
count=${2:-4194304}
namespaces=$PWD/tools/dev/namespaces.sh
bin=$PWD/bazel-bin
PATH=$PATH:/usr/sbin:/sbin # where tc is
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/tools/occlc/occlc" compile algorithms/allreduce/all_pairs.coll -D ranks=2 --protocol simple -o "$work/plan.json"

cat >"$work/measure" <<'END'
#!/bin/bash
set -euo pipefail
namespaces=$1 rate=$2 run=$3 plan=$4 count=$5
for name in a b; do
  for link in eth0 eth1; do
    "$namespaces" --in "$name" tc qdisc add dev "$link" root tbf rate "$rate" burst 512kb latency 100ms
  done
done
received() { "$namespaces" --in a sed -n "s/^ *$1: *\([0-9]*\).*/\1/p" /proc/net/dev; }
goodput() { # NAMES
  OCCL_NET=tcp OCCL_SOCKET_IFNAME=$1 "$run" --hosts a,b -n 2 --plan "$plan" --count "$count" --iterations 10 |
    awk -v bytes=$((4 * count)) '/^time/ { print bytes / $3 }'
}
one=$(goodput =eth0)
before0=$(received eth0) before1=$(received eth1)
both=$(goodput "")
awk -v rate="$rate" -v one="$one" -v both="$both" -v a=$(($(received eth0) - before0)) -v b=$(($(received eth1) - before1)) '
  BEGIN { printf "| %s | %.1f | %.1f | %.2f | %d | %d | %.3f |\n", rate, one, both, both / one, a, b, (a > b ? a / b : b / a) }'
END
chmod +x "$work/measure"
printf '| rate | one link, MB/s | both, MB/s | both / one | eth0, bytes | eth1, bytes | max / min |\n|---|---:|---:|---:|---:|---:|---:|\n'
for rate in $rates; do
  "$namespaces" -l 2 "$work/measure" "$namespaces" "$rate" "$bin/tools/occl-run/occl-run" "$work/plan.json" "$count"
done
