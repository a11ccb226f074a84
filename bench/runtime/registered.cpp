// What collectives cost that are registered and not used, and what those in flight cost: memory,
// and the time of a submission. Two ranks that are threads of this process; all numbers are of one
// rank.
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/communicator/handles.h"
#include "runtime/communicator/testing/resident_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using occl::bench::check;
using occl::bench::registerOn;
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
  explicit Bench(uint64_t numRegistered) : numRegistered(numRegistered), comms(kRanks) {
    check(occlCommInitAll(comms.data(), kRanks, nullptr));
  }
  ~Bench() {
    for (occlComm_t comm : comms)
      check(occlCommDestroy(comm));
  }

  void registerAll() {
    for (occlComm_t comm : comms)
      for (uint64_t id = 0; id < numRegistered; ++id) {
        registerOn(comm, plan.get(), id, kElements);
      }
  }
  occlRequest_t submit(uint32_t rank, uint64_t id) {
    occlRequest_t request = 0;
    check(
        occlSubmit(comms[rank], id, input.data(), output[rank].data(), nullptr, nullptr, &request));
    return request;
  }
  void wait(uint32_t rank, const std::vector<occlRequest_t> &requests) {
    for (occlRequest_t request : requests)
      check(occlWait(comms[rank], request));
  }
  /// Nanoseconds of a submission, the median over many rounds in each of which rank 0 submits
  /// `number` collectives, the next ones of `ids` in turn; then both ranks complete them.
  double timeOfSubmission(uint32_t number, uint64_t ids) {
    constexpr uint32_t kRounds = 2000;
    std::vector<double> times;
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> requests[kRanks];
      uint64_t first = uint64_t{round} * number % ids;
      auto begin = Clock::now();
      for (uint32_t i = 0; i < number; ++i)
        requests[0].push_back(submit(0, first + i));
      std::chrono::duration<double, std::nano> passed = Clock::now() - begin;
      times.push_back(passed.count() / number);
      for (uint32_t i = 0; i < number; ++i)
        requests[1].push_back(submit(1, first + i));
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
  /// Every collective once.
  void runEach() {
    for (uint64_t id = 0; id < numRegistered; id += kInFlight) {
      std::vector<occlRequest_t> requests[kRanks];
      for (uint32_t r = 0; r < kRanks; ++r)
        for (uint64_t i = id; i < std::min(id + kInFlight, numRegistered); ++i)
          requests[r].push_back(submit(r, i));
      waitOnBoth(requests);
    }
  }
  /// What so many invocations on both ranks grow by; then they are complete.
  double growthInFlight() {
    double before = residentBytes();
    std::vector<occlRequest_t> requests[kRanks];
    for (uint32_t r = 0; r < kRanks; ++r)
      for (uint64_t id = 0; id < kInFlight; ++id)
        requests[r].push_back(submit(r, id));
    double grown = residentBytes() - before;
    waitOnBoth(requests);
    return grown;
  }

private:
  uint64_t numRegistered;
  std::vector<occlComm_t> comms;
  std::shared_ptr<occlPlan> plan{
      occl::communicator::adoptPlan(occl::plan::testing::twoShotAllReduce(kRanks)),
      occlPlanDestroy};
  std::vector<float> input = std::vector<float>(kElements, 1);
  std::vector<std::vector<float>> output =
      std::vector<std::vector<float>>(kRanks, std::vector<float>(kElements));
};

} // namespace

int main() {
  constexpr uint64_t kFew = 10, kMany = 10000;
  std::printf("%-44s %8s\n", "memory of a rank", "bytes");
  {
    double before = residentBytes();
    Bench bench(kMany);
    print("a communicator, together", 1, residentBytes() - before);
    before = residentBytes();
    bench.registerAll();
    print("a registered collective", kMany, residentBytes() - before);
    print("an invocation in flight, of 1000", kInFlight, bench.growthInFlight());
    print("an invocation in flight, of 1000, again", kInFlight, bench.growthInFlight());
    before = residentBytes();
    bench.runEach();
    print("a collective once it has been used", kMany, residentBytes() - before);
  }
  std::printf("\n%-44s %8s\n", "median time of a submission", "ns");
  for (uint64_t registered : {kFew, kMany}) {
    Bench bench(registered);
    bench.registerAll();
    std::printf("ten collectives in turn, %5lu are registered %8.0f\n", registered,
                bench.timeOfSubmission(kFew, kFew));
    if (registered == kMany)
      std::printf("all in turn, %5lu are registered             %8.0f\n", registered,
                  bench.timeOfSubmission(kFew, kMany));
  }
}
