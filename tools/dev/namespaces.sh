#!/bin/bash
# Runs a command beside network namespaces that stand for machines named a, b, ..., with an interface eth0 each
# (10.77.0.1 and fd77::1, and so on), all joined by one switch:
#   tools/dev/namespaces.sh [-n NUMBER] COMMAND...      two if no NUMBER is given
# Within it `occl-run --hosts a,b` starts ranks there, and `tools/dev/namespaces.sh --in b COMMAND...` runs something in
# one of them, such as `ip link set eth0 down`. All ends with the command. Exit status: the command's; 77 if the system
# lets nobody make namespaces.
set -euo pipefail
self=$(realpath "$0")

usage() {
  sed -n '2,7s/^# //p' "$self" >&2
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

# A namespace lives as long as a process in it, and that as long as this one.
add_namespace() { # NAME NUMBER
  unshare --net setpriv --pdeathsig KILL sleep infinity &
  local holder=$! own
  holders+=("$holder")
  own=$(readlink /proc/self/ns/net)
  while [ "$(readlink "/proc/$holder/ns/net")" = "$own" ]; do sleep 0.01; done
  ip link add "port-$1" type veth peer name eth0 netns "$holder"
  ip link set "port-$1" master switch up
  nsenter --net="/proc/$holder/ns/net" -- sh -c "
    ip link set lo up
    ip address add 10.77.0.$2/24 dev eth0
    echo 1 >/proc/sys/net/ipv6/conf/eth0/keep_addr_on_down # as of IPv4 addresses
    ip address add fd77::$2/64 dev eth0 nodad
    ip link set eth0 up"
  OCCL_NAMESPACES="${OCCL_NAMESPACES:-}${OCCL_NAMESPACES:+ }$1=$holder"
}

[ "${1:-}" != --in ] || run_in "${@:2}"

number=2
if [ "${1:-}" = -n ]; then
  number=${2:-}
  shift 2 || usage
fi
[[ $# -gt 0 && $number =~ ^[0-9]+$ && $number -ge 1 && $number -le 26 ]] || usage

# The switch is in a namespace of its own, so nothing is seen from outside, and all of it ends with this.
if [ -z "${OCCL_NAMESPACES_SWITCH:-}" ]; then
  options=(--net)
  [ "$(id -u)" -eq 0 ] || options+=(--map-root-user)
  if ! why=$(unshare "${options[@]}" ip link add switch type bridge 2>&1); then
    echo "namespaces.sh: this system lets this user make no network namespaces: $why" >&2
    exit 77
  fi
  OCCL_NAMESPACES_SWITCH=1 exec unshare "${options[@]}" "$self" -n "$number" "$@"
fi

holders=()
trap 'kill "${holders[@]}" 2>/dev/null || true' EXIT
unset OCCL_NAMESPACES
ip link set lo up
ip link add switch type bridge
ip link set switch up
names=({a..z})
for ((i = 0; i < number; ++i)); do
  add_namespace "${names[i]}" "$((i + 1))"
done
export OCCL_NAMESPACES OCCL_RUN_RSH="$self --in"
status=0
"$@" || status=$?
exit "$status"
