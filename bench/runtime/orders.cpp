// What it costs that ranks start in different orders: batches of all-reduces, started by all
// ranks in the same order and by each in a random one of its own, in turns, on ranks that are
// threads of one process.
#include "bench/runtime/checked.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/sched/policy/calibration.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace {

using occl::bench::callOf;
using occl::bench::check;
using occl::bench::start;

constexpr uint32_t kCollectives = 8, kSeed = 1;

/// Enough batches for a steady median, in bounded time.
uint32_t batchesFor(uint64_t bytes) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((1ull << 30) / (bytes * kCollectives), 30, 500));
}

struct Rank {
  occlComm_t comm = nullptr;
  std::vector<float> input, output;      // of all collectives
  std::vector<double> inOrder, atRandom; // microseconds of each batch
  std::vector<occlCall_t> calls;         // by id

  /// `elements` are those of a buffer, `count` those of a part.
  void prepare(occlPlan_t plan, uint64_t elements, uint64_t count) {
    input.assign(elements * kCollectives, 1);
    output.assign(elements * kCollectives, 0);
    for (uint32_t id = 0; id < kCollectives; ++id)
      calls.push_back(
          callOf(plan, input.data() + id * elements, output.data() + id * elements, count, id));
  }

  double batch(const std::array<uint32_t, kCollectives> &order) {
    std::array<occlRequest_t, kCollectives> requests{};
    auto begin = std::chrono::steady_clock::now();
    for (uint32_t id : order)
      requests[id] = start(comm, calls[id]);
    for (occlRequest_t request : requests)
      check(occlWait(comm, request));
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
  }
};

/// The median over the batches of the slowest rank's time, for one collective.
double medianOf(const std::vector<Rank> &ranks, std::vector<double> Rank::*times) {
  std::vector<double> slowest = ranks[0].*times;
  for (const Rank &rank : ranks)
    for (size_t i = 0; i < slowest.size(); ++i)
      slowest[i] = std::max(slowest[i], (rank.*times)[i]);
  std::nth_element(slowest.begin(), slowest.begin() + slowest.size() / 2, slowest.end());
  return slowest[slowest.size() / 2] / kCollectives;
}

void measure(uint32_t numRanks, uint64_t bytes) {
  std::vector<occlComm_t> comms(numRanks);
  check(occlCommInitAll(comms.data(), numRanks, nullptr));
  occl::plan::Plan made = bytes <= 4096 ? occl::plan::testing::oneShotAllReduce(numRanks)
                                        : occl::plan::testing::twoShotAllReduce(numRanks);
  const uint64_t parts = bytes <= 4096 ? 1 : numRanks;
  std::shared_ptr<occlPlan> plan(occl::communicator::adoptPlan(std::move(made)), occlPlanDestroy);
  std::vector<Rank> ranks(numRanks);
  std::barrier together(numRanks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      Rank &rank = ranks[r];
      rank.comm = comms[r];
      rank.prepare(plan.get(), bytes / sizeof(float), bytes / sizeof(float) / parts);
      std::mt19937 random(kSeed + r);
      std::array<uint32_t, kCollectives> order{};
      for (uint32_t i = 0; i < 2 * batchesFor(bytes); ++i) {
        std::iota(order.begin(), order.end(), 0u);
        bool atRandom = i % 2 != 0;
        if (atRandom)
          std::shuffle(order.begin(), order.end(), random);
        together.arrive_and_wait();
        (atRandom ? rank.atRandom : rank.inOrder).push_back(rank.batch(order));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  const double inOrder = medianOf(ranks, &Rank::inOrder),
               atRandom = medianOf(ranks, &Rank::atRandom);
  const double roundTrip = static_cast<double>(occl::scheduler::flagRoundTrip().count()) * 1e-3;
  std::printf("| %u | %llu | %.2f | %.2f | %+.1f %% | %+.2f |\n", numRanks,
              static_cast<unsigned long long>(bytes), inOrder, atRandom,
              (atRandom / inOrder - 1) * 100, (atRandom - inOrder) / roundTrip);
  for (occlComm_t comm : comms)
    check(occlCommDestroy(comm));
}

} // namespace

int main() {
  std::printf("%u all-reduces a batch, seed %u; a flag's round trip takes %lld ns\n\n",
              kCollectives, kSeed,
              static_cast<long long>(occl::scheduler::flagRoundTrip().count()));
  std::printf(
      "| ranks | bytes | same order, us each | random orders, us each | cost | cost in round "
      "trips |\n|---:|---:|---:|---:|---:|---:|\n");
  for (uint32_t numRanks : {2u, 4u, 8u})
    for (uint64_t bytes : {64ull, 4096ull, 65536ull, 1ull << 20, 4ull << 20})
      measure(numRanks, bytes);
}
