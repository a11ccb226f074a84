// Partitioned collectives of ranks whose device has no thread: what moves does so where a test
// asks.
#include "plan/testing/example_plans.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/rank/daemon.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::daemon::testing {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kCount = 1 << 20; // more than ranks send before the other one looks

/// A rank with a request of no elements, whose invocation ends before its only partition is marked;
/// which the callback of a sum does.
struct Rank {
  explicit Rank(std::unique_ptr<Daemon> made) : daemon(std::move(made)) {
    spec.plan = std::make_shared<plan::Plan>(plan::testing::ringAllReduce(kRanks));
    PartitionedTerms terms;
    terms.spec = spec;
    terms.signature.planHash = 1;
    terms.inputPartitions = terms.outputPartitions = 1;
    auto request = requests().make(terms);
    EXPECT_TRUE(request.ok()) << request.status().message();
    part = *request;
    spec.count = signature.count = kCount;
    options.callbacksNeverBlock = true;
  }

  PartitionedCollectives &requests() { return daemon->partitionedCollectives(); }
  void start() {
    EXPECT_TRUE(requests().start(*part).ok());
    Submission call;
    call.input = input.data();
    call.output = output.data();
    call.signature = &signature;
    call.options = &options;
    call.callback = {&Rank::mark, nullptr, this};
    auto started = daemon->start(call, [&]() -> StatusOr<CollectiveSpec> { return spec; });
    EXPECT_TRUE(started.ok()) << started.status().message();
  }
  static Status mark(void (*)(), RequestId, StatusCode, void *rank) {
    auto *self = static_cast<Rank *>(rank);
    EXPECT_TRUE(self->requests().ready(*self->part, plan::Range{0, 1}).ok());
    return {};
  }

  std::unique_ptr<Daemon> daemon;
  CollectiveSpec spec;
  Signature signature;
  CallOptions options;
  std::vector<float> input = std::vector<float>(kCount), output = input;
  PartitionedCollective *part = nullptr;
};

/// A program that does nothing but test one request executes what its marks wait for, also when
/// nothing is left of that request but marks.
TEST(PartitionedCollectivesWithoutWorkers, TestingAloneEnds) {
  auto made = makeThreadFabrics(kRanks, 1 << 20);
  ASSERT_TRUE(made.ok()) << made.status().message();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (uint32_t r = 0; r < kRanks; ++r) {
    DeviceOptions options;
    options.workers = 0;
    ranks.push_back(std::make_unique<Rank>(std::make_unique<Daemon>(
        *Device::start(options, made->bells[r]), std::move(made->fabrics[r]), Options{})));
  }
  EXPECT_EQ(ranks[0]->daemon->lookUp(transport::partitionedIdOf(0)).name, "partitioned request 0");
  for (auto &rank : ranks)
    rank->start();
  constexpr int kMostTests = 10000;
  std::array<bool, kRanks> hasEnded{};
  for (int i = 0; i < kMostTests && !(hasEnded[0] && hasEnded[1]); ++i)
    for (uint32_t r = 0; r < kRanks; ++r) {
      const StatusCode result = ranks[r]->requests().test(*ranks[r]->part).code();
      ASSERT_TRUE(result == StatusCode::InProgress || result == StatusCode::Success);
      hasEnded[r] = result == StatusCode::Success;
    }
  EXPECT_TRUE(hasEnded[0] && hasEnded[1]);
}

} // namespace
} // namespace occl::daemon::testing
