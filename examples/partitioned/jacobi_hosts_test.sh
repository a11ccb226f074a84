#!/bin/bash
# jacobi_hosts_test.sh OCCL_RUN PROGRAM: one process, as many as do not divide the rows, and a piece of a row of one element.
set -euo pipefail
for ranks in 1 2 3; do
  "$1" -n "$ranks" "$2" 64 50
done
"$1" -n 2 "$2" 8 9
! "$1" -n 2 "$2" 12 9 || { echo "12 is no multiple of 8" >&2; exit 1; }
