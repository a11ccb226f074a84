#include "runtime/scheduler/calibration.h"
#include "runtime/scheduler/fifo_order.h"
#include "runtime/scheduler/front_heavy_budget.h"
#include "runtime/scheduler/priority_order.h"
#include "runtime/scheduler/task_queue.h"

#include <gtest/gtest.h>

#include <array>

namespace occl::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(TaskQueue, VisitsInOrderAndWrapsAround) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 3> tasks;
  for (Task &task : tasks)
    queue.insert(task);
  size_t cursor = 0;
  Visit visit;
  for (size_t i = 0; i < 7; ++i) {
    Task *task = queue.claimNext(cursor, false, visit);
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
  size_t mine = 0, other = 0;
  Visit visit;
  EXPECT_EQ(queue.claimNext(mine, false, visit), &tasks[0]);
  EXPECT_EQ(queue.claimNext(other, false, visit), &tasks[1]);
  EXPECT_EQ(queue.claimNext(mine, false, visit), nullptr);
  queue.release(tasks[1]);
  EXPECT_EQ(queue.claimNext(mine, false, visit), &tasks[1]);
}

TEST(TaskQueue, WithoutPreemptionOnlyTheFirstInvocationIsVisited) {
  FifoOrder order;
  TaskQueue queue(order);
  std::array<Task, 4> tasks;
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].group = i / 2;
    queue.insert(tasks[i]);
  }
  size_t cursor = 0;
  Visit visit;
  for (size_t i = 0; i < 4; ++i) {
    Task *task = queue.claimNext(cursor, true, visit);
    ASSERT_EQ(task, &tasks[i % 2]);
    queue.release(*task);
  }
  queue.remove(tasks[0]);
  queue.remove(tasks[1]);
  EXPECT_EQ(queue.claimNext(cursor, true, visit), &tasks[2]);
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
  size_t cursor = 5;
  Visit visit;
  EXPECT_EQ(queue.claimNext(cursor, false, visit), &tasks[0])
      << "a cursor beyond the end wraps around";
}

TEST(PriorityOrder, LargerFirstEqualAsSubmitted) {
  PriorityOrder order;
  TaskQueue queue(order);
  std::array<Task, 4> tasks;
  const std::array<int32_t, 4> priorities{0, 5, 0, 5};
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].priority = priorities[i];
    queue.insert(tasks[i]);
  }
  const std::array<size_t, 4> expected{1, 3, 0, 2};
  for (size_t i = 0; i < tasks.size(); ++i)
    EXPECT_EQ(&queue.at(i), &tasks[expected[i]]);
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
