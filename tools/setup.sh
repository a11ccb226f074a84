#!/bin/bash
# Installs what building needs and this Debian lacks; does nothing, quickly, when all is there.
#   tools/setup.sh [bench|format|fuzz|python|torch|verbs|view]...   (nothing named: what `make test` and `make demo` need)
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
  openmpi-bin libopenmpi-dev # the header with MPI's names is tested with it, and benchmarks compare with it
)
for group in "$@"; do
  case "$group" in
  bench) packages+=(python3-matplotlib) ;; # draws plots
  format) packages+=(clang-format) ;;
  fuzz) packages+=(clang-19 libclang-rt-19-dev) ;; # libFuzzer
  python) packages+=(python3-venv python3-pip) ;; # wheels and tests of the Python package
  torch) packages+=(python3-dev python3-venv) ;; # PyTorch's backend
  verbs) # a kernel with soft RoCE, and what uses it
    packages+=(linux-source-6.1 xz-utils flex bison bc busybox-static)
    packages+=(ibverbs-providers ibverbs-utils)
    ;;
  view) packages+=(chromium) ;; # in which the page of `occl view` is tested
  *)
    echo "tools/setup.sh: no group '$group'; there are: bench, format, fuzz, python, torch, verbs, view" >&2
    exit 2
    ;;
  esac
done

# An unknown package makes dpkg-query fail; the others are listed all the same.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx "installed $package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing; run this as root, or install sudo:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get -q update
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
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -q install -y --no-install-recommends "${missing[@]}"
