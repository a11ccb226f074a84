// How ordered connectors (ordered_connectors.h) divide a rank's memory, and what fits: no CUDA.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/cuda/tables/device_collective.h"
#include "runtime/exec/bind/bind.h"

#include <cstdint>
#include <string>

namespace occl::cuda {

/// Bytes of a block's parts, which follow each other, each a multiple of kBlockAlignment; the same
/// on all ranks.
struct OrderedGeometry {
  uint32_t ring = kMaxRing;                   // blocks
  uint64_t words, lines, wideLines, messages; // wideLines: 0 if there are none
  /// Of the rank's scratch, behind all blocks: its calls use it one after the other.
  uint64_t scratch;

  /// Of so many ranks, in device memory of so many bytes a rank. With 256 MiB there is room for all
  /// plans in lines of algorithms/device_plans.tsv; of more, up to 2 GiB, messages
  /// take a part: rings and chains of large data need them. Of 1 MiB or more, blocks without their
  /// words, and scratch, take at most three eighths. hasWideLines: else programs of LL128 have lines
  /// of LL, and no part is for their own.
  static OrderedGeometry forMemory(uint32_t numRanks, uint64_t memoryBytes, bool hasWideLines);

  /// Of a lane (docs/decisions/gpu/lanes.md) for programs of lines, or of protocol Simple: there is
  /// room for all plans of algorithms/resident_plans.tsv.
  static OrderedGeometry forLane(uint32_t numRanks, bool hasLines, bool hasWideLines);
  /// So many there are of each kernel, in device memory of so many bytes a rank: 1 to 64.
  static uint32_t numLanes(uint32_t numRanks, uint64_t memoryBytes);

  /// Where the progress words lie in a block.
  uint64_t progressOffset() const;
  uint64_t block() const { return words + lines + wideLines + messages; }
  uint64_t all() const { return ring * block() + scratch; }

  /// Where the slots of a program begin in a block, and how many bytes there are for them.
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
