#!/bin/bash
# Fuzzes a target for some time, from the inputs that are kept for it and the files named; new inputs go to a folder beside.
#   fuzz.sh <target> <seconds> [<file or folder>...]
set -euo pipefail

target=$1 seconds=$2
shift 2
cd "$(dirname "$0")/../.."
found=${TMPDIR:-/tmp}/occl-fuzz/$target
mkdir -p "$found"

# A file of inputs/a/b becomes a_b: many have the same name.
add_seeds() {
  find "$1" -type f -size -64k ! -path "*corpus*" | while read -r file; do
    cp -n "$file" "$found/$(echo "$file" | tr / _)"
  done
}

# The plans of all algorithms, for the ranks that they have by default, or 4.
compile_seeds() {
  tools/dev/bazel.sh build //tools/occlc
  find algorithms -name '*.coll' | while read -r file; do
    seed=$found/$(echo "$file" | tr / _)
    for format in json cbor; do
      bazel-bin/tools/occlc/occlc compile "$file" -D ranks=4 -o "$seed.plan.$format" 2>/dev/null ||
        bazel-bin/tools/occlc/occlc compile "$file" -o "$seed.plan.$format" 2>/dev/null || true
    done
  done
}

for input in "$@"; do
  add_seeds "$input"
done
if [ "$target" = plan ]; then
  compile_seeds
fi
case $target in
frontend | formatter) words=coll ;;
*) words=$target ;;
esac
CC=clang-19 tools/dev/bazel.sh build --config=fuzz "//test/fuzz:$target"
# A name of its own for the build: others may build into bazel-bin meanwhile.
cp -f "bazel-bin/test/fuzz/$target" "$found.program"
echo "fuzzing $target for $seconds s; inputs in $found"
# Most of the time would go into remembering freed memory and where it came from.
export ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=2:allow_user_poisoning=0
# A program with as many chunks as a plan may have takes 2.5 GB.
"$found.program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=8192 -dict="test/fuzz/words/$words.dict" \
  -artifact_prefix="$found." -print_final_stats=1 -verbosity=0 "$found" "test/fuzz/corpus/$target"
