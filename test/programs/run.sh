#!/bin/bash
# run.sh DIR [PROGRAM]...: runs the programs of this folder with DIR/libnccl.so.2 in the place of
# NCCL, on a machine with a GPU and what each is for: PyTorch, transformers, accelerate, Lightning,
# CuPy, JAX; what is not there is skipped. All ranks use the first GPU, or, of processes, so many in
# turn as OCCL_TEST_GPUS says. OCCL_TEST_RANKS: how many ranks (2). OCCL_TEST_MACHINES=1: as on two
# machines, in turn. A program has LIMIT seconds (60).
# PYTHON: which one (python3). Ends with a line "N passed, N failed, N skipped".
here=$(cd "$(dirname "$0")" && pwd)
library=$(readlink -f "${1:?usage: run.sh DIR_OF_LIBNCCL [PROGRAM]...}/libnccl.so.2") || exit 2
[ -f "$library" ] || { echo "run.sh: there is no $library" >&2; exit 2; }
shift
[ $# -ne 0 ] || set -- torch_collectives torch_graph torch_ddp torch_resnet torch_fsdp torch_tensor_parallel \
  torch_pipeline torch_experts torch_memory torch_pool transformers_llama accelerate_ddp lightning_ddp \
  cupy_sums jax_psum jax_devices
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export OCCL_NCCL_LIBRARY=$library NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$logs/%p.log PYTHONUNBUFFERED=1
export LIMIT=${LIMIT:-60}
passed=0 failed=0 skipped=0
for program in "$@"; do
  program=$(basename "$program" .py) begin=$SECONDS
  module=${program%%_*}
  if ! "${PYTHON:-python3}" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$module'))"; then
    echo "SKIPPED $program: this Python has no $module"
    skipped=$((skipped + 1))
    continue
  fi
  rm -f "$logs"/*.log
  LD_PRELOAD=$library timeout -k 5 "$LIMIT" "${PYTHON:-python3}" "$here/$program.py" \
    >"$logs/output" 2>&1
  status=$?
  if [ $status -eq 0 ] && tail -1 "$logs/output" | grep -q '^SKIPPED '; then
    tail -1 "$logs/output"
    skipped=$((skipped + 1))
  elif [ $status -eq 0 ] && tail -1 "$logs/output" | grep -q '^OK '; then
    echo "PASSED $program, $((SECONDS - begin)) s"
    grep -v '^OK ' "$logs/output" | grep -v '^OCCL (libnccl): has no meaning' | tail -3
    passed=$((passed + 1))
  else
    echo "FAILED $program: status $status, $((SECONDS - begin)) s"
    tail -40 "$logs/output"
    tail -n 3 "$logs"/*.log 2>/dev/null
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
