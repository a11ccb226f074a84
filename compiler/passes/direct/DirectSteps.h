// What becomes of the steps whose messages are loaded or stored directly.
#pragma once

#include "compiler/passes/direct/DirectMessages.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace occl::passes {

/// What becomes of a step: nothing, one instruction, or up to three, since none may have both
/// connections and peers' buffers. What they hand on lies in the step's own destination or in new
/// scratch.
struct RewrittenStep {
  llvm::SmallVector<inst::Instruction, 3> instructions;
  bool usesScratch = false;
  bool isLegal = true;
};

/// With the ways that the messages have now. freeScratch: the first chunk of the rank's scratch
/// that nobody uses; a step with usesScratch takes as many from there as it has.
RewrittenStep rewriteStep(const DirectMessages &messages, StepRef ref, uint32_t freeScratch);

} // namespace occl::passes
