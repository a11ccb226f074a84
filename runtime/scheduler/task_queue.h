// The open thread blocks of a device, in the order of a policy, and who runs which.
//
// Executors go through the queue together, in passes: within one, each task is claimed at most
// once, from the front to the back. A task that comes in or moves up while a pass is under way has
// its turn in it, but no more new ones than were there when it began, so that every pass ends
// however many come, and every task is visited within two passes whatever the order.
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
  Standing standing;
  bool claimed = false;
  bool movedLast = false;
  uint64_t pass = 0; // the queue's: the last in which it has had its turn
};

/// Refers to tasks, does not own them. Thread safety: none; the owner has a lock.
class TaskQueue {
public:
  explicit TaskQueue(const OrderPolicy &order) : order(order) {}

  /// A new task, where its standing belongs.
  void insert(Task &task);
  /// insert() and claimNext() in one, while the queue is empty.
  void insertClaimed(Task &task);
  /// Puts a task where `standing` belongs from now on, claimed or not, with the turn that it has or
  /// has had in this pass. One that is not in the queue stays out.
  void move(Task &task, const Standing &standing);
  /// The task may be claimed.
  void remove(Task &task);
  /// Removes the tasks that doomed(task) is true for, claimed or not; asked once for each, in
  /// order.
  template <class Doomed> void removeIf(Doomed doomed) {
    size_t kept = 0;
    for (Task *task : tasks)
      if (!doomed(*task))
        tasks[kept++] = task;
    tasks.resize(kept);
    next = 0; // who has had its turn is skipped
  }

  /// Claims the next task of the pass and tells the visit. nullptr if all are claimed. With
  /// onlyFrontGroup no other than the first task's invocation is considered (an executor without
  /// preemption).
  Task *claimNext(bool onlyFrontGroup, Visit &visit);
  void release(Task &task) { task.claimed = false; }

  size_t length() const { return tasks.size(); }
  Task &at(size_t position) const { return *tasks[position]; }

private:
  size_t frontGroupLength() const;
  void place(Task &task);
  bool take(Task &task);
  void beginPass(size_t length);

  const OrderPolicy &order;
  std::vector<Task *> tasks;
  uint64_t pass = 1;
  size_t next = 0;       // in this pass, all before it have had their turn or came too late
  bool hasBegun = false; // a task has been claimed in this pass
  size_t atStart = 0;    // tasks when it began
  size_t newcomers = 0;  // since then, that have a turn in it
};

} // namespace occl::scheduler
