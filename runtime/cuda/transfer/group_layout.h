// How the transfers of a group become a kernel's table: no CUDA.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/transfer/transfer_table.h"
#include "runtime/rank/transfers.h"

#include <cstdint>
#include <span>
#include <vector>

namespace occl::cuda {

/// Thread groups of a kernel for each direction, at most; if that were more than kMostGroups in
/// all, directions share kSharedGroups.
inline constexpr uint32_t kMostDirectionGroups = kFirstPieces;
inline constexpr uint32_t kMostGroups = 256, kSharedGroups = 128;
/// Pieces of a direction in one group, at most.
inline constexpr uint64_t kMostPieces = 0xffff0000;

struct GroupLayout {
  std::vector<TransferDirection> directions; // sends first, then by peer
  std::vector<TransferPart> parts;           // those of a direction together, in their order
  uint32_t numGroups = 0;                    // of threads
  bool isSpread = false;                     // a group for each piece
  /// Of a small group, which one thread block does (launchSmallTransfers): warps of each direction,
  /// a power of two. 0: it is not small.
  uint32_t warpsEach = 0;

  /// Of a rank's checked transfers, one or more. mayCopy: what it sends to itself is copied if the
  /// group has both sides. InvalidArgument: too much for one group.
  static StatusOr<GroupLayout> of(std::span<const daemon::Transfer> transfers,
                                  const PairGeometry &pairs, uint32_t ownRank, bool mayCopy);
};

} // namespace occl::cuda
