// How ordered connectors (ordered_connectors.h) divide a rank's memory, and what fits: no CUDA.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>
#include <optional>
#include <string>

namespace occl::cuda {

/// Bytes of a rank's memory for messages, in this order, each a multiple of kBlockAlignment; the
/// same on all ranks: the blocks of programs of LL and LL128, one for each of `ring` calls, with
/// words, lines of LL and lines of LL128; the rank's scratch, which its calls use one after the
/// other; and the block of programs of Simple, with words and messages, which all calls share: such
/// a call begins when all ranks have finished the one before. Or these parts are apart
/// (isApart), most of them in what the rank takes later (LaterMemory).
struct OrderedGeometry {
  uint32_t ring = kMaxRing;                   // blocks of programs of lines
  uint64_t words, lines, wideLines, messages; // wideLines: 0 if there are none
  uint64_t scratch;
  /// Programs of LL128 have blocks of their own, with words, and of all parts the arena has but the
  /// blocks of programs of LL: without lines for LL128 nothing.
  bool isApart = false;

  /// Of a rank: all, and what of it users cannot have (occlConfig_t::arenaBytes).
  struct Memory {
    uint64_t all, arena;
  };

  /// Of so many ranks. With an arena of 128 MiB there is room for all plans in lines of
  /// algorithms/device_plans.tsv; large messages are cut until they fit, and faster if they are
  /// not: up to 512 MiB in all gives them more room. Of 1 MiB or more, blocks without their words,
  /// and scratch, take at most 3/10 of all, but from an arena of 128 MiB on as much as 72 MiB.
  /// hasWideLines: else programs of LL128 have lines of LL, no part is for their own, and the most
  /// is 3/8 of all, and 88 MiB.
  static OrderedGeometry forMemory(uint32_t numRanks, Memory memory, bool hasWideLines);

  /// Of a lane (docs/decisions/gpu/lanes.md) for programs of lines, or of protocol Simple: there is
  /// room for all plans of algorithms/resident_plans.tsv.
  static OrderedGeometry forLane(uint32_t numRanks, bool hasLines, bool hasWideLines);
  /// So many there are of each kernel: 1 to kMostLanes.
  static constexpr uint32_t kMostLanes = 62;
  static uint32_t numLanes(uint32_t numRanks, Memory memory, bool hasWideLines);
  /// Of a large lane, for protocol Simple. Nothing: there are none, as they would have little more
  /// than the others.
  static std::optional<OrderedGeometry> forLargeLane(uint32_t numRanks, Memory memory,
                                                     bool hasWideLines);
  /// So many of these there are in all, for both kernels of Simple.
  static constexpr uint32_t kLargeLanes = 4;

  /// Where the progress words lie in a block.
  uint64_t progressOffset() const;
  /// Of programs of lines, and from one to the next.
  uint64_t block() const { return lines + wideLines == 0 ? 0 : words + lines + wideLines; }
  /// Where that of programs of Simple begins, unless parts are apart. Not 0 if there is one.
  uint64_t sharedBlock() const { return ring * block() + scratch; }
  /// Of the arena.
  uint64_t all() const;
  /// Of what is taken later.
  uint64_t linesLater() const;
  uint64_t messagesLater() const { return isApart ? scratch + words + messages : 0; }

  /// Where the first block of programs of a protocol begins, in that part or, without one, in the
  /// connectors' memory in the arena; and from there to the next.
  struct Blocks {
    std::optional<LaterPart> in;
    uint64_t offset = 0, stride = 0;
  };
  Blocks blocksFor(plan::Protocol protocol) const;
  Blocks scratchBlock() const; // one

  /// Where the slots of a program begin in its block, and how many bytes there are for them.
  struct Part {
    uint64_t offset, bytes;
  };
  Part partFor(plan::Protocol protocol) const;

  /// Why words, flags or scratch are too few for a program, as the rest of a sentence that begins
  /// with the plan; empty: they are not. count: it is bound to.
  std::string misfit(const interpreter::Binding &binding, uint64_t count) const;
};

/// The most bytes of an arena block, of any rank: a plan that fits on one fits on all.
uint64_t largestBlock(const interpreter::Binding &binding);

/// 16 bits of what all ranks must call alike: what differs in any of it differs in these in all but
/// about one of 65,536 cases.
uint16_t signatureOf(uint64_t planHash, uint64_t count, DataType type, ReduceOp op);

} // namespace occl::cuda
