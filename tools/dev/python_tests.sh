#!/bin/bash
# The tests of the Python package in the checkout, in a virtual environment with numpy, ml_dtypes, pytest and mypy. Builds
# what they need, unless OCCL_LIBRARY and OCCL_COMPILER say where it is.
#   python_tests.sh [--python PYTHON] [ARGUMENT OF PYTEST]...    the interpreter; default: PYTHON of the environment, or python3
#   python_tests.sh --each [ARGUMENT OF PYTEST]...               with each of 3.11 to 3.14 that is there as python3.N
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1:-}" = --each ]; then
  shift
  tried=0
  for version in 3.11 3.12 3.13 3.14; do
    if ! "python$version" -c '' 2>/dev/null; then
      echo "== Python $version: not there"
      continue
    fi
    echo "== Python $version"
    tools/dev/python_tests.sh --python "python$version" "$@"
    tried=$((tried + 1))
  done
  [ $tried -ne 0 ]
  exit
fi
if [ "${1:-}" = --python ]; then
  export PYTHON=$2
  shift 2
fi

# shellcheck source=tools/dev/python_venv.sh
source tools/dev/python_venv.sh
python_venv tests numpy ml_dtypes pytest mypy

if [ -z "${OCCL_LIBRARY:-}" ] || [ -z "${OCCL_COMPILER:-}" ]; then
  tools/dev/bazel.sh build --show_progress --show_progress_rate_limit=30 \
    //packaging:liboccl.so.0 //nccl:libnccl.so.2 //tools/occlc //tools/occl-run
fi
export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
"$venv/bin/mypy" --cache-dir "$venv/mypy" --config-file pyproject.toml
"$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
