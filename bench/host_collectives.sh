#!/bin/bash
# Runs bench/host_collectives with 2 to 16 processes, prints its rows and gives them to bench/report.py for bench/results/host.
# Arguments: occlc, host_collectives, the folder of the algorithms. COLLECTIVES and RANKS choose some of them; OPTIONS go to the
# program (--private-buffers: OCCL's are of malloc, too; plans are then compiled without --direct, and the rows are printed alone),
# LAUNCH comes before mpirun (nice -n -5, for instance). RESULTS: another folder of the tables.
set -euo pipefail

occlc=$1 program=$2 algorithms=$3
collectives=${COLLECTIVES:-allreduce allgather reducescatter broadcast alltoall}
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
arePrivate=
[[ " ${OPTIONS:-} " != *" --private-buffers "* ]] || arePrivate=1
# shellcheck disable=SC2206
mpi=(${LAUNCH:-} mpirun --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

# The plans of a collective for so many ranks, as options of the program: smallest sizes first.
plans_of() {
  grep "^$1	" "$algorithms/host_plans.tsv" | while IFS=$'\t' read -r _ ranks algorithm limit protocol buffers; do
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

table=$(mktemp -p "$plans")
load=$(cut -d ' ' -f 1 /proc/loadavg)
for collective in $collectives; do
  for ranks in ${RANKS:-2 4 8 16}; do
    for _ in 1 2 3; do run "$collective" "$ranks" --max-bytes 8192; done | middle_rows | tee -a "$table"
    run "$collective" "$ranks" --min-bytes 16384 | tee -a "$table"
  done
done

[ -n "$arePrivate" ] && exit # the table is of buffers that all ranks can access
"$(dirname "$0")/report.py" ${RESULTS:+--results "$RESULTS"} --add host "$table" --command "${OPTIONS:+OPTIONS=\"$OPTIONS\" }make bench" \
  --conditions "floats; plans of algorithms/host_plans.tsv; OCCL's buffers of occlMemAlloc, the others' of malloc; load average at the start $load"
