#!/bin/bash
# check.sh [all | <commit> | <file>...]: what a commit is looked at for, before it is made: the layout by clang-format, mistakes by clang-tidy
# (.clang-tidy), and the tests of names, includes, pages and folders. Nothing given: of what differs from the last commit; <commit>: from
# that one; all: of all files, which takes clang-tidy half an hour. Ends with what was found, and a status of 1 if that is anything.
set -uo pipefail
cd "$(dirname "$0")/../.."

if [ $# -eq 1 ] && [ "$1" = all ]; then
  mapfile -t files < <(git ls-files)
elif [ $# -ne 0 ] && [ -e "$1" ]; then
  files=("$@")
elif ! git rev-parse --verify --quiet "${1:-HEAD}^{commit}" > /dev/null; then
  echo "check.sh: '$1' is neither 'all' nor a commit nor a file" >&2
  exit 2
else
  mapfile -t files < <(git diff --name-only --diff-filter=d "${1:-HEAD}" && git ls-files --others --exclude-standard)
fi
# Those of other interpreters and of MPI need headers that few machines have, and one a version on its command line.
sources=() units=()
for file in "${files[@]}"; do
  case "$file" in
  *.h | *.hpp | *.cpp | *.c | *.cu | *.cuh) sources+=("$file") ;;
  esac
  case "$file" in
  python/* | *fuzz* | *mpi* | bench/host_floor.cpp | */nccl_net/testing/exports.cpp) ;;
  *.cpp) units+=("$file") ;;
  esac
done

failed=0
beside=$(mktemp)
trap 'rm -f "$beside"' EXIT
said() { # what, status; what was written beside the findings says why it failed
  [ "$2" -eq 0 ] && echo "passed: $1" && return
  grep -v " warnings* generated" "$beside"
  echo "FAILED: $1"
  failed=1
}
[ ${#sources[@]} -eq 0 ] || printf '%s\0' "${sources[@]}" | xargs -0 clang-format --dry-run -Werror
said "layout of ${#sources[@]} files" $?

# The headers that are made come from a build.
includes=(-I. -Ibazel-bin -isystem /usr/lib/llvm-19/include)
cuda=${CUDA_HOME:-/usr/local/cuda}/include
[ ! -d "$cuda" ] || includes+=(-isystem "$cuda")
[ ${#units[@]} -eq 0 ] ||
  printf '%s\0' "${units[@]}" | xargs -0 -P "$(nproc)" -I{} clang-tidy-19 --quiet {} -- -std=c++20 "${includes[@]}" 2> "$beside"
said "clang-tidy of ${#units[@]} files" $?

tools/dev/bazel.sh test --test_output=errors --noshow_progress --test_summary=none -- //test/layering/... //test/mutation:mutants_test > "$beside" 2>&1
said "names, includes, pages, folders (make test says more)" $?
exit $failed
