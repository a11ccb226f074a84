// How much memory each protocol has: enough for the plans of the library, and less where a rank has
// little memory.
#include "runtime/cuda/calls/ordered_geometry.h"

#include <algorithm>
#include <bit>

namespace occl::cuda {

using namespace interpreter;

namespace {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr uint64_t kProgressBytes = kOrderedOrdinals * kControlStride;

uint64_t roundDown(uint64_t bytes) { return bytes / kBlockAlignment * kBlockAlignment; }

} // namespace

/// With little memory each part has a share of it, in 64ths: of all, or, if that is more, of an
/// arena of 128 MiB. Of that calls in streams may have more than half, which leaves less for lanes.
OrderedGeometry OrderedGeometry::forMemory(uint32_t numRanks, Memory memory, bool hasWideLines) {
  const uint64_t arena = memory.arena >= 128 * kMiB ? 128 * kMiB : 0;
  auto share = [&](uint64_t ofAll, uint64_t ofArena) {
    return std::max(memory.all / 64 * ofAll, arena / 64 * ofArena);
  };
  auto part = [](uint64_t most, uint64_t bytes) {
    return std::max(roundDown(std::min(most, bytes)), kBlockAlignment);
  };
  OrderedGeometry sizes;
  // The words hold a progress word for each thread block, and the counters of connections.
  sizes.words = kProgressBytes + 88 * kKiB;
  if (hasWideLines) {
    // LL has a fifth of a block, LL128 the rest.
    const uint64_t block = share(10, 18) / kMaxRing;
    sizes.lines = part(std::min<uint64_t>((numRanks - 1) * 512 * kKiB, 1536 * kKiB), block / 5);
    sizes.wideLines = part(7680 * kKiB, block / 5 * 4);
  } else {
    sizes.lines = part(15 * kMiB, share(15, 26) / kMaxRing);
    sizes.wideLines = 0;
  }
  // The block of Simple, and scratch, are there once, whatever the number of calls in flight.
  sizes.messages = part(64 * kMiB, share(8, 16));
  sizes.scratch = part(4 * kMiB, share(1, 2));
  return sizes;
}

OrderedGeometry OrderedGeometry::forLane(uint32_t numRanks, bool hasLines, bool hasWideLines) {
  OrderedGeometry sizes;
  // A lane executes programs of lines or of Simple, and has memory for these alone.
  sizes.ring = hasLines ? 2 : 1;
  sizes.words = kProgressBytes + (hasLines ? 24 : 88) * kKiB;
  sizes.lines = hasLines ? numRanks * 128 * kKiB : 0;
  sizes.wideLines = hasLines && hasWideLines ? sizes.lines : 0;
  sizes.messages = hasLines ? 0 : std::clamp(numRanks / 2, 1u, 4u) * kMiB;
  sizes.scratch = hasLines ? 0 : 256 * kKiB;
  return sizes;
}

namespace {

/// What lanes and calls in streams leave is for transfers and for the tables of shapes.
constexpr uint64_t kOthers = 24 * kMiB;

/// Of all kernels; each lane of lines has a counterpart of Simple.
uint64_t bytesOfLanes(uint32_t numRanks, uint64_t lanes, bool hasWideLines) {
  constexpr uint32_t kPairsOfKernels = 2;
  return lanes * kPairsOfKernels *
         (OrderedGeometry::forLane(numRanks, true, hasWideLines).all() +
          OrderedGeometry::forLane(numRanks, false, hasWideLines).all());
}

uint64_t leftForLanes(uint32_t numRanks, OrderedGeometry::Memory memory, bool hasWideLines) {
  const uint64_t others =
      OrderedGeometry::forMemory(numRanks, memory, hasWideLines).all() + kOthers;
  return memory.all > others ? memory.all - others : 0;
}

} // namespace

/// All lanes of all kernels but the large ones take at most half of the memory, and leave what else
/// there is its room.
uint32_t OrderedGeometry::numLanes(uint32_t numRanks, Memory memory, bool hasWideLines) {
  const uint64_t bytes = std::min(memory.all / 2, leftForLanes(numRanks, memory, hasWideLines));
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / bytesOfLanes(numRanks, 1, hasWideLines), 1, kMostLanes));
}

/// They take what the others leave: at most a quarter of the arena, a sixteenth of all memory, and
/// 16 MiB each between up to four ranks. A power of two, which is what the arena gives out. With
/// less than three times the messages of other lanes they would not be much faster.
std::optional<OrderedGeometry> OrderedGeometry::forLargeLane(uint32_t numRanks, Memory memory,
                                                             bool hasWideLines) {
  constexpr uint64_t kMost = 16 * kMiB, kLeast = 3;
  const uint64_t others =
      bytesOfLanes(numRanks, numLanes(numRanks, memory, hasWideLines), hasWideLines);
  const uint64_t left = leftForLanes(numRanks, memory, hasWideLines);
  const uint64_t bytes =
      std::min({left > others ? left - others : 0, memory.arena / 4, memory.all / 16}) /
      kLargeLanes;
  OrderedGeometry sizes = forLane(numRanks, false, hasWideLines);
  const uint64_t all = std::min(std::max(1u, numRanks / 4) * kMost, std::bit_floor(bytes));
  const uint64_t least = sizes.all() - sizes.messages + kLeast * sizes.messages;
  if (all < least)
    return {};
  sizes.messages += all - sizes.all();
  return sizes;
}

uint64_t OrderedGeometry::progressOffset() const { return words - kProgressBytes; }

OrderedGeometry::Part OrderedGeometry::partFor(plan::Protocol protocol) const {
  if (protocol == plan::Protocol::Simple)
    return {words, messages};
  // LL128 runs as LL where there are no lines for it.
  if (protocol == plan::Protocol::LL || wideLines == 0)
    return {words, lines};
  return {isApart ? words : words + lines, wideLines};
}

uint64_t OrderedGeometry::all() const {
  if (isApart)
    return wideLines == 0 ? 0 : ring * (words + lines);
  return sharedBlock() + (messages == 0 ? 0 : words + messages);
}

/// Where LL128 runs as LL, lines of that are more than a communicator should begin with.
uint64_t OrderedGeometry::linesLater() const {
  return isApart ? ring * (words + (wideLines == 0 ? lines : wideLines)) : 0;
}

OrderedGeometry::Blocks OrderedGeometry::blocksFor(plan::Protocol protocol) const {
  const bool isSimple = protocol == plan::Protocol::Simple;
  if (!isApart)
    return isSimple ? Blocks{{}, sharedBlock(), 0} : Blocks{{}, 0, block()};
  if (isSimple)
    return {LaterPart::Messages, scratch, 0};
  if (wideLines == 0)
    return {LaterPart::Lines, 0, words + lines};
  return protocol == plan::Protocol::LL ? Blocks{{}, 0, words + lines}
                                        : Blocks{LaterPart::Lines, 0, words + wideLines};
}

OrderedGeometry::Blocks OrderedGeometry::scratchBlock() const {
  return isApart ? Blocks{LaterPart::Messages, 0, 0} : Blocks{{}, ring * block(), 0};
}

/// What the words and flags of one call differ by, and how many there are.
std::string OrderedGeometry::misfit(const Binding &binding, uint64_t count) const {
  const Program &program = binding.program();
  // Counters of connections share the words with the progress words.
  for (uint32_t r = 0; r < program.numRanks; ++r)
    if (binding.counterBytes(r) > progressOffset())
      return "has more connections than a communicator's calls have words for";
  if (binding.scratchBytes() > scratch)
    return "needs " + std::to_string(binding.scratchBytes()) + " bytes of scratch at a count of " +
           std::to_string(count) + "; the communicator has " + std::to_string(scratch) +
           ". Set arenaBytes higher";
  // A word for each thread block says which call is its next.
  if (program.numBlocks > kOrderedOrdinals)
    return "has more than " + std::to_string(kOrderedOrdinals) + " thread blocks";
  // The largest value that a word of one call reaches: messages of a connection, or steps of a
  // thread block.
  uint64_t most = 1;
  for (uint32_t e = 0; program.ends && e < binding.numEnds(); ++e)
    most = std::max(most,
                    program.numTiles * program.ends[e].messagesPerTile * program.slicesPerMessage);
  for (uint32_t b = 0; b < program.numBlocks; ++b)
    most = std::max(most, program.numTiles * program.blocks[b].numInstructions);
  if (most >= 1ull << kWordShift || program.flagsPerInvocation > kOrderedFlags)
    return "sends too many messages at a count of " + std::to_string(count) +
           ": larger ones, or another protocol, would do";
  return {};
}

uint64_t largestBlock(const Binding &binding) {
  uint64_t largest = 0;
  for (uint32_t r = 0; r < binding.program().numRanks; ++r)
    largest = std::max(largest, binding.arenaBytes(r));
  return largest;
}

uint16_t signatureOf(uint64_t planHash, uint64_t count, DataType type, ReduceOp op) {
  uint64_t hash = 0;
  for (uint64_t word : {planHash, count, uint64_t{static_cast<uint32_t>(type)},
                        uint64_t{static_cast<uint32_t>(op)}}) {
    // Multiply and fold, so that every input bit reaches the low 16.
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<uint16_t>(hash ^ hash >> 16);
}

} // namespace occl::cuda
