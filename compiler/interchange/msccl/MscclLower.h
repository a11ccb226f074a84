// A plan in single steps of the format, not yet in thread blocks of the format.
#pragma once

#include "compiler/interchange/msccl/MscclXml.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <vector>

namespace occl::interchange::msccl {

/// One end of a connection is an index in Plan::destinations: a multicast becomes as many
/// connections as it has destinations.
inline constexpr uint32_t kNoEnd = ~0u;

/// One step. `receives` and `sends` are ends.
struct Operation {
  StepType type = StepType::Copy;
  uint32_t receives = kNoEnd, sends = kNoEnd;
  Range source, destination;
  uint32_t count = 1;
};

/// Which receiving ends may be fused with which sending ends: pairs[r] is the sending end that
/// shares a thread block with r, or kNoEnd.
using Pairs = std::vector<uint32_t>;

/// What an instruction becomes: operations in order, at least one. `temporary` is a scratch chunk
/// from which on there is room for one instruction of the thread block.
void lowerInstruction(const plan::Plan &plan, uint32_t rank, const plan::Instruction &instruction,
                      const Pairs &pairs, uint32_t temporary, std::vector<Operation> &out);

/// The receiving end at `rank` of the connection of an operand.
uint32_t receivingEnd(const plan::Plan &plan, uint32_t connection, uint32_t rank);

/// Pairs of ends that instructions receive from and send to, such that each XML thread block has
/// one channel: the pair that most instructions want first.
Pairs choosePairs(const plan::Plan &plan);

/// A channel for each end: the same for paired ends, different for ends between the same ranks.
std::vector<uint32_t> colourChannels(const plan::Plan &plan, const Pairs &pairs);

} // namespace occl::interchange::msccl
