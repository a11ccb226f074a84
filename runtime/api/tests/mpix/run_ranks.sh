#!/bin/bash
# A job of this machine, by Open MPI:   run_ranks.sh <ranks> <program> [argument]...
set -euo pipefail
ranks=$1
shift
unset XML_OUTPUT_FILE TEST_PREMATURE_EXIT_FILE # each rank would write them
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
TMPDIR=$(mktemp -d /tmp/mpix.XXXXXX) # the names of sockets are short
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
# Open MPI makes names in /dev/shm of numbers of processes, which are the same in two sandboxes: so its files are elsewhere.
mpirun --oversubscribe --bind-to none --mca plm isolated --mca btl self,vader --mca btl_vader_backing_directory "$TMPDIR" \
  -n "$ranks" "$@"
