#!/bin/bash
# Disturbs a soft NIC of a guest, as root there: link.sh NIC COMMAND
#   unplug, plug     its cable
#   out NETEM...     treats what it sends as `tc netem` has it, such as: loss 1% delay 2ms reorder 1% corrupt 1%
#   in NETEM...      what it gets
#   clear            nothing of that any more
set -euo pipefail

usage() {
  sed -n '2,6s/^# //p' "$0" >&2
  exit 2
}

[ $# -ge 2 ] || usage
nic=$1 command=$2
shift 2
port=${nic/nic/port} # the other end of its cable
if ! [ -e "/sys/class/net/$nic" ] || ! [ -e "/sys/class/net/$port" ]; then
  echo "link.sh: there is no $nic here" >&2
  exit 1
fi

case $command in
unplug) ip link set "$port" down ;;
plug) ip link set "$port" up ;;
out) tc qdisc replace dev "$nic" root netem limit 100000 "$@" ;;
in) tc qdisc replace dev "$port" root netem limit 100000 "$@" ;;
clear)
  ip link set "$port" up
  for end in "$nic" "$port"; do
    tc qdisc delete dev "$end" root 2>/dev/null || true # there may be none
  done
  ;;
*) usage ;;
esac
