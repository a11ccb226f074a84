// A lock in memory that all ranks share. Held for microseconds; a rank that dies with it makes the
// communicator fail, one that is stopped is waited for.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/atomic.h"

#include <cstdint>
#include <functional>

namespace occl::cuda {

/// Held while it lives, if status() is success. InProgress: it does not wait, and another rank has
/// it; else why it will never be given back.
class BoardLock {
public:
  /// Why that rank will never give it back, or why the communicator has failed; or success.
  using Failure = std::function<Status(uint32_t owner)>;
  /// word: 0, or 1 + the rank that has it.
  BoardLock(Atomic<uint32_t> &word, uint32_t rank, const Failure &failure, bool waits = true);
  ~BoardLock();
  BoardLock(const BoardLock &) = delete;
  BoardLock &operator=(const BoardLock &) = delete;

  const Status &status() const { return taken; }

private:
  Atomic<uint32_t> &word;
  const Status taken;
};

} // namespace occl::cuda
