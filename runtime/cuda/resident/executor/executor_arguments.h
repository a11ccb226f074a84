// What a generation of executors is started with.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/cuda/resident/executor/marks.h"

#include <cstdint>

namespace occl::cuda::resident {

struct ExecutorArguments {
  Board *board = nullptr;
  HostPage *page = nullptr;
  /// Of these executors: 1, 2, 3 ... in the order of starts.
  uint64_t generation = 0;
  Settings settings;
  MarkRing *marks = nullptr; // by executor; null: nothing is recorded
};

} // namespace occl::cuda::resident
