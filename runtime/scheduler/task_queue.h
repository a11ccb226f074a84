// The open thread blocks of a rank, in the order of a policy, and who runs which.
#pragma once

#include "runtime/scheduler/policy.h"

#include <cstdint>
#include <vector>

namespace occl::scheduler {

/// One thread block of one open invocation. Whoever has claimed it may run it; the queue's lock
/// hands what the claimer wrote to the next one.
struct Task {
  /// Tasks of one invocation have the same group, another than all others in the queue.
  uint64_t group = 0;
  int32_t priority = 0;
  bool claimed = false;
  bool movedLast = false;
};

/// Refers to tasks, does not own them. Thread safety: none; the owner has a lock.
class TaskQueue {
public:
  explicit TaskQueue(const OrderPolicy &order) : order(order) {}

  void insert(Task &task);
  /// The task may be claimed.
  void remove(Task &task);
  /// Removes the tasks that doomed(task) is true for, claimed or not; asked once for each, in
  /// order.
  template <class Doomed> void removeIf(Doomed doomed) {
    size_t kept = 0;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (doomed(*tasks[i]))
        continue;
      priorities[kept] = priorities[i];
      tasks[kept++] = tasks[i];
    }
    tasks.resize(kept);
    priorities.resize(kept);
  }

  /// Claims the first unclaimed task at or after position `cursor`, wrapping around, sets `cursor`
  /// behind it and tells the visit. nullptr if all are claimed. With onlyFrontGroup no other than
  /// the first task's invocation is considered (an executor without preemption).
  Task *claimNext(size_t &cursor, bool onlyFrontGroup, Visit &visit);
  void release(Task &task) { task.claimed = false; }

  size_t length() const { return tasks.size(); }
  Task &at(size_t position) const { return *tasks[position]; }

private:
  size_t frontGroupLength() const;

  const OrderPolicy &order;
  std::vector<Task *> tasks;
  std::vector<int32_t> priorities; // of tasks, side by side for the policy
};

} // namespace occl::scheduler
