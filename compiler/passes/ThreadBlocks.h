// Which thread block does which step of a rank.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/Inst.h"

namespace occl::passes {

struct BlockOptions {
  /// Thread blocks that a rank may have.
  uint32_t limit = 1;
};

/// Assigns the steps of rank `index`, whose messages are on connections. Steps at one end of a
/// connection have one thread block: the one asked for, or one of those with least work. The blocks
/// that have steps are numbered from 0 on, in the order of the numbers asked for. Reports steps
/// that ask for what cannot be.
mlir::LogicalResult assignThreadBlocks(analysis::Program &program, uint32_t index,
                                       const BlockOptions &options);

} // namespace occl::passes
