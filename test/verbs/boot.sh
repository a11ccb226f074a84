#!/bin/bash
# The first process of a guest (run.py starts it): makes a root of the machine's files, to which changes are kept in memory, and
# goes on there with guest.sh. The kernel gives it, as variables, WORK and what else run.py says.
set -eu
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=/mnt/root

# The machine's files, read-only, below; changes above.
mount -t proc proc /proc
mount -t tmpfs -o mode=755,size=75% changes /mnt
mkdir /mnt/changes /mnt/work "$root"
mount -t overlay -o lowerdir=/,upperdir=/mnt/changes,workdir=/mnt/work files "$root"

# What belongs to this kernel.
mount -t devtmpfs devices "$root/dev"
mkdir -p "$root/dev/pts" "$root/dev/shm"
ln -sfn /proc/self/fd "$root/dev/fd"
mount -t devpts terminals "$root/dev/pts"
mount -t tmpfs -o size=75% memory "$root/dev/shm"
mount -t tmpfs run "$root/run"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"

# The one processor changes hands after 0.3 to 1 ms, not 3 to 6: who polls for another process's answer keeps that from running.
mount -t debugfs debug "$root/sys/kernel/debug"
echo HRTICK >"$root/sys/kernel/debug/sched/features"
echo 1000000 >"$root/sys/kernel/debug/sched/latency_ns"
echo 300000 >"$root/sys/kernel/debug/sched/min_granularity_ns"

# Folders of the machine that the guest may write to.
while read -r folder; do
  mount -t hostfs -o "$folder" machine "$root$folder"
done <"$WORK/writable"

exec chroot "$root" /bin/bash "$VERBS/guest.sh"
