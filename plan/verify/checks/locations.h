// Numbers for all chunks of all buffers, such that chunks that share memory share their number.
#pragma once

#include "plan/verify/checks/network.h"

namespace occl::plan::verify {

class Locations {
public:
  /// Expects a plan of good shape, so that all numbers fit 32 bits.
  Locations(const Plan &plan, AliasMode mode) : plan(plan), mode(mode), first(plan.numRanks + 1) {
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      first[r + 1] = first[r] + sizeOf(r);
  }

  uint32_t size() const { return first.back(); }
  /// The locations of a rank are [begin(rank), begin(rank + 1)).
  uint32_t begin(uint32_t rank) const { return first[rank]; }

  /// The number of a chunk, which must exist.
  uint32_t of(uint32_t rank, OperandKind kind, uint32_t chunk) const {
    const RankPlan &buffers = plan.ranks[rank];
    if (kind == OperandKind::Input) {
      int64_t asOutput = int64_t{chunk} + buffers.inPlaceOffset;
      if (mode == AliasMode::OutOfPlace || asOutput < 0 || asOutput >= buffers.outputChunks)
        return first[rank] + chunk;
      chunk = static_cast<uint32_t>(asOutput);
      kind = OperandKind::Output;
    }
    uint32_t outputs = first[rank] + buffers.inputChunks;
    return kind == OperandKind::Output ? outputs + chunk : outputs + buffers.outputChunks + chunk;
  }

  /// The rank's input chunk that the location holds at entry; kNone if it is undefined then.
  uint32_t initialInput(uint32_t rank, uint32_t location) const {
    const RankPlan &buffers = plan.ranks[rank];
    uint32_t chunk = location - first[rank];
    if (chunk < buffers.inputChunks)
      return chunk;
    chunk -= buffers.inputChunks;
    int64_t asInput = int64_t{chunk} - buffers.inPlaceOffset;
    bool holdsInput = mode == AliasMode::InPlace && chunk < buffers.outputChunks && asInput >= 0 &&
                      asInput < buffers.inputChunks;
    return holdsInput ? static_cast<uint32_t>(asInput) : kNone;
  }

private:
  uint32_t sizeOf(uint32_t rank) const {
    const RankPlan &buffers = plan.ranks[rank];
    return buffers.inputChunks + buffers.outputChunks + buffers.scratchChunks;
  }

  const Plan &plan;
  AliasMode mode;
  std::vector<uint32_t> first;
};

} // namespace occl::plan::verify
