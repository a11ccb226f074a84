#!/bin/bash
# Fuzzes a target for some time, from the inputs that are kept for it and the files named; new inputs go to a folder beside.
#   fuzz.sh <target> <seconds> [<file or folder>...]
set -euo pipefail

target=$1 seconds=$2
shift 2
cd "$(dirname "$0")/../.."
found=${TMPDIR:-/tmp}/occl-fuzz/$target
mkdir -p "$found"
for input in "$@"; do
  find "$input" -type f -size -64k -exec cp -n -t "$found" {} +
done
CC=clang-19 tools/dev/bazel.sh build --config=fuzz "//test/fuzz:$target"
echo "fuzzing $target for $seconds s; inputs in $found"
"bazel-bin/test/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=20000 \
  -artifact_prefix="$found." -print_final_stats=1 -verbosity=0 "$found" "test/fuzz/corpus/$target"
