#!/bin/bash
# Runs bench/host_collectives with 2 to 16 processes and prints its rows, which bench/run.py takes into bench/results/host.
# Arguments: occlc, host_collectives, the folder of the algorithms. COLLECTIVES and RANKS choose some of them; OPTIONS go to the
# program (--private-buffers: OCCL's are of malloc, too; plans are then compiled without --direct, and the table is not theirs),
# LAUNCH comes before mpirun (nice -n -5, for instance), BINDING says where processes run (--bind-to core on a machine with a core for
# each).
# STAGE: everything is put into that folder and nothing is run; on another machine, FOLDER/host_collectives.sh runs it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
[ $# -ne 0 ] || set -- - "$here/host_collectives" "$here/algorithms" # staged
occlc=$1 program=$2 algorithms=$3
collectives=${COLLECTIVES:-allreduce allgather reducescatter broadcast alltoall}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
plans=$made
[ "$occlc" != - ] || plans=$here/plans
[ -z "${STAGE:-}" ] || plans=$STAGE/plans
arePrivate=
[[ " ${OPTIONS:-} " != *" --private-buffers "* ]] || arePrivate=1
# shellcheck disable=SC2206
mpi=(${LAUNCH:-} mpirun ${BINDING:---oversubscribe --bind-to none})
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

# The plans of a collective for so many ranks, as options of the program: smallest sizes first.
plans_of() {
  grep "^$1	" "$algorithms/host_plans.tsv" | while IFS=$'\t' read -r _ ranks algorithm limit protocol buffers; do
    [[ "$ranks" != *x* ]] || continue # of several machines
    ((${ranks%-*} <= $2 && $2 <= ${ranks#*-})) || continue
    [[ "$buffers" != "${arePrivate:+registered}" || -z "$buffers" ]] || continue
    [[ "$buffers" != ordinary || -n "$arePrivate" ]] || continue
    [ -z "$arePrivate" ] || protocol=${protocol/direct/simple}
    plan=$plans/$1-$algorithm-$protocol-$limit-$2.plan.cbor
    read -ra options < <("$algorithms/compile_plans.py" options host "$limit" "$protocol")
    [ "$1" != broadcast ] || options+=(--modes in_place)
    [ -e "$plan" ] || "$occlc" compile "$algorithms/$1/$algorithm.coll" -D "ranks=$2" "${options[@]}" -o "$plan" >&2
    echo "--plan $plan"
  done
}

# Runs the program for a collective, ranks and options.
run() {
  # shellcheck disable=SC2046,SC2086
  "${mpi[@]}" -n "$2" "$program" --collective "$1" ${OPTIONS:-} "${@:3}" $(plans_of "$1" "$2")
}

# Of the rows of several runs, for each size the one whose ratio to Open MPI is in the middle: which ranks share a processor is decided
# when they start, and small operations depend on it.
middle_rows() {
  awk -F '|' '$2 ~ /collective|---/ {if (NR < 3) print; next}
    {if (!($4 in count)) sizes[++numSizes] = $4; rows[$4, ++count[$4]] = $0; ratios[$4, count[$4]] = $10}
    END {for (s = 1; s <= numSizes; ++s) {
      size = sizes[s]
      for (i = 1; i <= count[size]; ++i) {
        below = 0
        for (j = 1; j <= count[size]; ++j)
          below += ratios[size, j] + 0 < ratios[size, i] + 0 || (ratios[size, j] + 0 == ratios[size, i] + 0 && j < i)
        if (below == int(count[size] / 2)) print rows[size, i]
      }
    }}'
}

# Puts all that the rest needs into a folder.
stage() { # <folder>
  rm -rf "$1"
  mkdir -p "$1/plans" "$1/algorithms"
  install -m 755 "$program" "$0" "$1/"
  strip "$1/$(basename "$program")"
  cp "$algorithms"/{host_plans.tsv,compile_plans.py} "$1/algorithms/"
  for collective in $collectives; do
    for ranks in ${RANKS:-2 4 8 16}; do
      plans_of "$collective" "$ranks" >/dev/null
    done
  done
}

if [ -n "${STAGE:-}" ]; then
  stage "$STAGE"
  exit
fi
for collective in $collectives; do
  for ranks in ${RANKS:-2 4 8 16}; do
    for _ in 1 2 3; do run "$collective" "$ranks" --max-bytes 8192; done | middle_rows
    run "$collective" "$ranks" --min-bytes 16384
  done
done
