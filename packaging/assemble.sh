#!/bin/bash
# Packs what `make install` installs: assemble.sh <archive> <file>=<place in the prefix>...
# The archive is the same, byte for byte, for the same files.
set -euo pipefail

archive=$1
shift
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for pair in "$@"; do
  file=${pair%%=*} place=$tree/${pair#*=}
  mkdir -p "$(dirname "$place")"
  cp -L "$file" "$place"
  case "$place" in
  */bin/* | */lib/*.so.*) chmod 755 "$place" ;;
  *) chmod 644 "$place" ;;
  esac
done
ln -s liboccl.so.0 "$tree/lib/liboccl.so"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$tree" -cf "$archive" .
