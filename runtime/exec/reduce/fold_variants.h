// The fold kernels of each instruction set that they were built for. Use foldTable() (fold_host.h).
#pragma once

#include "runtime/exec/reduce/fold_host.h"

namespace occl::interpreter {

namespace baseline {
FoldTable makeFoldTable();
}

/// Only where the processor has AVX2 and F16C (everywhere, if it is not an x86-64).
namespace avx2 {
FoldTable makeFoldTable();
}

/// Only where the processor has AVX-512 F, BW, DQ and VL as well (everywhere, if it is not an
/// x86-64).
namespace avx512 {
FoldTable makeFoldTable();
}

} // namespace occl::interpreter
