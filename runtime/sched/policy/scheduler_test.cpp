#include "runtime/sched/policy/calibration.h"
#include "runtime/sched/policy/policy.h"
#include "runtime/sched/policy/task_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  TaskQueue queue(OrderPolicy::Fifo);
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
  TaskQueue queue(OrderPolicy::Fifo);
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
  TaskQueue queue(OrderPolicy::Fifo);
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
  TaskQueue queue(OrderPolicy::Fifo);
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

/// As insert() and claimNext() leave it, for those that come later. A pass is no look at
/// everything: see Rounds.
TEST(TaskQueue, InsertedClaimed) {
  for (bool atOnce : {false, true}) {
    TaskQueue queue(OrderPolicy::Fifo);
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
    Round round; // the last task has no turn in this pass, and yet belongs to it
    queue.begin(round);
    queue.remove(tasks[0]);
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[1]);
    queue.look(round, false);
    EXPECT_FALSE(round.isOver);
    EXPECT_EQ(queue.claimNext(false, visit), &tasks[2]);
    queue.look(round, false);
    EXPECT_TRUE(round.isOver);
  }
}

/// Somebody who looks at everything before he sleeps.
class Looker {
public:
  explicit Looker(TaskQueue &queue, bool onlyFrontGroup = false)
      : queue(queue), onlyFrontGroup(onlyFrontGroup) {}

  /// One visit to a task that does not move; nullptr if all are claimed.
  Task *visit(Round &round) {
    queue.begin(round);
    Task *task = queue.claimNext(onlyFrontGroup, place);
    queue.look(round, onlyFrontGroup);
    if (task)
      queue.release(*task);
    return task;
  }
  /// The tasks of a round, in the order of its visits; after each, moved(task) is called.
  template <class Moved> std::vector<const Task *> round(Moved moved) {
    std::vector<const Task *> visited;
    Round round;
    do {
      if (Task *task = visit(round)) {
        visited.push_back(task);
        moved(*task);
      }
    } while (!round.isOver);
    return visited;
  }
  std::vector<const Task *> round() {
    return round([](Task &) {});
  }

private:
  TaskQueue &queue;
  const bool onlyFrontGroup;
  Visit place;
};

class Rounds : public ::testing::Test {
protected:
  Rounds() : looker(queue) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      tasks[i].standing.arrival = i;
      tasks[i].group = i;
    }
  }
  void insert(std::initializer_list<size_t> numbers) {
    for (size_t i : numbers)
      queue.insert(tasks[i]);
  }
  void expectAll(const std::vector<const Task *> &visited, std::initializer_list<size_t> numbers) {
    for (size_t i : numbers)
      EXPECT_EQ(std::count(visited.begin(), visited.end(), &tasks[i]), 1) << "task " << i;
    EXPECT_EQ(visited.size(), numbers.size());
  }

  TaskQueue queue{OrderPolicy::Priority};
  Looker looker;
  std::array<Task, 6> tasks;
};

/// The pass has room for one newcomer only.
TEST_F(Rounds, AreAboutWhatHasComeInSinceTheLastPassBegan) {
  insert({0});
  looker.round();
  insert({1, 2, 3});
  auto visited = looker.round();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NE(std::count(visited.begin(), visited.end(), &tasks[i]), 0) << "task " << i;
}

TEST_F(Rounds, AreAboutWhatMoreUrgentTasksPush) {
  insert({0});
  looker.round();
  tasks[1].standing.priority = tasks[2].standing.priority = 5;
  insert({1, 2});
  auto visited = looker.round();
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NE(std::count(visited.begin(), visited.end(), &tasks[i]), 0) << "task " << i;
}

TEST_F(Rounds, AreAboutAllWhileTasksMoveUp) {
  insert({0, 1, 2});
  looker.round();
  Round unfinished; // the round that follows begins in the middle of a pass
  looker.visit(unfinished);
  auto visited = looker.round([&](Task &task) {
    if (&task == &tasks[1] && !task.standing.isAnnounced)
      queue.move(task, {9, 1, true, 0});
  });
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NE(std::count(visited.begin(), visited.end(), &tasks[i]), 0) << "task " << i;
}

TEST_F(Rounds, VisitEachTaskOnceIfNothingElseHappens) {
  insert({0, 1, 2, 3});
  for (size_t before = 0; before < 5; ++before) {
    Round unfinished;
    for (size_t i = 0; i < before; ++i)
      looker.visit(unfinished);
    expectAll(looker.round(), {0, 1, 2, 3});
  }
}

TEST_F(Rounds, EndThoughTasksKeepComing) {
  insert({0, 1});
  size_t next = 2;
  auto visited = looker.round([&](Task &) {
    if (next < tasks.size())
      insert({next++});
  });
  EXPECT_LE(visited.size(), 2 * tasks.size());
  EXPECT_NE(std::count(visited.begin(), visited.end(), &tasks[1]), 0);
}

TEST_F(Rounds, CountClaimsOfOthersAndLeaveOutWhatTheyHold) {
  insert({0, 1, 2});
  Visit visit;
  Task *held = queue.claimNext(false, visit);
  ASSERT_EQ(held, &tasks[0]);
  expectAll(looker.round(), {1, 2});
  EXPECT_TRUE(queue.release(*held)) << "a round was over without it";

  Round round;
  EXPECT_EQ(looker.visit(round), &tasks[0]);
  EXPECT_FALSE(round.isOver);
  Looker other(queue);
  Round his;
  other.visit(his);
  other.visit(his);
  queue.look(round, false);
  EXPECT_TRUE(round.isOver) << "somebody has looked at the others";
  expectAll(looker.round(), {0, 1, 2});
}

TEST_F(Rounds, WithoutPreemptionAreAboutTheFirstInvocation) {
  tasks[1].group = 0;
  insert({0, 1, 2});
  Looker keeping(queue, true);
  expectAll(keeping.round(), {0, 1});
  queue.remove(tasks[0]);
  queue.remove(tasks[1]);
  expectAll(keeping.round(), {2});
}

/// However tasks come, go and move, and whatever other executors hold: what was there when a round
/// began and nobody held at its end has been claimed since.
TEST_F(Rounds, AreAboutEverythingInAnyQueue) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (size_t trial = 0; trial < 2000; ++trial) {
    TaskQueue queue(OrderPolicy::Priority);
    std::deque<Task> all;
    std::vector<Task *> open, held;
    auto change = [&] {
      Visit visit;
      if (open.size() < 12 && random() % 2 == 0) {
        all.emplace_back().standing = {static_cast<int32_t>(random() % 3), all.size()};
        queue.insert(all.back());
        open.push_back(&all.back());
      } else if (held.size() < 3 && random() % 2 == 0) {
        if (Task *task = queue.claimNext(false, visit))
          held.push_back(task);
      } else if (!held.empty() && random() % 2 == 0) {
        queue.release(*held.back());
        held.pop_back();
      } else if (!open.empty()) {
        Task &task = *open[random() % open.size()];
        if (random() % 3 != 0)
          queue.move(task, {static_cast<int32_t>(random() % 8), task.standing.arrival, true,
                            static_cast<uint32_t>(random() % 16)});
        else if (!task.claimed) {
          queue.remove(task);
          std::erase(open, &task);
        }
      }
    };
    for (size_t i = random() % 40; i > 0; --i)
      change();
    const std::vector<Task *> atBegin = open;
    const uint64_t begin = queue.countClaims();
    Looker self(queue);
    Round round;
    size_t visits = 0;
    do {
      self.visit(round);
      if (round.isOver)
        break;
      change();
      ASSERT_LT(++visits, 200u) << "seed " << seed << ", trial " << trial;
    } while (true);
    for (const Task *task : atBegin) {
      const bool isIn = std::find(open.begin(), open.end(), task) != open.end();
      EXPECT_TRUE(!isIn || task->claimed || task->claimedAt > begin)
          << "seed " << seed << ", trial " << trial;
    }
  }
}

TEST(TaskQueue, ATaskThatMovesKeepsItsTurnOfThePass) {
  TaskQueue queue(OrderPolicy::Priority);
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
  RandomQueue(OrderPolicy order, unsigned seed) : queue(order), random(seed) {}

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
  for (auto order : {OrderPolicy::Priority, OrderPolicy::Fifo, OrderPolicy::Newest})
    for (unsigned round = 0; round < 20; ++round)
      EXPECT_LE(RandomQueue(order, seed + round).longestWait(5000), 4 * RandomQueue::kWindow)
          << "order " << static_cast<int>(order) << ", seed " << seed + round;
}

TEST(TaskQueue, AStreamOfNewTasksAtTheFrontDoesNotStarveTheBack) {
  TaskQueue queue(OrderPolicy::Newest);
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

TEST(Calibration, LimitsFollowTheRoundTripUnlessRequested) {
  BudgetLimits limits = budgetLimits(40ns, 0ns);
  EXPECT_EQ(limits.floor, 80u);
  EXPECT_EQ(limits.cap, 800u);
  EXPECT_EQ(budgetLimits(200ns, 0ns).cap, 1000u);
  EXPECT_EQ(budgetLimits(200ns, 50us).cap, 50000u);
  EXPECT_EQ(budgetLimits(200ns, 1ns).cap, 400u) << "never below the floor";
}

TEST(Calibration, MeasuresWithinItsBounds) {
  EXPECT_GE(flagRoundTrip(), 50ns);
  EXPECT_LE(flagRoundTrip(), 500ns);
  EXPECT_EQ(flagRoundTrip(), flagRoundTrip());
}

} // namespace
} // namespace occl::scheduler
