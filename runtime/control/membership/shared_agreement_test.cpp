#include "runtime/control/membership/shared_agreement.h"

#include "runtime/control/testing/thread_fabrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::daemon {
namespace {

using namespace std::chrono_literals;

using Members = std::vector<uint32_t>;

std::vector<std::unique_ptr<Fabric>> makeFabrics(uint32_t numRanks) {
  auto made = testing::makeThreadFabrics(numRanks, 4096);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made->fabrics);
}

/// body(rank, its part) on a thread for each rank.
void onAll(uint32_t numRanks,
           const std::function<void(uint32_t, Fabric &, SharedAgreement &)> &body) {
  auto fabrics = makeFabrics(numRanks);
  std::vector<std::unique_ptr<SharedAgreement>> parts;
  for (auto &fabric : fabrics)
    parts.push_back(std::make_unique<SharedAgreement>(*fabric));
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] { body(r, *fabrics[r], *parts[r]); });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<bool> without(uint32_t numRanks, const Members &excluded) {
  std::vector<bool> set(numRanks, false);
  for (uint32_t r : excluded)
    set[r] = true;
  return set;
}

TEST(SharedAgreement, AllThatAnswerAreMembers) {
  onAll(4, [](uint32_t, Fabric &, SharedAgreement &agreement) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      auto members = agreement.agree(without(4, {}), {}, Deadline(60s));
      ASSERT_TRUE(members.ok()) << members.status().message();
      EXPECT_EQ(members->members, (Members{0, 1, 2, 3}));
      EXPECT_EQ(agreement.conclude(members->members, true, Deadline(60s))->kind,
                Verdict::Confirmed);
    }
  });
}

TEST(SharedAgreement, AMemberThatAnyOtherExcludesIsOutAndToldSo) {
  onAll(4, [](uint32_t rank, Fabric &, SharedAgreement &agreement) {
    auto members =
        agreement.agree(without(4, rank == 3 ? Members{1} : Members{}), {}, Deadline(60s));
    if (rank != 1) {
      ASSERT_TRUE(members.ok()) << members.status().message();
      EXPECT_EQ(members->members, (Members{0, 2, 3}));
      return;
    }
    EXPECT_EQ(members.status().code(), StatusCode::PeerFailed);
    EXPECT_NE(members.status().message().find("rank 1 is not a member"), std::string::npos);
    EXPECT_FALSE(agreement.agree(without(4, {}), {}, Deadline(60s)).ok()) << "for good";
  });
}

TEST(SharedAgreement, AMemberThatDoesNotAnswerIsOut) {
  onAll(3, [](uint32_t rank, Fabric &, SharedAgreement &agreement) {
    if (rank == 0)
      std::this_thread::sleep_for(300ms);
    auto members = agreement.agree(without(3, {}), {}, Deadline(rank == 0 ? 60s : 50ms));
    if (rank != 0) {
      ASSERT_TRUE(members.ok()) << members.status().message();
      EXPECT_EQ(members->members, (Members{1, 2}));
    } else {
      EXPECT_NE(members.status().message().find("went on without it"), std::string::npos);
    }
  });
}

TEST(SharedAgreement, AMemberThatHasLeftIsNotWaitedFor) {
  onAll(3, [](uint32_t rank, Fabric &fabric, SharedAgreement &agreement) {
    if (rank == 2)
      return fabric.leave();
    auto members = agreement.agree(without(3, {}), {}, Deadline(60s));
    ASSERT_TRUE(members.ok()) << members.status().message();
    EXPECT_EQ(members->members, (Members{0, 1}));
  });
}

TEST(SharedAgreement, WhereOneCannotFormTheGroupAllTryAgain) {
  onAll(3, [](uint32_t rank, Fabric &fabric, SharedAgreement &agreement) {
    auto members = agreement.agree(without(3, {}), {}, Deadline(60s));
    ASSERT_TRUE(members.ok());
    EXPECT_EQ(agreement.conclude(members->members, rank != 1, Deadline(60s))->kind,
              Verdict::Refused);
    if (rank == 1)
      return fabric.leave();
    members = agreement.agree(without(3, {}), {}, Deadline(60s));
    ASSERT_TRUE(members.ok()) << members.status().message();
    EXPECT_EQ(members->members, (Members{0, 2}));
    EXPECT_EQ(agreement.conclude(members->members, true, Deadline(60s))->kind, Verdict::Confirmed);
  });
}

TEST(SharedAgreement, AllMembersGetTheSameListWhateverHappens) {
  uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 40; ++trial) {
    constexpr uint32_t kRanks = 6;
    struct Plan {
      bool comes = true, leaves = false;
      std::chrono::microseconds delay{0};
      Members excluded;
    };
    std::vector<Plan> plans(kRanks);
    for (Plan &plan : plans) {
      plan.comes = random() % 5 != 0;
      plan.leaves = random() % 2 != 0;
      plan.delay = std::chrono::microseconds(random() % 20000);
      if (random() % 4 == 0)
        plan.excluded = {static_cast<uint32_t>(random() % kRanks)};
    }
    std::vector<Members> got(kRanks);
    onAll(kRanks, [&](uint32_t rank, Fabric &fabric, SharedAgreement &agreement) {
      const Plan &plan = plans[rank];
      std::this_thread::sleep_for(plan.delay);
      if (!plan.comes && plan.leaves)
        fabric.leave();
      if (!plan.comes)
        return;
      auto members = agreement.agree(without(kRanks, plan.excluded), {}, Deadline(100ms));
      if (members.ok())
        got[rank] = members->members;
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      for (uint32_t member : got[r])
        EXPECT_EQ(got[member], got[r]) << "ranks " << member << " and " << r;
  }
}

} // namespace
} // namespace occl::daemon
