// Each policy in both of its forms, as hosts compare tasks and as devices make keys of them, by one
// table of cases.
#include "runtime/sched/policy/policy.h"

#include "runtime/api/occl_types.h"
#include "runtime/sched/policy/order_key.h"
#include "runtime/sched/policy/task_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace occl::scheduler {
namespace {

/// Both forms are functions of constants.
static_assert(goesBefore(OrderPolicy::Fifo, {0, 0}, {9, 1}));
static_assert(budgetOf(BudgetPolicy::Flat, {1, 2}, {}) == 2);

//===-- Orders ------------------------------------------------------------------------------===//

/// A policy's numbers of tasks in the order in which they have their turn.
struct Ordered {
  OrderPolicy policy;
  uint32_t inApi;
  std::vector<size_t> expected;
};
struct OrderCase {
  std::string what;
  /// {priority, arrival here, announced by all, turn at the lowest rank}; by arrival.
  std::vector<Standing> tasks;
  std::vector<Ordered> orders;
};
std::ostream &operator<<(std::ostream &to, const OrderCase &from) { return to << from.what; }

std::vector<Ordered> orders(std::vector<size_t> priority, std::vector<size_t> fifo,
                            std::vector<size_t> newest) {
  return {{OrderPolicy::Priority, occlOrderPriority, std::move(priority)},
          {OrderPolicy::Fifo, occlOrderFifo, std::move(fifo)},
          {OrderPolicy::Newest, occlOrderNewest, std::move(newest)}};
}

const OrderCase kOrderCases[] = {
    {"none announced",
     {{1, 0}, {9, 1}, {1, 2}, {5, 3}},
     orders({1, 3, 0, 2}, {0, 1, 2, 3}, {3, 2, 1, 0})},
    {"announced ones first, by the turn on the lowest rank, which has wrapped around",
     {{9, 0}, {1, 1, true, 7}, {5, 2, true, 8}, {5, 3, true, 6}, {1, 4}, {1, 5, true, ~0u}},
     orders({3, 2, 5, 1, 0, 4}, {5, 3, 1, 2, 0, 4}, {2, 1, 3, 5, 4, 0})},
    {"equal in all but arrival: turns of two communicators",
     {{3, 0, true, 4}, {3, 1, true, 4}, {3, 2, true, 4}},
     orders({0, 1, 2}, {0, 1, 2}, {2, 1, 0})},
    {"extreme priorities",
     {{0, 0, true, 0}, {255, 1, true, 1}, {254, 2, true, 2}},
     orders({1, 2, 0}, {0, 1, 2}, {2, 1, 0})},
    {"one", {{0, 0}}, orders({0}, {0}, {0})},
};

class Orders : public ::testing::TestWithParam<OrderCase> {};
INSTANTIATE_TEST_SUITE_P(Policies, Orders, ::testing::ValuesIn(kOrderCases));

/// The queue of a host: whatever the order in which tasks come in.
std::vector<size_t> asQueued(OrderPolicy policy, std::span<const Standing> standings,
                             std::span<const size_t> comingIn) {
  TaskQueue queue(policy);
  std::vector<Task> tasks(standings.size());
  for (size_t i : comingIn) {
    tasks[i].standing = standings[i];
    queue.insert(tasks[i]);
  }
  std::vector<size_t> result;
  for (size_t i = 0; i < queue.length(); ++i)
    result.push_back(static_cast<size_t>(&queue.at(i) - tasks.data()));
  return result;
}

/// The choice of a device: the task with the smallest key, again and again. Submissions are
/// numbered by arrival; each has a thread block, and the last one was visited before.
std::vector<size_t> asKeyed(OrderPolicy policy, std::span<const Standing> standings) {
  constexpr uint32_t kHalf = OrderKey::kAges / 2, kBlock = 63;
  const auto agedFrom = static_cast<uint32_t>(0 - kHalf);
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < standings.size(); ++i) {
    const Standing &task = standings[i];
    const uint64_t standing = standingKey(policy, static_cast<uint8_t>(task.priority),
                                          task.isAnnounced, task.turn % OrderKey::kAges);
    keys.push_back(keyOf(policy, standing, agedFrom, false, i, kBlock));
  }
  std::ranges::sort(keys);
  std::vector<size_t> result;
  for (uint64_t key : keys) {
    const KeyedTask task = taskOf(policy, key, agedFrom);
    const Standing &standing = standings[task.number];
    EXPECT_EQ(task.block, kBlock);
    EXPECT_EQ(task.isAnnounced, standing.isAnnounced);
    EXPECT_EQ(task.isAged, standing.isAnnounced);
    EXPECT_FALSE(task.isOthers);
    EXPECT_TRUE(!task.isAged || task.age == standing.turn % OrderKey::kAges);
    result.push_back(task.number);
  }
  return result;
}

TEST_P(Orders, AreTheSameOnHostsAndDevices) {
  const OrderCase &given = GetParam();
  ASSERT_EQ(given.orders.size(), static_cast<size_t>(kLastOrder)) << "a policy has no case";
  for (const Ordered &order : given.orders) {
    EXPECT_EQ(static_cast<uint32_t>(order.policy), order.inApi);
    std::vector<size_t> comingIn(given.tasks.size());
    std::iota(comingIn.begin(), comingIn.end(), size_t{0});
    do
      EXPECT_EQ(asQueued(order.policy, given.tasks, comingIn), order.expected)
          << "policy " << order.inApi;
    while (std::ranges::next_permutation(comingIn).found);
    EXPECT_EQ(asKeyed(order.policy, given.tasks), order.expected) << "policy " << order.inApi;
  }
}

std::vector<OrderPolicy> everyOrder() {
  std::vector<OrderPolicy> result;
  for (uint32_t order = 1; order <= static_cast<uint32_t>(kLastOrder); ++order)
    result.push_back(static_cast<OrderPolicy>(order));
  return result;
}

/// Under every order, on devices alone: an executor's own tasks go before those of others.
TEST(OrderKeys, PutOthersTasksBehindOwnOnes) {
  for (OrderPolicy policy : everyOrder()) {
    const uint64_t urgent = standingKey(policy, 255, true, 1),
                   other = standingKey(policy, 0, true, 2);
    EXPECT_GT(keyOf(policy, urgent, 0, true, 0, 0), keyOf(policy, other, 0, false, 1, 0));
    EXPECT_LT(keyOf(policy, urgent, 0, true, 0, 0),
              keyOf(policy, standingKey(policy, 255, false, 0), 0, false, 1, 0))
        << "what some rank has not announced comes last";
    EXPECT_TRUE(taskOf(policy, keyOf(policy, urgent, 0, true, 0, 0), 0).isOthers);
  }
}

/// Of one submission, alike under every order.
TEST(OrderKeys, PutThreadBlocksInOrder) {
  for (OrderPolicy policy : everyOrder())
    for (bool isAnnounced : {false, true})
      for (uint32_t block = 1; block < OrderKey::kBlocks; ++block) {
        const uint64_t standing = standingKey(policy, 7, isAnnounced, 5);
        const uint64_t key = keyOf(policy, standing, 1, false, 255, block);
        EXPECT_LT(keyOf(policy, standing, 1, false, 255, block - 1), key);
        EXPECT_LT(key, OrderKey::kNone);
        EXPECT_EQ(taskOf(policy, key, 1).number, 255u);
      }
}

//===-- Budgets -----------------------------------------------------------------------------===//

struct BudgetCase {
  Visit visit;
  /// By policy, from the first on.
  std::vector<uint64_t> expected;
};
constexpr BudgetLimits kLimits = {.floor = 100, .cap = 1600};
const BudgetCase kBudgetCases[] = {
    {{0, 10, false}, {1600, 1600, 0}},     {{1, 10, false}, {800, 1600, 0}},
    {{4, 10, false}, {100, 1600, 0}},      {{5, 10, false}, {100, 1600, 0}},
    {{1000, 2000, false}, {100, 1600, 0}}, {{0, 10, true}, {1600, 1600, 0}}, // the cap holds
    {{1, 10, true}, {1600, 1600, 0}},      {{2, 10, true}, {800, 1600, 0}},
    {{~0u, ~0u, true}, {100, 1600, 0}},
};

/// The same function, whose value is checked when it is compiled and when it is run: on devices it
/// is compiled from the same source.
TEST(Budgets, AreByPositionWithinTheirLimits) {
  const uint32_t inApi[] = {occlBudgetFrontHeavy, occlBudgetFlat, occlBudgetNoPolling};
  for (const BudgetCase &given : kBudgetCases) {
    ASSERT_EQ(given.expected.size(), static_cast<size_t>(kLastBudget)) << "a policy has no case";
    ASSERT_EQ(std::size(inApi), given.expected.size());
    for (uint32_t p = 0; p < given.expected.size(); ++p) {
      const auto policy = static_cast<BudgetPolicy>(p + 1);
      EXPECT_EQ(static_cast<uint32_t>(policy), inApi[p]);
      EXPECT_EQ(budgetOf(policy, kLimits, given.visit), given.expected[p])
          << "policy " << p + 1 << " at position " << given.visit.position;
    }
  }
  EXPECT_EQ(budgetOf(BudgetPolicy::FrontHeavy, {.floor = 50, .cap = 0}, {}), 50u);
  EXPECT_EQ(budgetOf(BudgetPolicy::FrontHeavy, {}, {}), 0u);
}

} // namespace
} // namespace occl::scheduler
