#!/bin/bash
# Installs into a fresh directory, then does what a newcomer does: compile a collective, build the example against the
# installed library, run it, and what README and docs/nccl.md show. Arguments: the archive, the example's source, a .coll file,
# README.md, nccl.md.
set -euo pipefail

archive=$1 example=$2 collective=$3 readme=$PWD/$4 nccl=$PWD/$5
prefix=$TEST_TMPDIR/prefix
mkdir -p "$prefix" "$TEST_TMPDIR/work"
tar -xf "$archive" -C "$prefix"
cp "$example" "$collective" "$TEST_TMPDIR/work"
cd "$TEST_TMPDIR/work"

export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig
# shellcheck disable=SC2046
g++ -std=c++20 -Wall -Wextra -Werror allreduce.cpp -o allreduce $(pkg-config --cflags --libs occl)
occlc compile "$(basename "$collective")" -D ranks=4 -o own.plan.json
occl-run -n 4 ./allreduce own.plan.json | sort >output
cat output
for rank in 0 1 2 3; do
  grep -qx "rank $rank of 4: sum\[999\] = 10" output
done

# README: its collective has the mistake that it shows, and none once that is mended; its program runs.
block() { # the text indented in README that begins so, up to a command or the next paragraph
  awk -v begin="    $1" 'index($0, begin) == 1 { on = 1; print substr($0, 5); next }
    on && (/^    \$/ || /^[^ ]/) { exit }
    on { print substr($0, 5) }' "$readme"
}
block "algorithm star" >star.coll
if occlc compile star.coll -o star.plan.json 2>error; then
  echo "README's mistake is none" >&2
  exit 1
fi
block "star.coll:" | sed '/^$/d' >shown
diff shown <(head -n "$(wc -l <shown)" error)
sed -i 's/input\[r\]\[0\]\.copy/sum.copy/' star.coll
occlc compile star.coll -o star.plan.json
occl-run --plan star.plan.json --count 10007 --iterations 2 | grep -x "check      0 wrong elements"
block "#include" >program.c
# shellcheck disable=SC2046
gcc -Wall -Wextra -Werror program.c $(pkg-config --cflags --libs occl) -o program
[ "$(occl-run -n 4 ./program | sort | uniq -c | xargs)" = "4 3996" ]

# docs/nccl.md: its commands, from the program on; then the library comes first, as for programs that have an NCCL.
awk '/^    cat > sum.cpp/ { on = 1 } on && !/^    / { exit } on { print substr($0, 5) }' "$nccl" >commands.sh
[ "$(PREFIX=$prefix bash -euo pipefail commands.sh)" = 10 ]
[ "$(OCCL_NCCL_HOST=1 LD_LIBRARY_PATH=$prefix/lib/occl/nccl ./sum)" = 10 ]
[ "$(OCCL_NCCL_HOST=1 LD_PRELOAD=$prefix/lib/occl/nccl/libnccl.so.2 ./sum)" = 10 ]
if [ -e "$prefix/lib/libnccl.so.2" ]; then
  echo "libnccl.so.2 is where programs find it unasked" >&2
  exit 1
fi

# The header with MPI's names, where there is an MPI: what is installed is enough, in C and in C++.
if command -v mpicc >/dev/null; then
  cat >mpix.c <<'PROGRAM'
#include <occl/mpix_occl.h>
int main(void) {
  MPIX_Request request = MPIX_REQUEST_NULL;
  int value = 0;
  MPI_Init(NULL, NULL);
  const int code = MPIX_Psend_init(&value, 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
  MPI_Finalize();
  return code == MPI_ERR_COMM ? 0 : 1; /* nothing has been attached */
}
PROGRAM
  for standard in c99 c11 gnu17 c++20; do
    language=$([[ $standard == c++* ]] && echo c++ || echo c)
    # shellcheck disable=SC2046
    OMPI_CXX=g++ "$([ "$language" = c ] && echo mpicc || echo mpic++)" -x "$language" -std=$standard -pedantic -DOMPI_SKIP_MPICXX \
      -Wall -Wextra -Werror mpix.c -x none $(pkg-config --cflags --libs occl) -o mpix
    OMPI_MCA_btl=self OMPI_MCA_plm=isolated TMPDIR=/tmp ./mpix
  done
fi

occl doctor | grep "2 processes: right"

# An editor gets an answer.
hello='{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
{ printf 'Content-Length: %d\r\n\r\n%s' "${#hello}" "$hello" | occl lsp || true; } | grep -q '"hoverProvider":true'

# Another launcher than ours: the variables that torchrun sets.
port=$RANDOM ranks=()
for rank in 0 1 2 3; do
  RANK=$rank WORLD_SIZE=4 LOCAL_WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=$port \
    ./allreduce own.plan.json &
  ranks+=($!)
done
for process in "${ranks[@]}"; do wait "$process"; done

# Device functions as bitcode, where there is what makes them.
if type clang++-19 llc-19 llvm-as-19 llvm-dis-19 >/dev/null 2>&1; then
  [ -s "$prefix/lib/occl/occl_device.bc" ]
fi

# The installed plans run too.
for plan in "$prefix"/share/occl/plans/*/*.json; do
  occl-run --plan "$plan" --count 10007 --iterations 2 | grep -x "check      0 wrong elements"
done

# So do the topologies.
occlc stats own.plan.json --topology "$prefix/share/occl/topologies/h200.topo" -D gpus=4 | grep "4 ranks"

# Nothing but the interface leaves the library.
if nm -D --defined-only "$prefix/lib/liboccl.so.0" | awk '{print $3}' | grep -v '^occl[A-Z]'; then
  echo "the library exports the symbols above" >&2
  exit 1
fi
