// The host's side of a kernel that stays for its next call (standby_words.h).
#pragma once

#include "runtime/cuda/awaited_ends.h"
#include "runtime/cuda/standby_words.h"

#include <array>
#include <cstdint>

namespace occl::cuda {

/// One collective's at a time, one call after the other. Thread safety: none.
class Standby {
public:
  static constexpr uint32_t wordsFor(uint32_t maxBlocks) {
    return kPresenceWords + AwaitedEnds::wordsFor(maxBlocks) + maxBlocks * kBellWords;
  }

  /// memory: wordsFor(maxBlocks) words, zero, aligned to a cache line; outlives this.
  Standby(uint64_t *memory, uint32_t maxBlocks);

  /// Another collective, of so many thread blocks; no kernel is there.
  void begin(uint32_t numBlocks);
  /// The next call.
  struct Call {
    EndWords ended;
    /// The kernel takes it. Else one is to be launched for it, whose session is the call's ticket.
    bool isTaken;
  };
  Call call(uint64_t number, const std::array<char *, 2> &buffers);

  const Bell *bells() const { return bell; }
  uint64_t *presence() const { return state; }

private:
  static constexpr uint32_t kPresenceWords = 8, kBellWords = sizeof(Bell) / sizeof(uint64_t);

  bool isWaiting() const;
  bool tryRing(uint64_t ticket, uint64_t number, const std::array<char *, 2> &buffers);
  Presence decision() const;

  uint64_t *const state;
  uint64_t *const answers;
  Bell *const bell;
  const uint32_t maxBlocks;
  uint32_t numBlocks = 0;
  uint64_t session = 0; // 0: none
  uint64_t lastTicket = 0;
};

} // namespace occl::cuda
