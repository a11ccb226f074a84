// Waits in words.
#pragma once

#include "plan/plan.h"

#include <cstdint>
#include <string>

namespace occl::insight {

/// The instruction at a place, or nullptr if the plan has no such place.
const plan::Instruction *findInstruction(const plan::Plan &plan, const plan::Place &place);

/// "thread block 0, instruction 2 (recv) at ring.coll:9:11"; without what is in brackets and behind
/// them if the plan is unknown (nullptr) or does not have it.
std::string describePosition(const plan::Plan *plan, const plan::Place &place);

/// "640 us", "12.3 ms" or "4.20 s".
std::string describeDuration(uint64_t nanoseconds);

} // namespace occl::insight
