#include "plan/verify/checks/lifetimes.h"

#include "plan/verify/checks/happens_before.h"

#include <map>

namespace occl::plan::verify {

namespace {

/// For each rank, the last instruction of each thread block elsewhere that accesses its memory.
using LastAccesses = std::vector<std::map<uint32_t, uint32_t>>;

LastAccesses findLastAccesses(const Network &network) {
  const Plan &plan = network.plan;
  // The last one of each thread block is enough: what is complete before it, is complete in the
  // block's order.
  LastAccesses accesses(plan.numRanks);
  for (uint32_t index = 0; index < plan.instructions.size(); ++index) {
    const Instruction &instruction = plan.instructions[index];
    // Other instructions touch only their own rank's buffers.
    if (instruction.opcode != Opcode::LoadReduceStore)
      continue;
    uint32_t block = network.blockOf[index], rank = network.rankOfBlock[block];
    for (uint32_t i = 0; i < uint32_t{instruction.numSources} + instruction.numDestinations; ++i) {
      uint32_t owner = plan.operands[instruction.firstOperand + i].rank;
      if (owner != rank)
        accesses[owner][block] = index;
    }
  }
  return accesses;
}

/// The last instructions of the rank's thread blocks: a path to any of its instructions goes on to
/// one of them.
std::vector<uint32_t> endsOf(const Plan &plan, uint32_t rank) {
  std::vector<uint32_t> ends;
  for (const ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank]))
    if (block.numInstructions != 0)
      ends.push_back(block.firstInstruction + block.numInstructions - 1);
  return ends;
}

Finding outlives(const Plan &plan, uint32_t access, uint32_t owner) {
  std::string name = "rank " + std::to_string(owner);
  VerifyError error =
      errorAt(plan, access, Code::Outlives,
              "it may access " + name + "'s memory after " + name +
                  " has ended: signal that it is done, and let " + name + " wait for it");
  error.witness = {noteAt(plan, access)};
  return error;
}

} // namespace

Finding checkLifetimes(const Network &network, const Execution &execution) {
  const Plan &plan = network.plan;
  LastAccesses accesses = findLastAccesses(network);
  PathSearch search(network, execution);
  std::vector<uint32_t> last;
  // For each rank whose memory others access: all these accesses must be complete before the rank's
  // last instructions are. Asked for all of them at once, since one search answers that.
  for (uint32_t owner = 0; owner < plan.numRanks; ++owner) {
    last.clear();
    for (auto [block, access] : accesses[owner])
      last.push_back(access);
    std::vector<uint32_t> ends = endsOf(plan, owner);
    if (last.empty() || search.leads(last, ends))
      continue;
    // Only when that fails, one by one, to name the culprit.
    for (uint32_t access : last)
      if (!search.leads({&access, 1}, ends))
        return outlives(plan, access, owner);
  }
  return {};
}

} // namespace occl::plan::verify
