#!/bin/bash
# What a guest does once it has its files: makes the network, runs the command, tells its status, ends. boot.sh starts it.
# Standard output and error of the command, and the status, are serial lines that run.py reads.
set -eu

for line in /dev/ttyS{0,1,2}; do stty -F "$line" raw -echo; done
ulimit -l unlimited # RDMA pins memory
hostname "$NAME"
ip link set lo up
. "$VERBS/network.sh"
case "$NETWORK" in
rxe:*) addDevices "${NETWORK#rxe:}" ;;
hosts) addCables "$HOST" ;;
esac

status=0
/bin/bash "$WORK/command" </dev/null >/dev/ttyS0 2>/dev/ttyS1 || status=$?
for line in /dev/ttyS{0,1}; do stty -F "$line" raw -echo; done # returns when all has been written
echo "$status" >/dev/ttyS2
stty -F /dev/ttyS2 raw -echo
exec busybox poweroff -f
