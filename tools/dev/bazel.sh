#!/bin/bash
# Bazel, with its caches in a place that can be written whatever HOME is. The first argument is the Bazel command.
set -euo pipefail

if [ -z "${HOME:-}" ] || ! mkdir -p "$HOME/.cache/occl-bazel" 2>/dev/null ||
  [ ! -w "$HOME/.cache/occl-bazel" ]; then
  HOME="${TMPDIR:-/tmp}/occl-home-$(id -u)"
  export HOME
  mkdir -p -m 700 "$HOME/.cache/occl-bazel"
  [ -O "$HOME" ] || { echo "$HOME belongs to someone else; set HOME" >&2; exit 1; }
fi

command=$1
shift
case $command in shutdown | version | help) exec bazel --host_jvm_args=-Xmx1g "$command" "$@" ;; esac # they build nothing
# What is installed while a server lives is seen by it (third_party/chromium, third_party/clang).
chromium=$(command -v chromium chromium-headless-shell google-chrome | tr '\n' ' ' || true)
clang=$(command -v clang++-19 llc-19 llvm-as-19 llvm-dis-19 | tr '\n' ' ' || true)
exec bazel --host_jvm_args=-Xmx1g "$command" --disk_cache="$HOME/.cache/occl-bazel" --repo_env=OCCL_CHROMIUM="$chromium" \
  --repo_env=OCCL_CLANG="$clang" "$@"
