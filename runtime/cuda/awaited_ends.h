// The host's side of EndWords: calls that wait are lent words, and poll them.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/mutex.h"
#include "runtime/cuda/end_words.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::cuda {

/// Words for so many calls at once, in memory of its user, which is zero and outlives it. Thread
/// safety: any.
class AwaitedEnds {
public:
  static constexpr uint32_t kCalls = 64;
  /// Words of a call: a whole number of cache lines.
  static constexpr uint32_t wordsFor(uint32_t maxBlocks) { return (maxBlocks + 8) / 8 * 8; }

  /// memory: kCalls * wordsPerCall words.
  AwaitedEnds(uint64_t *memory, uint32_t wordsPerCall);

  /// wordsPerCall words, none of which holds the ticket. Nothing: kCalls calls have theirs.
  std::optional<EndWords> lend();
  /// All words that anybody will store the ticket in have it.
  void giveBack(const EndWords &ended);

private:
  Mutex mutex;
  std::vector<uint64_t *> free;
  uint64_t lastTicket = 0;
};

/// Whether the first `number` words have the ticket, or a later one.
class EndPoll {
public:
  EndPoll(const EndWords &ended, uint32_t number) : ended(ended), number(number) {}
  bool isOver() {
    while (seen != number &&
           loadShared(&ended.words[seen], std::memory_order_acquire) >= ended.ticket)
      ++seen;
    return seen == number;
  }

private:
  const EndWords ended;
  const uint32_t number;
  uint32_t seen = 0;
};

} // namespace occl::cuda
