// Executes plans on numbers, in random order: what verifyPlan is tested against. Shares no code
// with the verifier but the list of standard collectives.
#pragma once

#include "plan/model/plan.h"

#include <random>
#include <string>

namespace occl::plan::testing {

/// Executes one tile of `plan` with one random integer a chunk, the thread blocks advancing in
/// random order, and compares with what the collective promises. Returns what went wrong
/// (a deadlock, or else the first fault: "undefined read", ...), or nothing. The plan must be of
/// good shape and its collective a standard one, or it must have requirements.
std::string executeRandomly(const Plan &plan, bool inPlace, std::mt19937 &random);

} // namespace occl::plan::testing
