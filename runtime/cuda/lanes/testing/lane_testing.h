// What tests of a board of lanes share.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/lanes/lane_board.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace occl::cuda {

/// The one that there is; nobody uses it any more. Only what the tests before have used is cleared.
inline LaneBoard *emptyBoard() {
  static auto board = std::make_unique<LaneBoard>();
  const uint32_t numUsed = board->numUsed;
  std::memset(static_cast<void *>(board.get()), 0, offsetof(LaneBoard, order));
  std::memset(static_cast<void *>(board->records), 0, numUsed * sizeof(LaneBoard::Record));
  return board.get();
}

/// Whoever has the lock gives it back.
inline Status good(uint32_t) { return {}; }

} // namespace occl::cuda
