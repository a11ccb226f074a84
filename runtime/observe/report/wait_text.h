// Waits in words.
#pragma once

#include "plan/model/plan.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace occl::insight {

/// The instruction at a place, or nullptr if the plan has no such place.
const plan::Instruction *findInstruction(const plan::Plan &plan, const plan::Place &place);

/// "thread block 0, instruction 2 (recv) at ring.coll:9:11"; without what is in brackets and behind
/// them if the plan is unknown (nullptr) or does not have it.
std::string describePosition(const plan::Plan *plan, const plan::Place &place);

/// "640 us", "12.3 ms" or "4.20 s".
std::string describeDuration(uint64_t nanoseconds);

/// `heading`, then a line for each wait, in at most mostBytes bytes: if not all of them fit, the
/// last line says how many more there are. The heading fits.
std::string listWaits(std::string heading, std::span<const std::string> waits, size_t mostBytes);

/// The text of a deadlock: `waits` are those of the cycle, and the text is cut as by listWaits().
std::string describeCycle(std::span<const std::string> waits, size_t mostBytes);

} // namespace occl::insight
