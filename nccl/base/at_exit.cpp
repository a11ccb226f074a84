// Counts the threads that the exit of a process waits for, by how long it does.
#include "nccl/base/at_exit.h"

#include "nccl/base/live_counts.h"
#include "nccl/base/per_process.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

namespace occl::nccl {

namespace {

constinit PerProcess<LiveCounts<std::chrono::milliseconds>> held;

/// The longest times come last, and those may be over first.
void awaitHeld() {
  const auto begin = std::chrono::steady_clock::now();
  auto &own = held.get();
  std::unique_lock lock(own.mutex);
  // Each entry is the time that its thread may take at most, from now on. The largest bounds the
  // wait; when that thread ends, the largest of the others does.
  while (!own.numbers.empty() &&
         own.changed.wait_until(lock, begin + own.numbers.rbegin()->first) !=
             std::cv_status::timeout)
    continue;
}

} // namespace

HoldsExit::HoldsExit(std::chrono::milliseconds time) : time(time) {
  // Behind what CUDA has registered, so that it comes before that. A forked child inherits it.
  static std::atomic<bool> isListed = false;
  if (!isListed.exchange(true))
    std::atexit(awaitHeld);
  held.get().add(time);
}

HoldsExit::~HoldsExit() { held.get().remove(time); }

} // namespace occl::nccl
