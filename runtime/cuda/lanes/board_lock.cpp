// A spin lock in shared memory: looks for some microseconds, then sleeps and asks whether the owner
// still lives.
#include "runtime/cuda/lanes/board_lock.h"

#include "runtime/sync/thread.h"

#include <chrono>

namespace occl::cuda {

namespace {

/// Looks before it sleeps: the others hold it for as long as a few lines of a cache take.
constexpr uint32_t kLooks = 2000;

Status take(Atomic<uint32_t> &word, uint32_t rank, const BoardLock::Failure &failure, bool waits) {
  uint32_t looks = 0;
  for (uint32_t owner = 0;
       !word.compare_exchange_strong(owner, rank + 1, std::memory_order_acquire); owner = 0) {
    if (++looks < kLooks) {
      relax();
      continue;
    }
    if (!waits)
      return {StatusCode::InProgress, "another rank has the lock of the boards"};
    // Who has given it back may be gone.
    if (Status failed = failure(owner - 1);
        !failed.ok() && word.load(std::memory_order_acquire) == owner)
      return failed;
    sleepFor(std::chrono::microseconds(20));
  }
  return {};
}

} // namespace

BoardLock::BoardLock(Atomic<uint32_t> &word, uint32_t rank, const Failure &failure, bool waits)
    : word(word), taken(take(word, rank, failure, waits)) {}

BoardLock::~BoardLock() {
  if (taken.ok())
    word.store(0, std::memory_order_release);
}

} // namespace occl::cuda
