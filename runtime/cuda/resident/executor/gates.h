// The gates of streamed submissions that have been taken in: shut until their streams have reached
// them. Who has the intake keeps them.
#pragma once

#include "runtime/cuda/resident/executor/board.h"

#include <cstdint>

namespace occl::cuda::resident {

/// One executor's, while it has the intake. All lanes call together.
template <class Target> class Gates {
public:
  OCCL_HOST_DEVICE Gates(Board &board, const HostPage &page, Target &target)
      : board(board), page(page), target(target) {}

  /// What who had the intake before has left.
  OCCL_HOST_DEVICE void load() { numShut = target.peek(&board.numGated); }
  /// For who has the intake next. A release follows.
  OCCL_HOST_DEVICE void store() {
    if (hasChanged && target.lane() == 0)
      target.post(&board.numGated, numShut);
    hasChanged = false;
  }

  OCCL_HOST_DEVICE bool areAnyShut() const { return numShut != 0; }
  /// Any lane.
  OCCL_HOST_DEVICE bool isShut(uint32_t slot) const {
    return (target.peek(&board.gated[slot / 64]) >> slot % 64 & 1) != 0;
  }

  OCCL_HOST_DEVICE void keepShut(uint32_t slot) {
    uint64_t *word = &board.gated[slot / 64];
    const uint64_t bit = 1ull << slot % 64, before = target.peek(word);
    // The bit may be left of one that was withdrawn.
    numShut += (before & bit) == 0;
    hasChanged = true;
    target.sync();
    if (target.lane() == 0)
      target.post(word, before | bit);
    target.sync();
  }
  OCCL_HOST_DEVICE void forget(uint32_t slot) {
    uint64_t *word = &board.gated[slot / 64];
    const uint64_t bit = 1ull << slot % 64, before = target.peek(word);
    if ((before & bit) == 0)
      return;
    target.sync();
    if (target.lane() == 0)
      target.post(word, before & ~bit);
    target.sync();
    --numShut;
    hasChanged = true;
  }

  /// Calls open(slot) for those that their streams have reached.
  template <class Open> OCCL_HOST_DEVICE void forEachReached(const Open &open) {
    constexpr uint32_t kWords = kWindow / 64;
    uint64_t shut[kWords];
    for (uint32_t w = 0; w < kWords; ++w)
      shut[w] = target.peek(&board.gated[w]);
    for (uint32_t w = 0; w < kWords; ++w)
      for (uint32_t begin = 0; shut[w] != 0 && begin < 64; begin += target.numLanes()) {
        const uint32_t slot = w * 64 + begin + target.lane();
        const bool isShutHere = (shut[w] >> slot % 64 & 1) != 0;
        const uint64_t sequence = isShutHere ? target.peek(&board.slots[slot].sequence) : 0;
        bool isReached = isShutHere && target.acquireFromHost(&page.gates[slot]) > sequence;
        // Lanes have found theirs at the same time; all lanes together open one after the other.
        while (const uint64_t next = target.ofFirst(isReached, slot + 1)) {
          open(static_cast<uint32_t>(next - 1));
          isReached = isReached && slot != next - 1;
        }
      }
  }

private:
  Board &board;
  const HostPage &page;
  Target &target;
  uint64_t numShut = 0; // of board.numGated
  bool hasChanged = false;
};

} // namespace occl::cuda::resident
