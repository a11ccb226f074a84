# For the tests here: what the cost model predicts for plans. Sets $occlc, $algorithms and $topologies; work is done in $TEST_TMPDIR.

# us <plan> <ranks> <bytes>: the predicted microseconds on H200 GPUs at one switch for parts of so many bytes.
us() {
  "$occlc" stats "$1" --topology "$topologies/h200.topo" -D "gpus=$2" --bytes "$3" |
    awk '/^predicted on/ {getline; getline; print $4 == "ms" ? 1000 * $3 : $3; exit}'
}

# compile <plan> <collective> <ranks> <algorithm>[:<parameter>] <option>...
compile() {
  local plan=$1 collective=$2 ranks=$3 algorithm=$4
  shift 4
  [ "${algorithm%:*}" = "$algorithm" ] || set -- -D "${algorithm#*:}" "$@"
  "$occlc" compile "$algorithms/$collective/${algorithm%:*}.coll" -D "ranks=$ranks" "$@" -o "$plan"
}

# atMost <factor> <a> <b>: whether a <= factor * b.
atMost() { awk -v f="$1" -v a="$2" -v b="$3" 'BEGIN {exit !(a > 0 && a <= f * b)}'; }
