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

# Folders of the machine that the guest may write to.
while read -r folder; do
  mount -t hostfs -o "$folder" machine "$root$folder"
done <"$WORK/writable"

exec chroot "$root" /bin/bash "$VERBS/guest.sh"
