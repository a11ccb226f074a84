// Executes a program with each rank's steps one after another, as they stand: much cheaper than to
// find out what may overtake what, and usually enough.
#pragma once

#include "compiler/analysis/StepGraph.h"

namespace occl::analysis {

/// Whether the program completes with connections of `depth` messages if every rank runs its steps
/// strictly in their order. Then it completes in any other order as well that keeps what its thread
/// blocks, its memory and its connections ask for; the converse does not hold. False if the
/// messages of a connection have different orders at its ends. Linear.
bool completesInOrder(const Program &program, const Network &network, uint32_t depth);

} // namespace occl::analysis
