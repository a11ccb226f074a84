#!/bin/bash
# Whether OCCL works over a network plugin of NCCL: what every transport must do, random traffic, and collectives and transfers of four
# ranks in two network namespaces:
#   test/machines/public_plugin.sh PATH [VARIABLE...]
# VARIABLES are those of the environment that the plugin looks at, such as FI_PROVIDER.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
plugin=$(realpath -e "$1")
shift
cd "$(dirname "$0")/../.."

options=(--test_env=OCCL_TEST_NCCL_NET="$plugin" --test_env=OCCL_TEST_EXPORT="$*" --test_env=OCCL_DEBUG=info)
for name in "$@"; do
  options+=(--test_env="$name")
done
status=0
tools/dev/bazel.sh test "${options[@]}" --nocache_test_results --spawn_strategy=local --keep_going --test_output=errors \
  --test_filter='*Given*' //runtime/net/transport/nccl_net:conformance_test || status=$?
tools/dev/bazel.sh test "${options[@]}" --nocache_test_results --keep_going --test_output=errors \
  --test_env=OCCL_REQUIRE_NAMESPACES=1 //test/machines:nccl_net_test || status=$?
exit $status
