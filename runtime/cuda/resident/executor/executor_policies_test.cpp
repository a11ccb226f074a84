// Executors of a resident daemon go by the policies that they are told, the same as those of hosts.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/executor/choosing.h"
#include "runtime/cuda/resident/testing/executor_group.h"
#include "runtime/cuda/resident/testing/host_target.h"
#include "runtime/sched/policy/policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;
using scheduler::OrderPolicy;

namespace {

/// Submissions that are all there when the only executor begins, of one rank, so that each is
/// finished in its first turn: the numbers in the order in which they are.
std::vector<uint32_t> orderOfTurns(OrderPolicy order, bool preemption,
                                   const std::vector<uint8_t> &priorities) {
  Settings settings = hostSettings(1);
  settings.order = order;
  settings.preemption = preemption;
  Group group(1, settings);
  group[0].trace();
  group[0].mayBegin(false);
  for (uint8_t priority : priorities)
    group[0].submit(group.add(plan::testing::oneShotAllReduce(1), 10, 1), 0, priority);
  group[0].mayBegin(true);
  for (uint64_t request = 0; request < priorities.size(); ++request)
    EXPECT_TRUE(group[0].wait(request, kLong));
  EXPECT_TRUE(group[0].waitForQuit(kLong));
  group.expectRight(1);
  std::vector<uint32_t> turns;
  const MarkRing &ring = group[0].marksOf(0);
  for (uint64_t i = 0; i < ring.written; ++i)
    if (const MarkView mark = decode(ring.marks[i]); mark.moment == Moment::Finished)
      turns.push_back(mark.sequence);
  return turns;
}

template <typename Policy> std::vector<Policy> everyUpTo(Policy last) {
  std::vector<Policy> result;
  for (uint32_t policy = 1; policy <= static_cast<uint32_t>(last); ++policy)
    result.push_back(static_cast<Policy>(policy));
  return result;
}

TEST(ResidentPolicies, OrdersSayWhichTaskIsNext) {
  const std::vector<uint8_t> priorities = {1, 9, 1, 5};
  for (bool preemption : {true, false}) {
    using Turns = std::vector<uint32_t>;
    EXPECT_EQ(orderOfTurns(OrderPolicy::Priority, preemption, priorities), (Turns{1, 3, 0, 2}));
    EXPECT_EQ(orderOfTurns(OrderPolicy::Fifo, preemption, priorities), (Turns{0, 1, 2, 3}));
    EXPECT_EQ(orderOfTurns(OrderPolicy::Newest, preemption, priorities), (Turns{3, 2, 1, 0}));
  }
}

TEST(ResidentPolicies, BudgetsAreByPositionInThePass) {
  HostTarget target;
  auto board = std::make_unique<Board>();
  auto ledger = std::make_unique<Ledger>();
  for (auto policy : everyUpTo(scheduler::kLastBudget)) {
    Settings settings;
    settings.budget = policy;
    Choosing<HostTarget> choosing(settings, *board, 0, target, *ledger);
    choosing.begin(0, 0);
    Choice choice;
    choice.tasks = 10;
    for (uint32_t position = 0; position < 5; ++position) {
      EXPECT_EQ(choosing.budget(choice),
                scheduler::budgetOf(policy, settings.budgetLimits, {position, 10, false}));
      choosing.endTurn(choice);
    }
    choice.isAnnounced = false;
    EXPECT_EQ(choosing.budget(choice), 0u) << "one look, for it cannot be complete";
    choice.tasks = 1;
    EXPECT_EQ(choosing.budget(choice), settings.budgetAlone) << "nobody waits for its turn";
  }
}

/// Under every policy, with executors that lack a processor each: conflicting orders, and twice as
/// many tasks as can be polled at a time.
TEST(ResidentPolicies, AllCompleteUnderAllPolicies) {
  constexpr uint32_t kIterations = 2;
  for (auto order : everyUpTo(scheduler::kLastOrder))
    for (auto budget : everyUpTo(scheduler::kLastBudget)) {
      Settings settings = hostSettings(2);
      settings.order = order;
      settings.budget = budget;
      Group group(3, settings);
      for (uint64_t count : {1, 300, 1000})
        group.add(plan::testing::ringAllReduce(3), count, kIterations);
      group.add(plan::testing::twoShotAllReduce(3), 600, kIterations);
      ASSERT_TRUE(group.runInLatinSquareOrder(kIterations, kLong))
          << "order " << static_cast<uint32_t>(order) << ", budget "
          << static_cast<uint32_t>(budget);
      group.expectRight(kIterations);
    }
}

} // namespace
