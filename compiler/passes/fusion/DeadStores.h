// Stores that nobody reads, and scratch that nobody uses.
#pragma once

#include "compiler/analysis/Program.h"

namespace occl::passes {

/// Drops local stores whose content is overwritten or lost before anybody reads it, in any mode
/// that the program claims, and local instructions that have no effect left, as copies onto
/// themselves. What is received is
/// still received.
void dropDeadStores(const analysis::Program &program, analysis::Rank &rank);

/// Moves the parts of scratch that are used next to each other, in their order, and frees the rest.
void compactScratch(analysis::Rank &rank);

} // namespace occl::passes
