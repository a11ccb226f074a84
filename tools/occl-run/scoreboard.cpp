#include "tools/occl-run/scoreboard.h"

#include <algorithm>
#include <new>
#include <sched.h>
#include <sys/mman.h>

namespace occl::run {

std::unique_ptr<Scoreboard> SharedScoreboard::create(uint32_t numRanks, uint32_t iterations) {
  uint64_t bytes = sizeof(Shared) + uint64_t(numRanks) * iterations * sizeof(double);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  return std::unique_ptr<Scoreboard>(new SharedScoreboard(memory, bytes, numRanks, iterations));
}

SharedScoreboard::SharedScoreboard(void *memory, uint64_t bytes, uint32_t numRanks,
                                   uint32_t iterations)
    : shared(*new (memory) Shared()), bytes(bytes), numRanks(numRanks), iterations(iterations),
      seconds(reinterpret_cast<double *>(static_cast<char *>(memory) + sizeof(Shared)),
              uint64_t(numRanks) * iterations) {}

SharedScoreboard::~SharedScoreboard() { munmap(&shared, bytes); }

bool SharedScoreboard::barrier() {
  // Arrivals are counted on and never reset, so there is no second phase in which a fast rank could
  // meet a slow one's count.
  const uint64_t arrival = shared.arrivals.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t complete = (arrival / numRanks + 1) * numRanks;
  while (shared.arrivals.load(std::memory_order_acquire) < complete) {
    if (shared.failed.load(std::memory_order_acquire))
      return false;
    sched_yield();
  }
  return true;
}

void SharedScoreboard::fail() { shared.failed.store(true, std::memory_order_release); }

void SharedScoreboard::setSeconds(uint32_t rank, uint32_t iteration, double value) {
  seconds[uint64_t(rank) * iterations + iteration] = value;
}

double SharedScoreboard::secondsOf(uint32_t iteration) const {
  double slowest = 0;
  for (uint32_t rank = 0; rank < numRanks; ++rank)
    slowest = std::max(slowest, seconds[uint64_t(rank) * iterations + iteration]);
  return slowest;
}

void SharedScoreboard::addWrong(uint64_t elements) { shared.wrong.fetch_add(elements); }

uint64_t SharedScoreboard::wrong() const { return shared.wrong.load(); }

} // namespace occl::run
