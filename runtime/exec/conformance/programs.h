// The plans of the conformance suite: every opcode that moves or folds data, one and several
// destinations, one and several chunks a message, scratch, dependencies.
#pragma once

#include "plan/model/plan.h"

#include <span>

namespace occl::interpreter::conformance {

struct NamedProgram {
  const char *name;
  plan::Plan (*make)(uint32_t numRanks);
};

std::span<const NamedProgram> programs();

/// Every rank multicasts its whole input as one message of numRanks chunks; odd chunks pass through
/// scratch in messages of their own on the way to the fold.
plan::Plan aggregatedAllReduce(uint32_t numRanks);

} // namespace occl::interpreter::conformance
