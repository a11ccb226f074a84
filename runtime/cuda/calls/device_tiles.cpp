// Large tiles for most plans; small ones for chains, in which a tile follows the other from rank to
// rank.
#include "runtime/cuda/calls/device_tiles.h"

#include <algorithm>
#include <span>

namespace occl::cuda {

namespace {

using interpreter::TilePolicy;

/// One message a chunk of up to so many bytes: a tile more costs more than it gains.
constexpr TilePolicy kDeviceTiles = {4 << 20, 1};

/// Whether it sends or receives data. Signals have connections, too, but move none.
bool hasMessage(const plan::Plan &plan, const plan::Instruction &instruction) {
  auto operands = std::span(plan.operands)
                      .subspan(instruction.firstOperand,
                               size_t(instruction.numSources) + instruction.numDestinations);
  return instruction.count != 0 && std::ranges::any_of(operands, [](const plan::Operand &operand) {
           return operand.kind == plan::OperandKind::Connection;
         });
}

/// Whether every thread block has one message to receive, or to send, or both.
bool isChain(const plan::Plan &plan) {
  int64_t most = 0;
  for (const plan::ThreadBlock &block : plan.threadBlocks)
    most = std::max<int64_t>(
        most,
        std::ranges::count_if(
            std::span(plan.instructions).subspan(block.firstInstruction, block.numInstructions),
            [&](const plan::Instruction &instruction) { return hasMessage(plan, instruction); }));
  return plan.protocol == plan::Protocol::Simple && most == 1;
}

} // namespace

/// Tiles of a chain follow each other from rank to rank without waiting: of many the last rank
/// begins soon, and large ones lose little time in between.
TilePolicy tilesFor(const plan::Plan &plan, uint64_t partBytes) {
  constexpr uint64_t kWanted = 32, kSmallest = 64 << 10, kLargest = 256 << 10;
  if (!isChain(plan))
    return kDeviceTiles;
  return {std::clamp(partBytes / plan.partChunks / kWanted, kSmallest, kLargest), 1};
}

} // namespace occl::cuda
