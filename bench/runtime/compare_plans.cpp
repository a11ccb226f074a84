// Times of plans of one collective against each other, on ranks that are threads of this process:
// compare_plans PLAN... prints for each size the time of each plan and how it compares with the
// first. Each number is the median of several rounds, in which the plans take turns.
#include "bench/runtime/checked.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using occl::bench::callOf;
using occl::bench::check;
using occl::bench::start;

constexpr uint64_t kSizes[] = {1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
constexpr uint32_t kRounds = 9;

struct Contender {
  occlPlan_t plan = nullptr;
  std::vector<double> times; // microseconds an operation, by round
};

/// As many operations as take some tens of milliseconds.
uint32_t repetitionsFor(uint64_t bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((32 << 20) / bytes, 4, 2000));
}

/// Each plan and size has a sequence of its own: what one of them keeps for the next call stays.
uint64_t idOf(size_t contender, size_t size) { return contender * 100 + size; }

void repeat(occlComm_t comm, const occlCall_t &call, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i)
    check(occlWait(comm, start(comm, call)));
}

/// Microseconds of an operation; the ranks begin together, for the last one before has waited for
/// all.
void measure(std::vector<occlComm_t> &comms, std::vector<Contender> &contenders, size_t size) {
  uint64_t count = kSizes[size] / sizeof(float);
  uint32_t repetitions = repetitionsFor(kSizes[size]);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < comms.size(); ++r)
    threads.emplace_back([&, r] {
      std::vector<float> input(count, 1), output(count);
      for (uint32_t round = 0; round < kRounds; ++round)
        for (size_t p = 0; p < contenders.size(); ++p) {
          const occlCall_t call =
              callOf(contenders[p].plan, input.data(), output.data(), count, idOf(p, size));
          repeat(comms[r], call, 2);
          auto begin = std::chrono::steady_clock::now();
          repeat(comms[r], call, repetitions);
          std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
          if (r == 0)
            contenders[p].times.push_back(time.count() / repetitions);
        }
    });
  for (std::thread &thread : threads)
    thread.join();
}

double takeMedian(std::vector<double> &times) {
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2];
  times.clear();
  return median;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<Contender> contenders(static_cast<size_t>(argc - 1));
  uint32_t numRanks = 0;
  for (size_t p = 0; p < contenders.size(); ++p) {
    check(occlPlanLoad(argv[p + 1], &contenders[p].plan));
    check(occlPlanQuery(contenders[p].plan, &numRanks, nullptr, nullptr));
  }
  if (contenders.empty()) {
    std::fprintf(stderr, "usage: compare_plans PLAN...\n");
    return 2;
  }
  std::vector<occlComm_t> comms(numRanks);
  check(occlCommInitAll(comms.data(), numRanks, nullptr));
  std::printf("| bytes |");
  for (int p = 1; p < argc; ++p)
    std::printf(" %s, us | first / this |", argv[p]);
  std::printf("\n|---:|");
  for (int p = 1; p < argc; ++p)
    std::printf("---:|---:|");
  std::printf("\n");
  for (size_t s = 0; s < std::size(kSizes); ++s) {
    measure(comms, contenders, s);
    std::printf("| %llu |", static_cast<unsigned long long>(kSizes[s]));
    double first = 0;
    for (Contender &contender : contenders) {
      double time = takeMedian(contender.times);
      first = first == 0 ? time : first;
      std::printf(" %.1f | %.2f |", time, first / time);
    }
    std::printf("\n");
  }
  for (occlComm_t comm : comms)
    check(occlCommDestroy(comm));
  for (Contender &contender : contenders)
    occlPlanDestroy(contender.plan);
}
