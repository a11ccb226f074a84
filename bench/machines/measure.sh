#!/bin/bash
# Flat and group-wise plans of the library's collectives against each other on several machines: a shape is "2x4", so many
# machines of so many ranks; network namespaces stand for them, the link of each sends at a rate, or ("-") as fast as it goes,
# or ("lo") all is one machine's loopback. As root, or where users may make namespaces, in the root of a checkout:
#   tools/dev/bazel.sh build //bench/machines:compare_plans //tools/occl-run //tools/occlc
#   bench/machines/measure.sh [SHAPES [RATES [COLLECTIVES [SIZES]]]]
# Each is a list in quotes; rates are those of tc, as "800mbit", sizes bytes of a part with commas between them.
# EXTRA="ring" adds algorithms, GLOO=<a Python that has PyTorch> gloo's all-reduce. A table for each rate: plan, bytes of a part, microseconds, how much
# faster than flat, bytes that the first machine sends in a call.
set -euo pipefail
cd "$(dirname "$0")/../.."
shapes=${1:-2x2 2x4 4x2}
rates=${2:-800mbit 2400mbit 8gbit -}
collectives=${3:-allreduce allgather reducescatter broadcast reduce}
sizes=${4:-1024,8192,65536,262144,1048576,16777216}
namespaces=$PWD/tools/dev/namespaces.sh
bin=$PWD/bazel-bin
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT

compile() { # COLLECTIVE SHAPE ALGORITHM
  local shape=(-D "ranks=$((${2%x*} * ${2#*x}))")
  case $3 in
    two_* | three_* | hierarchical | nv_group) shape=(-D "nodes=${2%x*}" -D "gpus=${2#*x}") ;;
  esac
  "$bin/tools/occlc/occlc" compile "algorithms/$1/$3.coll" "${shape[@]}" --protocol simple -o "$plans/$3.plan.cbor"
}

# As if HOST were reached by ssh: for occl-run, on this machine.
cat >"$plans/here" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
# Gives each link its rate, and runs a command.
cat >"$plans/limited" <<'END'
#!/bin/bash
for entry in $OCCL_NAMESPACES; do
  [ "$2" = - ] || "$1" --in "${entry%%=*}" tc qdisc add dev eth0 root tbf rate "$2" burst 512kb latency 100ms
done
exec "${@:3}"
END
chmod +x "$plans/here" "$plans/limited"

for shape in $shapes; do
  machines=${shape%x*} ranks=$((${shape%x*} * ${shape#*x}))
  hosts=$(printf '%s\n' {a..z} | head -n "$machines" | paste -sd,)
  job=("$bin/tools/occl-run/occl-run" --hosts "$hosts" -n "$ranks")
  for collective in $collectives; do
    algorithms=(all_pairs two_level)
    [ "$collective" != alltoall ] || algorithms=(all_pairs two_step three_step)
    # shellcheck disable=SC2206
    algorithms+=(${EXTRA:-})
    rm -f "$plans"/*.cbor
    for algorithm in "${algorithms[@]}"; do compile "$collective" "$shape" "$algorithm"; done
    contenders=("${algorithms[@]/%/.plan.cbor}")
    for rate in $rates; do
      printf '\n%s, %s, %s\n\n| plan | bytes | us | flat / this | bytes sent |\n|---|---:|---:|---:|---:|\n' "$collective" "$shape" "$rate"
      interface=eth0
      start=("$namespaces" -n "$machines" "$plans/limited" "$namespaces" "$rate" "${job[@]}")
      [ "$rate" != lo ] || interface=lo start=("${job[@]}" --rsh "$plans/here")
      (cd "$plans" && "${start[@]}" "$bin/bench/machines/compare_plans" "$interface" "$sizes" "${contenders[@]}")
      if [ -n "${GLOO:-}" ] && [ "$collective" = allreduce ]; then
        "${start[@]}" -x "GLOO_SOCKET_IFNAME=$interface" "$GLOO" "$PWD/bench/machines/gloo.py" "$sizes"
      fi
    done
  done
done
