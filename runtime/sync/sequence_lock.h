// A sequence lock: one writer at a time, any number of readers, in any process that maps it.
#pragma once

#include "runtime/sync/atomic.h"

#include <cstdint>
#include <optional>

namespace occl {

/// Guards words beside it that are accessed with memory_order_relaxed. All zero it is unlocked, at
/// version 0.
class SequenceLock {
public:
  /// Runs `store`, which changes the words. One thread at a time.
  template <class Store> void write(const Store &store) {
    const uint64_t before = version.load(std::memory_order_relaxed);
    version.store(before + 1, std::memory_order_relaxed);
    threadFence(std::memory_order_release);
    store();
    version.store(before + 2, std::memory_order_release);
  }

  /// Runs `load`, which reads the words, until nothing was written meanwhile: the version of what
  /// it has read. Nothing if the writer keeps writing (or died while it did): this never waits.
  template <class Load> std::optional<uint64_t> read(const Load &load) const {
    constexpr int kAttempts = 100;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const uint64_t before = version.load(std::memory_order_acquire);
      if (before % 2 != 0)
        continue;
      load();
      threadFence(std::memory_order_acquire);
      if (version.load(std::memory_order_relaxed) == before)
        return before;
    }
    return std::nullopt;
  }

private:
  Atomic<uint64_t> version{0}; // odd while being written
};

} // namespace occl
