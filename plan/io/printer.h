// Plans as text for people: one instruction in a line, for error reports of compiler and runtime,
// or whole ranks.
#pragma once

#include "plan/model/plan.h"

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

/// What else is known about the parts of a plan that is printed.
class PlanNotes {
public:
  virtual ~PlanNotes() = default;
  /// Of Plan::threadBlocks[index], behind its number.
  virtual std::string ofBlock(uint32_t index) const = 0;
  /// Of Plan::instructions[index], on the line below it, behind its place in the source.
  virtual std::string ofInstruction(uint32_t index) const = 0;
  /// Likewise, on a further line; "" for none.
  virtual std::string ofWaits(uint32_t index) const = 0;
};

struct PrintOptions {
  std::optional<uint32_t> rank = {};        // below plan.numRanks; nothing: all
  std::optional<uint32_t> threadBlock = {}; // of each of these ranks that has it; nothing: all
  const PlanNotes *notes = nullptr;
};

/// Writes the plan's head and its thread blocks: of each instruction what it does, and below, where
/// it comes from and what the notes say. Lines have at most 80 columns, but for words that are
/// longer. The plan's indices must be in range.
void printPlan(const Plan &plan, std::ostream &out, const PrintOptions &options = {});

} // namespace occl::plan
