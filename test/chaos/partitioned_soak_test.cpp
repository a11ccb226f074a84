// Partitioned requests beside calls, of two communicators whose requests each rank starts, marks
// and waits for in orders of its own: a third of all is partitioned. Memory stays as it is.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_partitioned.hpp"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/resident_memory.h"
#include "runtime/api/testing/steps.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 4, kComms = 2, kJobs = 4;
constexpr int kIterations = 300 / kSlowness;
constexpr int64_t kPartitions = 12;
constexpr size_t kElements = 12 * 300;

/// A request of a rank, with its buffers. Element i of rank r's input is r + i + epoch.
struct Transfer {
  std::vector<int32_t> input, output;
  std::vector<Partitioned> requests; // of a collective one; else a send and a receive
  bool isSum;

  /// Between all ranks, or to the next one and from the last one.
  Transfer(const Communicator &comm, bool isSum, int64_t outputs)
      : input(kElements), output(kElements), isSum(isSum) {
    const int64_t rank = comm.rank(), next = (rank + 1) % kRanks,
                  last = (rank + kRanks - 1) % kRanks;
    if (isSum) {
      requests.push_back(pallReduce<int32_t>(comm, input, kPartitions, output, outputs));
      return;
    }
    requests.push_back(psend<int32_t>(comm, input, kPartitions, next, 5));
    requests.push_back(precv<int32_t>(comm, output, outputs, last, 5));
  }
  void start() {
    for (Partitioned &request : requests)
      request.start();
  }
  /// All, in any order, by two threads.
  void mark(uint32_t rank, int32_t epoch, std::mt19937 &random) {
    std::vector<int64_t> order(kPartitions);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    const auto markSome = [&](size_t from) {
      for (size_t i = from; i < order.size(); i += 2) {
        const size_t each = kElements / kPartitions, at = static_cast<size_t>(order[i]) * each;
        std::iota(&input[at], &input[at] + each, static_cast<int32_t>(rank + at) + epoch);
        requests[0].ready(order[i]);
      }
    };
    std::thread other([&] { markSome(1); });
    markSome(0);
    other.join();
  }
  void wait() {
    for (Partitioned &request : requests)
      request.wait();
  }
  /// How many elements of the output are wrong.
  int64_t wrong(uint32_t rank, int32_t epoch) const {
    int64_t number = 0;
    for (size_t i = 0; i < kElements; ++i) {
      const auto one = static_cast<int32_t>((rank + kRanks - 1) % kRanks + i) + epoch;
      const auto sum = static_cast<int32_t>(kRanks * i + kRanks * (kRanks - 1) / 2) +
                       static_cast<int32_t>(kRanks) * epoch;
      number += output[i] != (isSum ? sum : one);
    }
    return number;
  }
};

/// What a rank has of a communicator.
struct Place {
  occlComm_t comm;
  std::vector<Job> *jobs;
  std::deque<Transfer> transfers;
};

/// Everything of all communicators once: started in one order, marked in another, waited for in a
/// third.
void runOnce(std::vector<Place> &places, uint32_t rank, int32_t epoch, std::mt19937 &random) {
  std::vector<std::pair<Place *, uint32_t>> calls;
  std::vector<Transfer *> transfers;
  for (Place &place : places) {
    for (uint32_t j = 0; j < kJobs; ++j)
      calls.emplace_back(&place, j);
    for (Transfer &transfer : place.transfers)
      transfers.push_back(&transfer);
  }
  std::ranges::shuffle(calls, random);
  std::ranges::shuffle(transfers, random);
  std::vector<std::pair<occlComm_t, occlRequest_t>> begun;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i % 2 == 0)
      transfers[i / 2]->start();
    auto &[place, j] = calls[i];
    begun.emplace_back(place->comm, 0);
    check(submitOnceFree((*place->jobs)[j], place->comm, rank, &begun.back().second));
  }
  std::ranges::shuffle(transfers, random);
  for (Transfer *transfer : transfers)
    transfer->mark(rank, epoch, random);
  std::ranges::shuffle(transfers, random);
  for (Transfer *transfer : transfers)
    transfer->wait();
  for (auto &[comm, request] : begun)
    check(occlWait(comm, request));
  for (const Transfer *transfer : transfers)
    ASSERT_EQ(transfer->wrong(rank, epoch), 0) << "epoch " << epoch;
  for (Place &place : places)
    for (Job &job : *place.jobs)
      ASSERT_EQ(job.check(rank), "");
}

TEST(PartitionedSoak, OrdersThatConflictAcrossCommunicators) {
  const uint64_t seed = printedSeed();
  const PlanHandle ring = handleOf(plan::testing::ringAllReduce(kRanks));
  std::vector<std::vector<Job>> jobs(kComms);
  for (std::vector<Job> &ofComm : jobs)
    for (uint32_t j = 0; j < kJobs; ++j)
      ofComm.emplace_back(j, ring, uint64_t{64} << j, DataType::Int32);
  std::vector<std::vector<Communicator>> comms;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 60000;
  for (uint32_t c = 0; c < kComms; ++c)
    comms.push_back(Communicator::all(kRanks, config));
  uint64_t middle = 0;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      std::mt19937 random(static_cast<uint32_t>(seed) + r);
      std::vector<Place> places(kComms);
      for (uint32_t c = 0; c < kComms; ++c) {
        places[c].comm = comms[c][r].handle();
        places[c].jobs = &jobs[c];
        places[c].transfers.emplace_back(comms[c][r], true, 2 + r);
        places[c].transfers.emplace_back(comms[c][r], false, 12 * (1 + r % 3));
      }
      for (int32_t epoch = 0; epoch < kIterations; ++epoch) {
        EXPECT_NO_THROW(runOnce(places, r, epoch, random)) << comms[0][r].failure();
        if (::testing::Test::HasFailure())
          break;
        if (r == 0 && epoch == kIterations / 2)
          middle = residentKilobytes();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  constexpr uint64_t kAllowed = (8 << 10) * (kSlowness > 1 ? 8 : 1);
  EXPECT_LT(residentKilobytes(), middle + kAllowed) << "memory has grown from " << middle << " KiB";
}

} // namespace
} // namespace occl::communicator::testing
