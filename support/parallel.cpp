#include "support/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace occl::support {

namespace {

/// To start a thread takes as long as a loop takes for some hundreds of instructions.
constexpr uint64_t kMinWork = 1 << 13;

unsigned numThreads = 1;

/// The rounds of one loop, which threads take one by one.
class Rounds {
public:
  Rounds(size_t count, const std::function<void(size_t)> &body)
      : count(count), body(body), failed(count) {}

  void run() {
    for (size_t round = next++; round < count; round = next++)
      try {
        body(round);
      } catch (...) {
        std::lock_guard lock(mutex);
        // Which exception is thrown must not depend on the threads' order: the lowest round's is
        // kept, and the others run to their end all the same.
        if (round < failed) {
          failed = round;
          failure = std::current_exception();
        }
      }
  }

  void rethrow() const {
    if (failure)
      std::rethrow_exception(failure);
  }

private:
  const size_t count;
  const std::function<void(size_t)> &body;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t failed; // the lowest round that threw
  std::exception_ptr failure;
};

} // namespace

void setNumThreads(unsigned count) { numThreads = std::max(1u, count); }

void parallelFor(size_t count, uint64_t work, const std::function<void(size_t)> &body) {
  const size_t most = work < kMinWork ? 1 : std::min<size_t>(numThreads, count);
  // Without threads, exceptions leave at the round that throws them.
  if (most < 2) {
    for (size_t round = 0; round < count; ++round)
      body(round);
    return;
  }
  Rounds rounds(count, body);
  std::vector<std::jthread> helpers;
  helpers.reserve(most - 1);
  try {
    while (helpers.size() + 1 < most)
      helpers.emplace_back([&] { rounds.run(); });
  } catch (const std::system_error &) { // no more threads: then these
  }
  rounds.run();
  // Joins all: after this nobody else writes `failure`.
  helpers.clear();
  rounds.rethrow();
}

} // namespace occl::support
