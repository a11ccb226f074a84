// Plans as text for people: one instruction in a line, for error reports of compiler and runtime,
// or whole ranks.
#pragma once

#include "plan/plan.h"

#include <iosfwd>
#include <optional>
#include <string>

namespace occl::plan {

/// Where Plan::instructions[index] stands.
Place placeOf(const Plan &plan, uint32_t index);

/// "rank 3, thread block 0, instruction 7". Needs no valid plan.
std::string describePlace(const Place &place);

/// "ring.coll:9:11", or nothing if the instruction has no location or an invalid one.
std::string describeLocation(const Plan &plan, uint32_t location);

/// "rank 3, thread block 0, instruction 7: recvReduceSend input[2] + rank 2 (channel 0) -> rank 4
/// (channel 0), at ring.coll:9:11". The plan's indices must be in range.
std::string describe(const Plan &plan, const Place &place);
std::string describe(const Plan &plan, uint32_t instruction);

/// What an instruction does, without its place: "recvReduceSend input[2] + ...".
std::string describeAction(const Plan &plan, const Instruction &instruction);

/// "rank 0 to rank 1, channel 0", or "rank 0 to ranks 1, 2 and 3, channel 0".
std::string describeConnection(const Plan &plan, const Connection &connection);

/// Writes the plan's head and the thread blocks of `rank`, or of all ranks, an instruction a line.
/// The plan's indices must be in range, and `rank` below plan.numRanks.
void printPlan(const Plan &plan, std::ostream &out, std::optional<uint32_t> rank = {});

} // namespace occl::plan
