// What sequences cost that have been used, and what invocations in flight cost: memory, and the
// time of a start. Two ranks that are threads of this process; all numbers are of one rank.
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/testing/resident_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using occl::bench::callOf;
using occl::bench::check;
using occl::communicator::testing::residentKilobytes;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kRanks = 2;
constexpr uint64_t kElements = 1024; // 4 KiB
constexpr uint32_t kInFlight = 1000; // invocations at once

/// Of all ranks, which are threads.
double residentBytes() { return static_cast<double>(residentKilobytes()) * 1024; }

void print(const char *what, uint64_t number, double grown) {
  std::printf("%-44s %8.0f\n", what, grown / static_cast<double>(number * kRanks));
}

class Bench {
public:
  Bench() : comms(kRanks) { check(occlCommInitAll(comms.data(), kRanks, nullptr)); }
  ~Bench() {
    for (occlComm_t comm : comms)
      check(occlCommDestroy(comm));
  }

  occlRequest_t start(uint32_t rank, uint64_t id) {
    return occl::bench::start(comms[rank],
                              callOf(plan.get(), input.data(), output[rank].data(), kElements, id));
  }
  void wait(uint32_t rank, const std::vector<occlRequest_t> &requests) {
    for (occlRequest_t request : requests)
      check(occlWait(comms[rank], request));
  }
  /// Nanoseconds of a start, the median over many rounds in each of which rank 0 starts `number`
  /// collectives, the next ones of `ids` in turn; then both ranks complete them.
  double timeOfStart(uint32_t number, uint64_t ids) {
    constexpr uint32_t kRounds = 2000;
    std::vector<double> times;
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> requests[kRanks];
      uint64_t first = uint64_t{round} * number % ids;
      auto begin = Clock::now();
      for (uint32_t i = 0; i < number; ++i)
        requests[0].push_back(start(0, first + i));
      std::chrono::duration<double, std::nano> passed = Clock::now() - begin;
      times.push_back(passed.count() / number);
      for (uint32_t i = 0; i < number; ++i)
        requests[1].push_back(start(1, first + i));
      waitOnBoth(requests);
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }
  void waitOnBoth(const std::vector<occlRequest_t> (&requests)[kRanks]) {
    std::thread other([&] { wait(1, requests[1]); });
    wait(0, requests[0]);
    other.join();
  }
  /// The sequences with these ids once.
  void runEach(uint64_t begin, uint64_t end) {
    for (uint64_t id = begin; id < end; id += kInFlight) {
      std::vector<occlRequest_t> requests[kRanks];
      for (uint32_t r = 0; r < kRanks; ++r)
        for (uint64_t i = id; i < std::min(id + kInFlight, end); ++i)
          requests[r].push_back(start(r, i));
      waitOnBoth(requests);
    }
  }
  /// What invocations of so many sequences on both ranks grow by; then they are complete.
  double growthInFlight() {
    double before = residentBytes();
    std::vector<occlRequest_t> requests[kRanks];
    for (uint32_t r = 0; r < kRanks; ++r)
      for (uint64_t id = 0; id < kInFlight; ++id)
        requests[r].push_back(start(r, id));
    double grown = residentBytes() - before;
    waitOnBoth(requests);
    return grown;
  }

private:
  std::vector<occlComm_t> comms;
  std::shared_ptr<occlPlan> plan{
      occl::communicator::adoptPlan(occl::plan::testing::twoShotAllReduce(kRanks)),
      occlPlanDestroy};
  std::vector<float> input = std::vector<float>(kElements, 1);
  std::vector<std::vector<float>> output =
      std::vector<std::vector<float>>(kRanks, std::vector<float>(kElements));
};

void printMemory(Bench &bench, double before, uint64_t number) {
  std::printf("%-44s %8s\n", "memory of a rank", "bytes");
  print("a communicator, together", 1, residentBytes() - before);
  print("an invocation in flight, of 1000, the first", kInFlight, bench.growthInFlight());
  print("an invocation in flight, of 1000, again", kInFlight, bench.growthInFlight());
  before = residentBytes();
  bench.runEach(kInFlight, number);
  print("a sequence that has been used, of 9000 more", number - kInFlight,
        residentBytes() - before);
}

void printTime(const char *which, uint64_t used, double nanoseconds) {
  std::printf("%s in turn, %5llu have been used %*s%8.0f\n", which,
              static_cast<unsigned long long>(used), static_cast<int>(14 - std::strlen(which)), "",
              nanoseconds);
}

} // namespace

int main() {
  constexpr uint64_t kFew = 10, kMany = 10000;
  {
    const double before = residentBytes();
    Bench bench;
    printMemory(bench, before, kMany);
    std::printf("\n%-44s %8s\n", "median time of a start", "ns");
    printTime("10 sequences", kMany, bench.timeOfStart(kFew, kFew));
    printTime("1000", kMany, bench.timeOfStart(kFew, kInFlight));
    printTime("10000", kMany, bench.timeOfStart(kFew, kMany));
  }
  Bench bench;
  printTime("10 sequences", kFew, bench.timeOfStart(kFew, kFew));
}
