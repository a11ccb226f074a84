// Counts the threads that the exit of a process waits for, by how long it does.
#include "nccl/base/at_exit.h"

#include "nccl/base/per_process.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>

namespace occl::nccl {

namespace {

struct Held {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::chrono::milliseconds, uint32_t> numbers; // by time; none is 0

  static void await();
};

constinit PerProcess<Held> held;

/// The longest times come last, and those may be over first.
void Held::await() {
  const auto begin = std::chrono::steady_clock::now();
  Held &own = held.get();
  std::unique_lock lock(own.mutex);
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
    std::atexit(Held::await);
  Held &own = held.get();
  std::lock_guard lock(own.mutex);
  ++own.numbers[time];
}

HoldsExit::~HoldsExit() {
  Held &own = held.get();
  std::lock_guard lock(own.mutex);
  auto found = own.numbers.find(time);
  if (found != own.numbers.end() && --found->second == 0)
    own.numbers.erase(found);
  own.changed.notify_all();
}

} // namespace occl::nccl
