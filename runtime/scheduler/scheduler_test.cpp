#include "runtime/scheduler/calibration.h"
#include "runtime/scheduler/fifo_order.h"
#include "runtime/scheduler/front_heavy_budget.h"
#include "runtime/scheduler/policies.h"
#include "runtime/scheduler/priority_order.h"
#include "runtime/scheduler/task_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace occl::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(TaskQueue, VisitsInOrderAndWrapsAround) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 3> tasks;
  for (Task &task : tasks)
    queue.insert(task);
  Visit visit;
  for (size_t i = 0; i < 7; ++i) {
    Task *task = queue.claimNext(false, visit);
    ASSERT_EQ(task, &tasks[i % 3]);
    EXPECT_EQ(visit.position, i % 3);
    EXPECT_EQ(visit.queueLength, 3u);
    queue.release(*task);
  }
}

TEST(TaskQueue, ClaimedTasksAreSkipped) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 2> tasks;
  for (Task &task : tasks)
    queue.insert(task);
  Visit visit;
  EXPECT_EQ(queue.claimNext(false, visit), &tasks[0]);
  EXPECT_EQ(queue.claimNext(false, visit), &tasks[1]);
  EXPECT_EQ(queue.claimNext(false, visit), nullptr);
  queue.release(tasks[1]);
  EXPECT_EQ(queue.claimNext(false, visit), &tasks[1]);
}

TEST(TaskQueue, WithoutPreemptionOnlyTheFirstInvocationIsVisited) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 4> tasks;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].group = i / 2;
    queue.insert(tasks[i]);
  }
  Visit visit;
  for (size_t i = 0; i < 4; ++i) {
    Task *task = queue.claimNext(true, visit);
    ASSERT_EQ(task, &tasks[i % 2]);
    queue.release(*task);
  }
  queue.remove(tasks[0]);
  queue.remove(tasks[1]);
  EXPECT_EQ(queue.claimNext(true, visit), &tasks[2]);
}

TEST(TaskQueue, RemovingKeepsTheOthersInOrder) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 3> tasks;
  for (Task &task : tasks)
    queue.insert(task);
  queue.remove(tasks[1]);
  queue.remove(tasks[1]);
  ASSERT_EQ(queue.length(), 2u);
  EXPECT_EQ(&queue.at(0), &tasks[0]);
  EXPECT_EQ(&queue.at(1), &tasks[2]);
  Visit visit;
  EXPECT_EQ(queue.claimNext(false, visit), &tasks[0]);
}

/// As insert() and claimNext() leave it, for those that come later.
TEST(TaskQueue, InsertedClaimed) {
  for (bool atOnce : {false, true}) {
    FifoOrder order;
    TaskQueue queue(order);
    std::array<Task, 3> tasks;
    for (size_t i = 0; i < tasks.size(); ++i)
      tasks[i].standing.arrival = i;
    Visit visit;
    if (atOnce)
      queue.insertClaimed(tasks[0]);
    else {
      queue.insert(tasks[0]);
      EXPECT_EQ(queue.claimNext(false, visit), &tasks[0]);
    }
    queue.insert(tasks[1]);
    queue.insert(tasks[2]); // one newcomer more than were there: it has to wait
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[1]);
    EXPECT_EQ(visit.position, 1u);
    EXPECT_EQ(visit.queueLength, 3u);
    queue.release(tasks[0]);
    queue.release(tasks[1]);
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[0]);
    queue.remove(tasks[0]);
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[1]);
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[2]);
  }
}

TEST(PriorityOrder, LargerFirstEqualAsSubmitted) {
  PriorityOrder order;
  TaskQueue queue(order);
  std::array<Task, 4> tasks;
  const std::array<int32_t, 4> priorities{0, 5, 0, 5};
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].standing.priority = priorities[i];
    tasks[i].standing.arrival = i;
    queue.insert(tasks[i]);
  }
  const std::array<size_t, 4> expected{1, 3, 0, 2};
  for (size_t i = 0; i < tasks.size(); ++i)
    EXPECT_EQ(&queue.at(i), &tasks[expected[i]]);
}

/// The order of the tasks with these standings, as numbers of theirs.
std::vector<size_t> ordered(OrderKind kind, const std::vector<Standing> &standings) {
  auto order = makeOrder(kind);
  TaskQueue queue(*order);
  std::vector<Task> tasks(standings.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].standing = standings[i];
    queue.insert(tasks[i]);
  }
  std::vector<size_t> result;
  for (size_t i = 0; i < queue.length(); ++i)
    result.push_back(static_cast<size_t>(&queue.at(i) - tasks.data()));
  return result;
}

TEST(OrderPolicies, GoByPriorityOrAge) {
  const std::vector<Standing> standings = {{1, 0}, {9, 1}, {1, 2}, {5, 3}};
  EXPECT_EQ(ordered(OrderKind::Priority, standings), (std::vector<size_t>{1, 3, 0, 2}));
  EXPECT_EQ(ordered(OrderKind::Fifo, standings), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(ordered(OrderKind::Newest, standings), (std::vector<size_t>{3, 2, 1, 0}));
}

TEST(OrderPolicies, WhatAllHaveAnnouncedGoesFirstInTheOrderOfTheLowestRank) {
  // {priority, arrival here, announced by all, turn at the lowest rank}
  const std::vector<Standing> standings = {{9, 0},          {1, 1, true, 7}, {5, 2, true, 8},
                                           {5, 3, true, 6}, {1, 4},          {1, 5, true, ~0u}};
  EXPECT_EQ(ordered(OrderKind::Priority, standings), (std::vector<size_t>{3, 2, 5, 1, 0, 4}));
  EXPECT_EQ(ordered(OrderKind::Fifo, standings), (std::vector<size_t>{5, 3, 1, 2, 0, 4}));
  EXPECT_EQ(ordered(OrderKind::Newest, standings), (std::vector<size_t>{2, 1, 3, 5, 4, 0}));
}

TEST(TaskQueue, ATaskThatMovesKeepsItsTurnOfThePass) {
  PriorityOrder order;
  TaskQueue queue(order);
  std::array<Task, 4> tasks;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].standing.arrival = i;
    queue.insert(tasks[i]);
  }
  Visit visit;
  auto visitNext = [&] {
    Task *task = queue.claimNext(false, visit);
    queue.release(*task);
    return static_cast<size_t>(task - tasks.data());
  };
  EXPECT_EQ(visitNext(), 0u);
  EXPECT_EQ(visitNext(), 1u);
  queue.move(tasks[1], {5, 1, true, 0}); // it has had its turn
  queue.move(tasks[3], {7, 3, true, 0}); // it has not
  EXPECT_EQ(&queue.at(0), &tasks[3]);
  EXPECT_EQ(&queue.at(1), &tasks[1]);
  EXPECT_EQ(visitNext(), 3u);
  EXPECT_EQ(visitNext(), 2u);
  for (size_t i : {3u, 1u, 0u, 2u})
    EXPECT_EQ(visitNext(), i);
  queue.remove(tasks[0]);
  queue.move(tasks[0], {9, 0, true, 0});
  EXPECT_EQ(queue.length(), 3u) << "what has been removed stays out";
}

/// Executors that claim and release at random while tasks come and end.
class RandomQueue {
public:
  RandomQueue(OrderKind kind, unsigned seed)
      : order(makeOrder(kind)), queue(*order), random(seed) {}

  /// The most claims of others between two of one task, or since it came.
  size_t longestWait(size_t steps) {
    for (size_t step = 0; step < steps; ++step) {
      if (open.size() < kWindow && random() % 3 != 0)
        add();
      if (claimed.size() < kExecutors && random() % 3 != 0)
        claim();
      else if (!claimed.empty())
        release(random() % claimed.size());
      if (!open.empty() && random() % 4 == 0)
        announce(*open[random() % open.size()]);
    }
    return longest;
  }
  static constexpr size_t kWindow = 24, kExecutors = 3;

private:
  void add() {
    Task &task = all.emplace_back();
    task.standing = {static_cast<int32_t>(random() % 4), ++clock};
    queue.insert(task);
    open.push_back(&task);
    lastClaim[&task] = numClaims;
  }
  /// By all ranks; once for each task.
  void announce(Task &task) {
    if (task.standing.isAnnounced)
      return;
    auto turn = static_cast<uint32_t>(random());
    queue.move(task, {static_cast<int32_t>(random() % 8), task.standing.arrival, true, turn % 64});
  }
  void claim() {
    Visit visit;
    Task *task = queue.claimNext(false, visit);
    if (!task)
      return;
    ++numClaims;
    longest = std::max(longest, numClaims - lastClaim[task]);
    lastClaim[task] = numClaims;
    claimed.push_back(task);
  }
  void release(size_t index) {
    Task *task = claimed[index];
    claimed.erase(claimed.begin() + static_cast<std::ptrdiff_t>(index));
    queue.release(*task);
    lastClaim[task] = numClaims; // it may have been held for long
    if (open.size() < kWindow / 2 || random() % 3 == 0)
      return;
    queue.remove(*task);
    std::erase(open, task);
  }

  std::unique_ptr<OrderPolicy> order;
  TaskQueue queue;
  std::mt19937 random;
  std::deque<Task> all;
  std::vector<Task *> open, claimed;
  std::map<const Task *, size_t> lastClaim;
  uint64_t clock = 0;
  size_t numClaims = 0, longest = 0;
};

TEST(TaskQueue, EveryTaskIsVisitedInBoundedTimeUnderEveryOrder) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (OrderKind kind : {OrderKind::Priority, OrderKind::Fifo, OrderKind::Newest})
    for (unsigned round = 0; round < 20; ++round)
      EXPECT_LE(RandomQueue(kind, seed + round).longestWait(5000), 4 * RandomQueue::kWindow)
          << "order " << static_cast<int>(kind) << ", seed " << seed + round;
}

TEST(TaskQueue, AStreamOfNewTasksAtTheFrontDoesNotStarveTheBack) {
  auto order = makeOrder(OrderKind::Newest);
  TaskQueue queue(*order);
  std::deque<Task> tasks(2);
  queue.insert(tasks[0]);
  Visit visit;
  size_t sinceOldest = 0;
  for (uint64_t arrival = 0; arrival < 1000;) {
    while (queue.length() < 4) {
      tasks.emplace_back().standing.arrival = ++arrival;
      queue.insert(tasks.back());
    }
    Task *task = queue.claimNext(false, visit);
    sinceOldest = task == &tasks[0] ? 0 : sinceOldest + 1;
    ASSERT_LE(sinceOldest, 16u) << "two passes";
    queue.release(*task);
    if (task != &tasks[0])
      queue.remove(*task);
  }
}

TEST(BudgetPolicies, TheOthersAreConstant) {
  EXPECT_EQ(makeBudget(BudgetKind::Flat, {100ns, 1600ns})->budgetFor({7, 10, true}), 1600ns);
  EXPECT_EQ(makeBudget(BudgetKind::NoPolling, {100ns, 1600ns})->budgetFor({0, 10, true}), 0ns);
}

TEST(FrontHeavyBudget, FallsWithPositionWithinItsLimits) {
  FrontHeavyBudget policy({100ns, 1600ns});
  EXPECT_EQ(policy.budgetFor({0, 10, false}), 1600ns);
  EXPECT_EQ(policy.budgetFor({1, 10, false}), 800ns);
  EXPECT_EQ(policy.budgetFor({4, 10, false}), 100ns);
  EXPECT_EQ(policy.budgetFor({1000, 2000, false}), 100ns);
}

TEST(FrontHeavyBudget, RisesForATaskThatMoved) {
  FrontHeavyBudget policy({100ns, 1600ns});
  EXPECT_EQ(policy.budgetFor({1, 10, true}), 1600ns);
  EXPECT_EQ(policy.budgetFor({2, 10, true}), 800ns);
  EXPECT_EQ(policy.budgetFor({0, 10, true}), 1600ns) << "the cap holds";
}

TEST(Calibration, LimitsFollowTheRoundTripUnlessRequested) {
  BudgetLimits limits = budgetLimits(40ns, 0ns);
  EXPECT_EQ(limits.floor, 80ns);
  EXPECT_EQ(limits.cap, 800ns);
  EXPECT_EQ(budgetLimits(200ns, 0ns).cap, 1us);
  EXPECT_EQ(budgetLimits(200ns, 50us).cap, 50us);
  EXPECT_EQ(budgetLimits(200ns, 1ns).cap, 400ns) << "never below the floor";
}

TEST(Calibration, MeasuresWithinItsBounds) {
  EXPECT_GE(flagRoundTrip(), 50ns);
  EXPECT_LE(flagRoundTrip(), 500ns);
  EXPECT_EQ(flagRoundTrip(), flagRoundTrip());
}

} // namespace
} // namespace occl::scheduler
