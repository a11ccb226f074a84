// The signals, waits and dependencies that a program with direct accesses needs.
#pragma once

#include "compiler/passes/direct/LinearOrder.h"

namespace occl::passes {

/// Adds to `program`, whose steps have thread blocks and no dependencies: dependencies between
/// steps of a rank that access the same memory, on whatever rank; signals and waits between such
/// steps of different ranks; and at the end of each rank waits for the last access of its memory by
/// each thread block elsewhere, in the thread block of the same number. Only where nothing implies
/// it yet, so that all conflicting accesses come in the order of `order`, in which the program can
/// run. A thread block gives all its signals on one counter, unless several thread blocks of one
/// rank wait for it.
void placeSignals(analysis::Program &program, const std::vector<StepRef> &order);

/// Words of memory that placeSignals takes.
uint64_t signalPlacementWords(const analysis::Program &program);

} // namespace occl::passes
