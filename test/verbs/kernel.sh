#!/bin/bash
# Prints the path of a User-Mode Linux kernel with soft RoCE. Builds it from Debian's linux-source-6.1 if the cache has none of this
# configuration and version, which takes some minutes once; others that ask meanwhile wait.
set -euo pipefail
here=$(dirname "$(realpath "$0")")

# Ticks a second. The guest has one processor, and whoever polls keeps it for a tick or more (boot.sh): with the 100 that User-Mode
# Linux has by itself each answer of another process would take 10 ms.
ticks=1000

version=$(dpkg-query -W -f '${Version}' linux-source-6.1) || {
  echo "kernel.sh: there is no linux-source-6.1 here; tools/setup.sh verbs installs it" >&2
  exit 1
}
options=$(grep '^CONFIG_' "$here/kernel.config")
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/occl-uml
kernel=$cache/linux-$(sha256sum <<<"$version $ticks $options" | cut -c 1-16)

isThere() {
  [ -x "$kernel" ] && echo "$kernel"
}

# Asked twice: who waits for another configuration's kernel need not have waited, who waits for this one's has it then.
isThere && exit
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
isThere && exit

work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "Building a kernel, once, from linux-source-6.1 $version; this takes some minutes: $kernel" >&2
# A third of the source is drivers of GPUs, of which only the Makefiles are looked at.
tar -xf /usr/src/linux-source-6.1.tar.xz -C "$work" --strip-components=1 --exclude='*/drivers/gpu/*.[ch]'
cd "$work"
sed -i "/^config HZ\$/,/default/s/default 100/default $ticks/" arch/um/Kconfig

# An option that depends on one that is missing would be dropped without a word.
make -s ARCH=um KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig >&2
lost=$(grep -vxFf .config <<<"$options"$'\n'"CONFIG_HZ=$ticks" || true)
if [ -n "$lost" ]; then
  echo "kernel.sh: this kernel does not take these lines of kernel.config:" $lost >&2
  exit 1
fi

if ! nice make -s ARCH=um -j"$(nproc)" linux >log 2>&1; then
  tail -n 20 log >&2
  exit 1
fi
strip -o linux.stripped linux
mv linux.stripped "$kernel"
echo "$kernel"
