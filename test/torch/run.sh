#!/bin/bash
# Tests of PyTorch's backend occl and of the Python package, on CPUs. Called by `make torch`.
#   run.sh LIBOCCL [VERSION]...    versions of torch; the first is tested in full, the others briefly
# OCCL_TORCH_OPTIONAL=1: where neither a package index nor a cache has PyTorch, it says that nothing
# was tested, and succeeds. Otherwise that is an error.
set -uo pipefail
cd "$(dirname "$0")/../.."

library=$(readlink -f "$1") && shift
versions=("$@")
[ ${#versions[@]} -eq 0 ] && versions=(2.11.0 2.15.0)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
status=0
unfinished=() # steps with failures, also those that ended without saying of what

step() { # title, command...
  local title=$1 start=$SECONDS
  shift
  echo "== $title"
  "$@" 2>&1 | tee -a "$log"
  local result=${PIPESTATUS[0]}
  [ "$result" -eq 0 ] || { status=1 && unfinished+=("$title"); }
  echo "== $title: $((SECONDS - start)) s"
}

export PYTHONPATH=$PWD/python OCCL_LIBRARY=$library OCCL_INCLUDE=$PWD/runtime/api
export OCCL_TORCH_FALLBACK=0 # an extension that does not build is an error
export SEED=${SEED:-$RANDOM$RANDOM} OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
echo "SEED=$SEED"

for version in "${versions[@]}"; do
  echo "== PyTorch $version"
  python=$(tools/dev/torch_cpu.py "$version")
  result=$?
  if [ $result -eq 3 ] && [ "${OCCL_TORCH_OPTIONAL:-}" = 1 ]; then
    echo "==== SKIPPED: no package index can be reached, so NOTHING was tested with torch $version"
    continue
  fi
  [ $result -eq 0 ] || exit 1
  step "extension for torch $version" "$python" python/occl/torch/build.py
  if [ "$version" = "${versions[0]}" ]; then
    step "operations and training" "$python" test/torch/cases.py
    step "failures" "$python" test/torch/failures.py
    step "operations and training, two islands" env ISLANDS=2 "$python" test/torch/cases.py
    step "failures, two islands" env ISLANDS=2 "$python" test/torch/failures.py
    step "programs that hang elsewhere, two islands" env ISLANDS=2 BACKEND=occl "$python" test/torch/hangs.py
    step "two network namespaces" "$python" test/torch/machines.py
    step "programs that hang elsewhere" "$python" test/torch/hangs.py
    for backend in occl gloo; do
      BACKEND=$backend step "torch's own tests, $backend" "$python" test/torch/suite.py
    done
    OCCL_TORCH_FALLBACK=1 # the backend in Python
    step "operations and training, in Python" "$python" test/torch/cases.py
    step "failures, in Python" "$python" test/torch/failures.py killed_rank killed_rank_messages made_again mismatch \
      after_destroy abort fork interrupt bad_ranks gone_in_backward far_timeout no_memory
    step "programs that hang elsewhere, in Python" env BACKEND=occl "$python" test/torch/hangs.py h5 s24 u1
    OCCL_TORCH_FALLBACK=0
    step "programs for GPUs, on CPUs" env OCCL_TEST_DEVICE=cpu "$python" test/torch/gpu/run.py
    for program in test/programs/torch_*.py; do # for GPUs and libnccl.so.2
      step "$program with occl" env LIMIT=180 BACKEND=occl "$python" "$program"
    done
    # The Python package's own tests, where there are any.
    if compgen -G "python/tests/test_*.py" >/dev/null; then
      step "Python package" "$python" -m pytest -q python/tests
    fi
  else
    step "operations and training, torch $version" "$python" test/torch/cases.py
    step "hangs, torch $version" env BACKEND=occl "$python" test/torch/hangs.py h5 h9 s24 u1 u5
  fi
done

passed=$(grep -c '^PASS ' "$log")
failed=$(grep -c '^FAIL ' "$log")
if pytest=$(grep -Eo '^[0-9]+ passed[^=]*' "$log"); then
  echo "Python package: $pytest"
fi
echo "==== make torch: $passed passed, $failed failed, in $((SECONDS - began)) s"
grep '^FAIL ' "$log"
for title in ${unfinished[@]+"${unfinished[@]}"}; do
  echo "FAILED: $title"
done
exit $status
