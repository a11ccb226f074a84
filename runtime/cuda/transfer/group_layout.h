// How the transfers of a group become a kernel's table: no CUDA.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/transfer/transfer_table.h"
#include "runtime/rank/transfers.h"

#include <cstdint>
#include <span>
#include <vector>

namespace occl::cuda {

/// Thread blocks of a kernel for each direction, and in all, at most.
inline constexpr uint32_t kMostDirectionBlocks = 32, kMostTransferBlocks = 64;
/// Pieces of a direction in one group, at most.
inline constexpr uint64_t kMostPieces = 0xffff0000;

struct GroupLayout {
  std::vector<TransferDirection> directions; // sends first, then by peer
  std::vector<TransferPart> parts;           // those of a direction together, in their order
  uint32_t numBlocks = 0;

  /// Of checked transfers, one or more. InvalidArgument: too much for one group.
  static StatusOr<GroupLayout> of(std::span<const daemon::Transfer> transfers,
                                  const PairGeometry &pairs);
};

} // namespace occl::cuda
