// Finds which slots, tails and heads of a bound program cross to other islands.
#include "runtime/net/crossing.h"

#include "runtime/exec/step/message.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace occl::net {

using interpreter::BoundInstruction;
using interpreter::BoundOperand;
using interpreter::ConnectionEnd;
using interpreter::Program;

namespace {

/// By end and message of a tile: the instruction that sends it.
std::vector<std::vector<uint32_t>> sendersOf(const interpreter::Binding &binding) {
  const Program &program = binding.program();
  std::vector<std::vector<uint32_t>> senders(binding.numEnds());
  for (uint32_t b = 0; b < program.numBlocks; ++b)
    for (uint32_t i = 0; i < program.blocks[b].numInstructions; ++i) {
      const uint32_t index = program.blocks[b].firstInstruction + i;
      const BoundInstruction &instruction = program.instructions[index];
      for (const BoundOperand &operand :
           std::span(program.operands + instruction.firstOperand + instruction.numSources,
                     instruction.numDestinations)) {
        // Buffers among the destinations send nothing.
        if (operand.kind != plan::OperandKind::Connection)
          continue;
        auto &messages = senders[operand.end];
        messages.resize(std::max<size_t>(messages.size(), operand.message + 1));
        messages[operand.message] = index;
      }
    }
  return senders;
}

/// Sorts by peer; returns where the flows of each rank begin, and at the end how many there are.
template <class Flow> std::vector<size_t> orderByPeer(std::vector<Flow> &flows, size_t numRanks) {
  std::ranges::stable_sort(flows, {}, &Flow::peer);
  std::vector<size_t> first(numRanks + 1);
  for (const Flow &flow : flows)
    ++first[flow.peer + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

} // namespace

Crossing::Crossing(std::shared_ptr<const interpreter::Binding> binding,
                   const std::vector<bool> &isRemote, uint64_t headsDistance)
    : bound(std::move(binding)) {
  const Program &program = bound->program();
  auto senders = sendersOf(*bound);
  for (uint32_t e = 0; e < bound->numEnds(); ++e) {
    const ConnectionEnd &end = program.ends[e];
    const auto peers = std::span(program.peers + end.firstPeer, end.numPeers);
    // Heads lie with the source, so their rank tells which end this is.
    const bool isSource = end.creditRank == program.rank;
    const auto instructions = std::make_shared<const std::vector<uint32_t>>(std::move(senders[e]));
    // A source sends slots and tail; a receiver sends heads, if its source ever waits for one.
    for (uint32_t peer : peers)
      if (isRemote[peer] && isSource)
        sent.push_back({peer, end.tailOffset, end.slotsOffset, end.isCounter ? 0 : end.slotBytes,
                        instructions});
      else if (isRemote[peer] && end.lastCredit != 0)
        received.push_back({peer, end.headsOffset - headsDistance});
  }
  firstSent = orderByPeer(sent, isRemote.size());
  firstReceived = orderByPeer(received, isRemote.size());
}

uint64_t Crossing::slotOf(const Outgoing &flow, uint64_t slice) const {
  const Program &program = bound->program();
  return flow.slotsOffset + slice % (program.depth * program.slicesPerMessage) * flow.slotBytes;
}

uint64_t Crossing::bytesOf(const Outgoing &flow, uint64_t slice) const {
  if (flow.slotBytes == 0)
    return 0;
  const Program &program = bound->program();
  const std::vector<uint32_t> &instructions = *flow.instructions;
  // Find the message of the slice, and the tile and the instruction of the message.
  const uint64_t message = slice / program.slicesPerMessage, tile = message / instructions.size();
  const BoundInstruction &instruction =
      program.instructions[instructions[message % instructions.size()]];
  const uint64_t length = interpreter::detail::messageElements(program, instruction, tile),
                 begin = slice % program.slicesPerMessage * instruction.sliceElements;
  return begin >= length
             ? 0
             : std::min(length - begin, instruction.sliceElements) * program.elementBytes;
}

} // namespace occl::net
