#!/bin/bash
# The tests of the Python package in the checkout, in a virtual environment with numpy, ml_dtypes, pytest and mypy. Builds
# what they need, unless OCCL_LIBRARY and OCCL_COMPILER say where it is. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/../.."

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
