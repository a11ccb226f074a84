#!/bin/bash
# Verifies a model by spin and expects a certain outcome.
#   check.sh <model> ok|deadlock|assertion safety|liveness [-D<switch>]...
# deadlock: some state from which nobody can go on; assertion: one that does not hold. At most
# MINUTES (default 5) and MEGABYTES (default 2000). OPTIMIZE (default 2): of gcc, which takes longer
# than the search where the model is large and its states are few.
set -euo pipefail
model=$(realpath "$1")
expected=$2 kind=$3
shift 3
switches=("$@")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/model.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$model" model.pml

spin -a "$@" model.pml >spin.log 2>&1 || { cat spin.log; exit 1; }
options=("-O${OPTIMIZE:-2}" -w -DCOLLAPSE -DVECTORSZ=2048 "-DMEMLIM=${MEGABYTES:-2000}")
arguments=(-m20000)
case "$kind" in
safety) options+=(-DSAFETY -DNOCLAIM); arguments+=(-noclaim) ;;
liveness) options+=(-DNFAIR=4); arguments+=(-a -f -N everybodyEnds) ;; # under weak fairness
*) echo "check.sh: '$kind' is neither safety nor liveness" >&2; exit 2 ;;
esac
gcc "${options[@]}" -o pan pan.c
timeout "${MINUTES:-5}m" ./pan "${arguments[@]}" >pan.log 2>&1 || true
grep -E 'errors:|states, stored|pan:[0-9]|elapsed|Search not completed|max search depth|reached' pan.log || true

fail() {
  echo "$1; expected: $expected"
  tail -20 pan.log
  [ -e model.pml.trail ] && spin -t -p -g "${switches[@]}" model.pml | tail -60
  exit 1
}
grep -q 'errors: ' pan.log || fail "the search was cut short"
case "$expected" in
ok)
  grep -q 'errors: 0' pan.log || fail "the model has a defect"
  ! grep -qE 'max search depth too small|out of memory|Search not completed' pan.log || fail "the search is not complete"
  ;;
deadlock) grep -qE 'pan:[0-9]+: (invalid end state|acceptance cycle)' pan.log || fail "no deadlock was found" ;;
assertion) grep -qE 'pan:[0-9]+: assertion violated' pan.log || fail "no assertion was violated" ;;
*) echo "check.sh: '$expected' is no outcome" >&2; exit 2 ;;
esac
