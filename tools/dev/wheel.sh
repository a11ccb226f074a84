#!/bin/bash
# The Python package as dist/occl-*.whl, with native files that Bazel builds, or of OCCL_PREBUILT. Then the wheel is
# installed in an empty environment and tried.
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=tools/dev/python_venv.sh
source tools/dev/python_venv.sh
python_venv wheel 'setuptools>=70.1'

rm -f dist/occl-*.whl
"$venv/bin/pip" -q --disable-pip-version-check wheel -v --no-deps --no-build-isolation --wheel-dir dist .
wheel=$(echo dist/occl-*.whl)

trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
"${PYTHON:-python3}" -m venv "$trial"
"$trial/bin/pip" -q --disable-pip-version-check install "$wheel"
(
  unset PYTHONPATH OCCL_LIBRARY OCCL_COMPILER
  cd /
  "$trial/bin/python" -c 'import occl; print(occl.run(occl.algorithms("allreduce/ring"), ranks=8))'
  # Processes that find OCCL_NCCL_PRELOAD in their environment have its libnccl.so.2 from their start on.
  in_place='import sys; sys.exit("occl/_native/libnccl.so.2" not in open("/proc/self/maps").read())'
  OCCL_NCCL_PRELOAD=1 "$trial/bin/python" -c "$in_place"
  if "$trial/bin/python" -c "$in_place"; then
    echo "libnccl.so.2 is loaded unasked" >&2
    exit 1
  fi
)
echo "$wheel"
