// Ways to distribute what must stay together on a rank over its thread blocks.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::passes {

/// Balanced: every block has the same work. Phases: a block does what comes at one time, so that
/// it is soon free for the next tile. Peers: a block does everything with the same other ranks.
/// Earliest: what can begin goes to the block that is free first.
enum class BlockLayout : uint8_t { Balanced, Phases, Peers, Earliest };

inline constexpr BlockLayout kBlockLayouts[] = {BlockLayout::Balanced, BlockLayout::Phases,
                                                BlockLayout::Peers, BlockLayout::Earliest};

/// "balanced", "phases", "peers" or "earliest"; nothing for other names.
std::optional<BlockLayout> blockLayoutOf(llvm::StringRef name);

/// Steps of a rank that one thread block must do.
struct StepGroup {
  uint64_t work = 0;
  /// When its first step can begin and its last one can end, in a run that nothing but data holds
  /// up.
  uint64_t begin = 0, end = 0;
  /// Ranks with which it exchanges messages, ascending.
  llvm::SmallVector<uint32_t, 2> peers;
};

/// Whether a layout goes by the time when groups begin.
inline bool asksForTimes(BlockLayout layout) {
  return layout == BlockLayout::Phases || layout == BlockLayout::Earliest;
}

/// A block for each group. `load` has the work that each block has already; there is at least one
/// block. Equal ones are taken in their order.
std::vector<uint32_t> layOut(BlockLayout layout, llvm::ArrayRef<StepGroup> groups,
                             std::vector<uint64_t> load);

} // namespace occl::passes
