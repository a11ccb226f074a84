#!/bin/bash
# Installs what building needs and this Debian lacks; does nothing, quickly, when all is there.
#   tools/setup.sh [bench|check|format|fuzz|python|torch|triton|verbs|view]...   (nothing named: what `make test` and `make demo` need)
set -euo pipefail

packages=(
  bazel-bootstrap g++ make python3
  llvm-19-dev libmlir-19-dev mlir-19-tools llvm-19-tools # the compiler; FileCheck and lit for its tests
  libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev
  libhwloc-dev # finds the cores and memories of a machine
  libexpat1-dev # reads XML of other tools
  libssl-dev # HMAC and SHA-256: ranks of several machines prove who they are
  libibverbs-dev # the header of RDMA's verbs; the library itself is loaded where there is one
  libzstd-dev # packs the plans that come with the library
  libgtest-dev libgmock-dev
  iproute2 # ip: network namespaces in the place of machines, for tests
  pkg-config # the example that builds against the installed library
  spin # verifies the model of the daemon (test/model)
)
# The header with MPI's names is tested with it, and benchmarks compare with it; without it Bazel leaves those out.
optional=(openmpi-bin libopenmpi-dev)
command -v node >/dev/null || packages+=(nodejs) # runs the scripts of pages in tests
for group in "$@"; do
  case "$group" in
  bench) packages+=(python3-matplotlib) ;; # draws plots
  check) packages+=(clang-format clang-tidy-19) ;;
  format) packages+=(clang-format) ;;
  fuzz) packages+=(clang-19 libclang-rt-19-dev) ;; # libFuzzer
  python) packages+=(python3-venv python3-pip) ;; # wheels and tests of the Python package
  torch) packages+=(python3-dev python3-venv) ;; # PyTorch's backend
  triton) optional+=(clang-19) ;; # the device functions as bitcode, which Bazel leaves out without it
  verbs) # a kernel with soft RoCE, and what uses it
    packages+=(linux-source-6.1 xz-utils flex bison bc busybox-static)
    packages+=(ibverbs-providers ibverbs-utils)
    ;;
  view) # in which the page of `occl view` is tested: the smallest, half a GB with what it needs
    command -v chromium google-chrome >/dev/null || packages+=(chromium-headless-shell)
    ;;
  *)
    echo "tools/setup.sh: no group '$group'; there are: bench, check, format, fuzz, python, torch, triton, verbs, view" >&2
    exit 2
    ;;
  esac
done

# An unknown package makes dpkg-query fail; the others are listed all the same.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" "${optional[@]}" 2>/dev/null || true)
missing=() wanted=()
for package in "${packages[@]}"; do
  grep -qx "installed $package" <<<"$installed" || missing+=("$package")
done
for package in "${optional[@]}"; do
  grep -qx "installed $package" <<<"$installed" || wanted+=("$package")
done
[ $((${#missing[@]} + ${#wanted[@]})) -eq 0 ] && exit 0

go_without() {
  echo "tools/setup.sh: going on without ${wanted[*]}: $1" >&2
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null && [ ${#missing[@]} -eq 0 ]; then
    go_without "only root can install them"
    exit 0
  elif ! command -v sudo >/dev/null; then
    echo "These packages are missing; run this as root, or install sudo:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

install() {
  echo "Installing $# packages: $*"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"
}

if ! "${as_root[@]}" apt-get -q update; then
  [ ${#missing[@]} -eq 0 ] || exit 1
  go_without "the package sources cannot be read"
  exit 0
fi
unavailable=()
for package in "${missing[@]}"; do
  policy=$(apt-cache policy "$package")
  [[ $policy =~ Candidate:\ [^\(] ]] || unavailable+=("$package")
done
if [ ${#unavailable[@]} -ne 0 ]; then
  echo "No package source has: ${unavailable[*]}" >&2
  echo "OCCL builds on Debian 12 (bookworm). Its main archive has them all; see /etc/apt/sources.list." >&2
  exit 1
fi
[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
[ ${#wanted[@]} -eq 0 ] || install "${wanted[@]}" || go_without "they cannot be installed"
