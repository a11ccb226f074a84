#!/bin/bash
# Runs bench/host_collectives with 2 to 16 processes and writes a report. Arguments: occlc, host_collectives, the folder of
# the algorithms, the folder of the reports. COLLECTIVES and RANKS choose some of them; OPTIONS go to the program
# (--private-buffers: OCCL's are of malloc, too; plans are then compiled without --direct, and the report says so in its name),
# LAUNCH comes before mpirun (nice -n -5, for instance).
set -euo pipefail

occlc=$1 program=$2 algorithms=$3 reports=$4
collectives=${COLLECTIVES:-allreduce allgather reducescatter broadcast alltoall}
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
arePrivate=
[[ " ${OPTIONS:-} " != *" --private-buffers "* ]] || arePrivate=-private
report=$reports/$(date +%F)-host-collectives$arePrivate.md
# shellcheck disable=SC2206
mpi=(${LAUNCH:-} mpirun --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)

# The plans of a collective for so many ranks, as options of the program: smallest sizes first.
plans_of() {
  grep "^$1	" "$algorithms/host_plans.tsv" | while IFS=$'\t' read -r _ ranks algorithm limit protocol; do
    ((${ranks%-*} <= $2 && $2 <= ${ranks#*-})) || continue
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

mkdir -p "$reports"
{
  echo "# Collectives on one host through occlCall, against Open MPI"
  echo
  echo "- Machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)," \
    "Linux $(uname -r | cut -d . -f 1,2); load average at the start: $load"
  echo "- OCCL at commit $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- . ':!bench/results' || echo ', with changes'); $(mpirun --version | head -1); $(g++ --version | head -1)"
  echo "- Command: \`${OPTIONS:+OPTIONS=\"$OPTIONS\" }make bench\`. Floats, out of place but for broadcast; ranks are processes; \"bytes\" are"
  echo "  those of the larger buffer of a rank. Open MPI and plain copying have buffers of malloc, OCCL those of \`occlMemAlloc\` unless OPTIONS say"
  echo "  otherwise."
  echo "- Plans by collective, ranks and size: \`algorithms/host_plans.tsv\`."
  echo "- OCCL (\`occlCall\`, in one communicator), Open MPI (its blocking call) and plain copying (memcpy of as many bytes, in all ranks at once) take turns in the same processes, a stretch of"
  echo "  operations each, the first ones unmeasured; a barrier before each operation. Times are those of the slowest rank: median and 99th percentile of"
  echo "  the operations; up to 8 KiB of the middle one of three runs. A row passes if OCCL is not slower than Open MPI, or at least 0.9 as"
  echo "  fast as plain copying (\"as copying\"); all-reduce of 8 and more ranks is to be twice as fast as Open MPI, 1.4 times at 1 MiB"
  echo "  (\"below 2.0\")."
  echo
  awk '/^\| collective/ && seen++ {getline; next} {print}' "$table"
  echo
  echo "Rows that pass: $(grep -c '| pass |\|| as copying |' "$table") of $(grep -c '^| [a-z]* | [0-9]' "$table")."
} >"$report"
echo "Written: $report"
