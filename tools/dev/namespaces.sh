#!/bin/bash
# Runs a command beside network namespaces that stand for machines named a, b, ..., with an interface eth0 each
# (10.77.0.1 and fd77::1, and so on), all joined by one switch:
#   tools/dev/namespaces.sh [-n NUMBER] [-l LINKS] COMMAND...      two of one link each, if not given
# With more LINKS each has eth1 (10.77.1.1 and fd77:1::1), and so on, too, joined by a switch of its own.
# Within it `occl-run --hosts a,b` starts ranks there, and `tools/dev/namespaces.sh --in b COMMAND...` runs something in
# one of them, such as `ip link set eth0 down`. All ends with the command. Exit status: the command's; 77 if the system
# lets nobody make namespaces.
set -euo pipefail
self=$(realpath "$0")

usage() {
  sed -n '2,8s/^# //p' "$self" >&2
  exit 2
}

run_in() { # NAME COMMAND...
  local entry
  for entry in ${OCCL_NAMESPACES:-}; do
    [ "${entry%%=*}" != "$1" ] || exec nsenter --net="/proc/${entry#*=}/ns/net" -- "${@:2}"
  done
  echo "namespaces.sh: there is no namespace '$1' here" >&2
  exit 1
}

add_link() { # PORT NUMBER LINK HOLDER
  local net=fd77
  [ "$3" -eq 0 ] || net=fd77:$3
  ip link add "port-$1" type veth peer name "eth$3" netns "$4"
  ip link set "port-$1" master "switch$3" up
  nsenter --net="/proc/$4/ns/net" -- sh -c "
    ip address add 10.77.$3.$2/24 dev eth$3
    echo 1 >/proc/sys/net/ipv6/conf/eth$3/keep_addr_on_down # as of IPv4 addresses
    ip address add $net::$2/64 dev eth$3 nodad
    ip link set eth$3 up"
}

# A namespace lives as long as a process in it, and that as long as this one.
add_namespace() { # NAME NUMBER
  unshare --net setpriv --pdeathsig KILL sleep infinity &
  local holder=$! own link
  holders+=("$holder")
  own=$(readlink /proc/self/ns/net)
  while [ "$(readlink "/proc/$holder/ns/net")" = "$own" ]; do sleep 0.01; done
  nsenter --net="/proc/$holder/ns/net" -- ip link set lo up
  for ((link = 0; link < links; ++link)); do
    add_link "$1$link" "$2" "$link" "$holder"
  done
  OCCL_NAMESPACES="${OCCL_NAMESPACES:-}${OCCL_NAMESPACES:+ }$1=$holder"
}

[ "${1:-}" != --in ] || run_in "${@:2}"

number=2 links=1
while [[ ${1:-} == -[nl] ]]; do
  [ "$1" = -l ] || number=${2:-}
  [ "$1" = -n ] || links=${2:-}
  shift 2 || usage
done
[[ $# -gt 0 && $number =~ ^[0-9]+$ && $number -ge 1 && $number -le 26 ]] || usage
[[ $links =~ ^[1-9]$ ]] || usage

# The switch is in a namespace of its own, so nothing is seen from outside, and all of it ends with this.
if [ -z "${OCCL_NAMESPACES_SWITCH:-}" ]; then
  options=(--net)
  [ "$(id -u)" -eq 0 ] || options+=(--map-root-user)
  if ! why=$(unshare "${options[@]}" ip link add switch0 type bridge 2>&1); then
    echo "namespaces.sh: this system lets this user make no network namespaces: $why" >&2
    exit 77
  fi
  OCCL_NAMESPACES_SWITCH=1 exec unshare "${options[@]}" "$self" -n "$number" -l "$links" "$@"
fi

holders=()
trap 'kill "${holders[@]}" 2>/dev/null || true' EXIT
unset OCCL_NAMESPACES
ip link set lo up
for ((i = 0; i < links; ++i)); do
  ip link add "switch$i" type bridge
  ip link set "switch$i" up
done
names=({a..z})
for ((i = 0; i < number; ++i)); do
  add_namespace "${names[i]}" "$((i + 1))"
done
export OCCL_NAMESPACES OCCL_RUN_RSH="$self --in"
status=0
"$@" || status=$?
exit "$status"
