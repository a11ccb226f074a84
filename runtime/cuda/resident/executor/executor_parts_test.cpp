// Executors and partitioned collectives: thread blocks wait for the partitions that they read, and
// say what they have made. Marks are those of kernels, as host code.
#include "plan/testing/example_plans.h"
#include "plan/transform/rounds.h"
#include "runtime/api/occl_device_parts.cuh"
#include "runtime/cuda/partitioned/gate_table.h"
#include "runtime/cuda/resident/executor/part_gate.h"
#include "runtime/cuda/resident/testing/executor_group.h"
#include "runtime/cuda/resident/testing/host_target.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

using namespace occl;
using namespace occl::cuda;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

namespace device_words = occl::device::detail;
using device_words::Part;

plan::Plan cut(const plan::Plan &plan, uint32_t rounds) {
  auto made = plan::inRounds(plan, rounds);
  EXPECT_TRUE(bool(made));
  return std::move(*made);
}

/// The request of one rank: an all-reduce of `count` elements.
class Request {
public:
  Request(HostCollective &collective, uint32_t rank, uint64_t count, uint64_t inputs,
          uint64_t outputs)
      : table(collective.program(rank), {.input = {count, inputs}, .output = {count, outputs}}),
        marked(inputs) {
    state.side = device_words::Side::Collective;
    state.partitions = inputs;
    state.marked = marked.data();
    state.outputs = table.outputs.data();
    state.numOutputs = outputs;
    state.numBlocks = table.numBlocks;
    gates.state = &state;
    gates.ranges = table.ranges.data();
    gates.firstRead = table.firstRead.data();
    gates.firstMade = table.firstMade.data();
    gates.numBlocks = table.numBlocks;
    gates.atEnd = table.atEnd;
    collective.setParts(rank, &gates);
  }

  void start() { device_words::releaseWord(&state.epoch, state.epoch + 1); }
  void mark(uint64_t p) { EXPECT_FALSE(Part(&state).mark(p)); }
  bool hasArrived(uint64_t q) { return Part(&state).hasCome(q); }
  bool isFinished() {
    return device_words::acquireWord(&state.finished) == state.epoch * state.numBlocks;
  }
  /// As the kernel behind the call.
  void end() {
    EXPECT_TRUE(isFinished());
    EXPECT_EQ(device_words::loadWord(&state.misuse), 0u);
    for (uint64_t q = 0; q < state.numOutputs; ++q)
      EXPECT_TRUE(hasArrived(q)) << q;
    device_words::releaseWord(&state.done, state.epoch);
  }

  device_words::State state{};

private:
  GateTable table;
  std::vector<uint64_t> marked;
  PartGates gates{};
};

/// Requests of all ranks of one collective.
std::vector<std::unique_ptr<Request>> requestsOf(HostCollective &collective, uint64_t count,
                                                 uint64_t inputs, uint64_t outputs) {
  std::vector<std::unique_ptr<Request>> made;
  for (uint32_t r = 0; r < collective.numRanks(); ++r)
    made.push_back(std::make_unique<Request>(collective, r, count, inputs, outputs));
  return made;
}

/// The gate goes on where it was, names the first partition that is missing, and looks at all.
TEST(ResidentParts, AGateOfSeveralRanges) {
  std::vector<uint64_t> marked(300);
  device_words::State state{};
  state.epoch = 2;
  state.marked = marked.data();
  const std::vector<PartitionRange> ranges = {{0, 3}, {10, 200}, {299, 300}};
  const std::vector<uint32_t> firstRead = {0, 3}, firstMade = {3, 3};
  PartGates gates{};
  gates.state = &state;
  gates.ranges = ranges.data();
  gates.firstRead = firstRead.data();
  gates.firstMade = firstMade.data();
  gates.numBlocks = 1;
  HostTarget target;
  PartGate<HostTarget> gate(target, gates, 7, 0);
  GateCursor cursor = gate.begin();
  const auto missing = [&]() -> std::optional<uint32_t> {
    interpreter::StepResult result;
    if (gate.opens(cursor, result))
      return std::nullopt;
    EXPECT_EQ(result.status, interpreter::StepStatus::Blocked);
    EXPECT_TRUE(interpreter::isPartition(result.obstacle));
    EXPECT_EQ(result.obstacle.peer, 7u);
    return result.obstacle.what - interpreter::kFirstPartition;
  };
  std::ranges::fill(marked, 1); // in the epoch before
  for (const PartitionRange &range : ranges)
    for (uint32_t p = range.begin; p < range.end; ++p) {
      EXPECT_EQ(missing(), std::optional(p));
      marked[p] = 2;
    }
  EXPECT_EQ(missing(), std::nullopt);
  EXPECT_EQ(missing(), std::nullopt) << "it stays open";
}

/// Each rank marks in an order of its own, beside its executors.
TEST(ResidentParts, AnyOrderOfMarks) {
  const uint64_t seed = printedSeed();
  constexpr uint64_t kCount = 4 * 240;
  constexpr uint32_t kEpochs = 6;
  for (uint32_t rounds : {1, 4}) {
    Group group(3, hostSettings(2));
    HostCollective &collective =
        group.add(cut(plan::testing::ringAllReduce(3), rounds), kCount, kEpochs);
    auto requests = requestsOf(collective, kCount, 7, 11);
    std::vector<std::thread> ranks;
    for (uint32_t r = 0; r < 3; ++r)
      ranks.emplace_back([&, r] {
        std::mt19937_64 random(seed + r);
        std::vector<uint64_t> order(7);
        std::iota(order.begin(), order.end(), 0);
        for (uint32_t e = 0; e < kEpochs; ++e) {
          Request &request = *requests[r];
          request.start();
          const uint64_t call = group[r].submitStreamed(collective, r);
          group[r].reach(call);
          std::shuffle(order.begin(), order.end(), random);
          for (uint64_t p : order) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
            request.mark(p);
          }
          ASSERT_TRUE(group[r].wait(call, kLong));
          request.end();
        }
      });
    for (std::thread &rank : ranks)
      rank.join();
    group.expectRight(kEpochs);
  }
}

/// All but the last partition of one rank are marked: what does not depend on it arrives, and the
/// call does not end. Rounds begin near partitions, so the last but one may depend on it, too.
TEST(ResidentParts, MarkedRoundsArriveBeforeTheOthersAreMarked) {
  constexpr uint64_t kCount = 4 * 100, kParts = 4;
  Group group(2, hostSettings(2));
  HostCollective &collective = group.add(cut(plan::testing::twoShotAllReduce(2), 4), kCount, 1);
  auto requests = requestsOf(collective, kCount, kParts, kParts);
  uint64_t calls[2];
  for (uint32_t r = 0; r < 2; ++r) {
    requests[r]->start();
    calls[r] = group[r].submitStreamed(collective, r);
    group[r].reach(calls[r]);
    for (uint64_t p = 0; p + (r == 0 ? 1 : 0) < kParts; ++p)
      requests[r]->mark(p);
  }
  for (auto &request : requests)
    for (uint64_t q = 0; q + 2 < kParts; ++q)
      EXPECT_TRUE(waitFor([&] {
        group[0].side().restartIfOpen();
        group[1].side().restartIfOpen();
        return request->hasArrived(q);
      })) << q;
  std::this_thread::sleep_for(50ms);
  for (auto &request : requests) {
    EXPECT_FALSE(request->hasArrived(kParts - 1));
    EXPECT_FALSE(request->isFinished());
  }
  requests[0]->mark(kParts - 1);
  ASSERT_TRUE(waitForBoth(group, calls[0], calls[1]));
  for (auto &request : requests)
    request->end();
  group.expectRight(1);
}

/// Partitions that nobody reads, as they are empty, are waited for when all has been made.
TEST(ResidentParts, EmptyPartitionsKeepTheEpochAndNoArrival) {
  constexpr uint64_t kCount = 5, kParts = 4; // the last one is empty
  Group group(2, hostSettings(2));
  HostCollective &collective = group.add(plan::testing::ringAllReduce(2), kCount, 1);
  auto requests = requestsOf(collective, kCount, kParts, 2);
  uint64_t calls[2];
  for (uint32_t r = 0; r < 2; ++r) {
    requests[r]->start();
    calls[r] = group[r].submitStreamed(collective, r);
    group[r].reach(calls[r]);
    for (uint64_t p = 0; p + 1 < kParts; ++p)
      requests[r]->mark(p);
  }
  for (auto &request : requests)
    for (uint64_t q = 0; q < 2; ++q)
      EXPECT_TRUE(waitFor([&] { return request->hasArrived(q); }));
  std::this_thread::sleep_for(50ms);
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_FALSE(group[r].side().isComplete(calls[r]));
  for (auto &request : requests)
    request->mark(kParts - 1);
  ASSERT_TRUE(waitForBoth(group, calls[0], calls[1]));
  for (auto &request : requests)
    request->end();
  group.expectRight(1);
}

/// A second mark, and then all: nothing is run any more.
TEST(ResidentParts, NothingRunsOnceSomethingWasMisused) {
  constexpr uint64_t kCount = 100;
  Group group(2, hostSettings(2));
  HostCollective &collective = group.add(plan::testing::ringAllReduce(2), kCount, 1);
  auto requests = requestsOf(collective, kCount, 2, 2);
  for (uint32_t r = 0; r < 2; ++r) {
    requests[r]->start();
    group[r].reach(group[r].submitStreamed(collective, r));
  }
  for (auto &request : requests) {
    request->mark(0);
    request->mark(0);
    request->mark(1);
    EXPECT_NE(device_words::loadWord(&request->state.misuse), 0u);
  }
  std::this_thread::sleep_for(100ms);
  for (auto &request : requests) {
    EXPECT_FALSE(request->isFinished());
    EXPECT_FALSE(request->hasArrived(0));
  }
}

} // namespace
