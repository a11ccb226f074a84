// occlCallCoalesced on hosts: each call as by occlCall, up to the first that is refused.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_coalesced.h"
#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 3;

/// Different collectives, counts and types.
std::vector<Job> jobs() {
  std::vector<Job> all;
  all.emplace_back(0, handleOf(plan::testing::ringAllReduce(kRanks)), 100);
  all.emplace_back(1, handleOf(plan::testing::ringAllReduce(kRanks)), 1, DataType::Int64);
  all.emplace_back(2, handleOf(plan::testing::ringAllGather(kRanks)), 77);
  all.emplace_back(3, handleOf(plan::testing::ringAllReduce(kRanks)), 100);
  return all;
}

struct Calls {
  Calls(std::vector<Job> &jobs, uint32_t rank) {
    for (Job &job : jobs) {
      job.clear(rank);
      calls.push_back(job.call(rank));
    }
    for (const occlCall_t &call : calls)
      pointers.push_back(&call);
  }
  std::vector<occlCall_t> calls;
  std::vector<const occlCall_t *> pointers;
};

TEST(Coalesced, AllCallsAreExecuted) {
  std::vector<Job> all = jobs();
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    const Calls calls(all, r);
    size_t numCalled = 99;
    ASSERT_EQ(occlCallCoalesced(ranks[r], calls.pointers.data(), all.size(), nullptr, &numCalled),
              occlSuccess);
    EXPECT_EQ(numCalled, all.size());
    for (Job &job : all)
      EXPECT_EQ(job.check(r), "");
  });
}

TEST(Coalesced, NoCallsSucceed) {
  Ranks ranks(1);
  size_t numCalled = 99;
  EXPECT_EQ(occlCallCoalesced(ranks[0], nullptr, 0, nullptr, &numCalled), occlSuccess);
  EXPECT_EQ(numCalled, 0u);
  EXPECT_EQ(occlCallCoalesced(ranks[0], nullptr, 0, nullptr, nullptr), occlSuccess);
}

TEST(Coalesced, CallsBeforeOneThatIsRefusedAreExecuted) {
  std::vector<Job> all = jobs();
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    Calls calls(all, r);
    calls.calls[2].count = uint64_t{1} << 60;
    size_t numCalled = 99;
    EXPECT_EQ(occlCallCoalesced(ranks[r], calls.pointers.data(), all.size(), nullptr, &numCalled),
              occlInvalidArgument);
    EXPECT_NE(std::string(occlGetLastError()).find("more than 2^58"), std::string::npos);
    EXPECT_EQ(numCalled, 2u);
    EXPECT_EQ(all[0].check(r), "");
    EXPECT_EQ(all[1].check(r), "");
    EXPECT_NE(all[3].check(r), "");
  });
}

TEST(Coalesced, NullsAreRefused) {
  Ranks ranks(1);
  const occlCall_t *none = nullptr;
  EXPECT_EQ(occlCallCoalesced(nullptr, &none, 1, nullptr, nullptr), occlInvalidArgument);
  EXPECT_EQ(occlCallCoalesced(ranks[0], nullptr, 1, nullptr, nullptr), occlInvalidArgument);
  size_t numCalled = 99;
  EXPECT_EQ(occlCallCoalesced(ranks[0], &none, 1, nullptr, &numCalled), occlInvalidArgument);
  EXPECT_EQ(numCalled, 0u);
}

} // namespace
} // namespace occl::communicator::testing
