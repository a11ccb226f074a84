// What a completion costs in each of the three forms of completion queue: 1 to 8 threads complete,
// and whoever completes also takes out what is there, unless somebody else is at it, as the
// daemon's executors do.
#include "runtime/queue/completion_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using namespace occl::queue;

constexpr uint32_t kEach = 50000;
constexpr uint32_t kCapacity = 1024;
constexpr uint32_t kRepeats = 7;

/// One cycle of a daemon's executor at the end of an invocation.
void complete(CompletionQueue &queue, std::atomic<uint32_t> &turns, uint32_t entry,
              uint64_t &taken) {
  while (!queue.push(entry))
    std::this_thread::yield();
  if (turns.fetch_add(1, std::memory_order_acq_rel) != 0)
    return;
  for (uint32_t seen = 1;;) {
    while (queue.pop())
      ++taken;
    if (turns.compare_exchange_strong(seen, 0, std::memory_order_acq_rel))
      return;
  }
}

/// Nanoseconds a completion, by the clock on the wall, all threads together.
double nanosecondsEach(CompletionForm form, uint32_t numProducers) {
  auto queue = makeCompletionQueue(form, kCapacity);
  std::atomic<uint32_t> turns{0}, ready{0};
  std::vector<uint64_t> taken(numProducers);
  std::vector<std::thread> threads;
  std::atomic<bool> go{false};
  for (uint32_t p = 0; p < numProducers; ++p)
    threads.emplace_back([&, p] {
      uint64_t mine = 0;
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire))
        std::this_thread::yield();
      for (uint32_t i = 1; i <= kEach; ++i)
        complete(*queue, turns, i, mine);
      taken[p] = mine;
    });
  while (ready.load() != numProducers)
    std::this_thread::yield();
  auto start = std::chrono::steady_clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread &thread : threads)
    thread.join();
  std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - start;
  uint64_t total = 0;
  for (uint64_t each : taken)
    total += each;
  if (total != uint64_t{kEach} * numProducers)
    std::printf("lost entries: %llu\n", static_cast<unsigned long long>(total));
  return passed.count() / (double{kEach} * numProducers);
}

double median(CompletionForm form, uint32_t numProducers) {
  std::vector<double> times;
  for (uint32_t repeat = 0; repeat < kRepeats; ++repeat)
    times.push_back(nanosecondsEach(form, numProducers));
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

} // namespace

int main() {
  std::printf("ns a completion, written and taken out (median of %u runs of %u a thread); the OCCL "
              "paper has 7000 to 8000\nfor one submission read and one completion written on a "
              "GPU.\n\n%-10s%14s%14s%14s\n",
              kRepeats, kEach, "producers", "ring", "packed ring", "slots");
  for (uint32_t numProducers : {1u, 2u, 4u, 8u}) {
    std::printf("%-10u", numProducers);
    for (CompletionForm form :
         {CompletionForm::Ring, CompletionForm::PackedRing, CompletionForm::Slots})
      std::printf("%14.1f", median(form, numProducers));
    std::printf("\n");
    std::fflush(stdout);
  }
}
