// For tests of the verifier: a plan of a few instructions, from its head to the verifier's words.
#pragma once

#include "plan/model/builder.h"

#include <string>

namespace occl::plan::testing {

/// What verifyPlan says of a wrong plan; "accepted" if it is right.
std::string wordsOn(const Plan &plan);

/// A plan of a user's own collective: output chunk 0 of the last rank is input chunk 0 of rank 0.
PlanBuilder start(uint32_t numRanks);

/// An instruction on one chunk.
constexpr Instruction one(Opcode opcode, bool final = false) {
  return {.opcode = opcode, .final = final, .count = 1};
}

} // namespace occl::plan::testing
