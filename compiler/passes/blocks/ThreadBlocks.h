// Which thread block does which step of a rank.
#pragma once

#include "compiler/analysis/Program.h"
#include "compiler/dialect/inst/Inst.h"
#include "compiler/passes/blocks/BlockLayouts.h"

namespace occl::passes {

struct BlockOptions {
  /// Thread blocks that a rank may have.
  uint32_t limit = 1;
  BlockLayout layout = BlockLayout::Balanced;
  /// Whether local steps are distributed like others, instead of staying with the message before
  /// them.
  bool spreadLocal = false;
};

/// When the steps of a rank can begin if nothing but data holds them up, and how long each takes;
/// empty if the layout does not ask.
struct StepTimes {
  llvm::ArrayRef<uint32_t> begins, durations;
};

/// Assigns the steps of rank `index`, whose messages are on connections. Steps at one end of a
/// connection have one thread block: the one asked for, or one that the layout says. The blocks
/// that have steps are numbered from 0 on, in the order of the numbers asked for. Reports steps
/// that ask for what cannot be.
mlir::LogicalResult assignThreadBlocks(analysis::Program &program, uint32_t index,
                                       const BlockOptions &options, const StepTimes &times);

} // namespace occl::passes
