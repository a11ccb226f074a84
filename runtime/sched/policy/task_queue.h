// The open thread blocks of a device, in the order of a policy, and who runs which.
//
// Executors go through the queue together, in passes: within one, each task is claimed at most
// once, from the front to the back. A task that comes in or moves up while a pass is under way has
// its turn in it, but no more new ones than were there when it began, so that every pass ends
// however many come, and every task is visited within two passes whatever the order.
//
// A pass is no look at everything: who comes in its middle finds some tasks that have had their
// turn, and others that have none in it. Who has to know that everything has been looked at counts
// rounds of its own (Round).
#pragma once

#include "runtime/sched/policy/policy.h"

#include <cstddef>
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
  /// Claims of the queue when it was claimed last, or came in.
  uint64_t claimedAt = 0;
  /// A round was over while it was claimed, and had been since before that round.
  bool leftOut = false;
  /// In the queue: by claimedAt.
  Task *older = nullptr, *newer = nullptr;
};

/// A look at everything: over when each task that was in the queue when it began and that nobody
/// holds has been claimed since, by whomever. Tasks that come later do not prolong it.
struct Round {
  bool hasBegun = false;
  bool isOver = false;
  uint64_t begin = 0; // claims of the queue
};

/// Refers to tasks, does not own them. A task comes and goes in the time that it takes to find its
/// place by bisection and to move a pointer for each task behind it. Thread safety: none; the owner
/// has a lock.
class TaskQueue {
public:
  explicit TaskQueue(OrderPolicy order) : order(order) { ends.older = ends.newer = &ends; }
  TaskQueue(const TaskQueue &) = delete;
  TaskQueue &operator=(const TaskQueue &) = delete;

  /// Room for so many tasks more, so that insert() needs no memory for them. If it throws there is
  /// no memory, and nothing has changed.
  void addRoom(size_t number);
  void removeRoom(size_t number) { room -= number; }

  /// A new task, where its standing belongs. There is room for it.
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
      else
        unlink(*task);
    tasks.resize(kept);
    next = 0; // who has had its turn is skipped
  }

  /// Claims the next task of the pass and tells the visit. nullptr if all are claimed. With
  /// onlyFrontGroup no other than the first task's invocation is considered (an executor without
  /// preemption).
  Task *claimNext(bool onlyFrontGroup, Visit &visit);
  /// True: somebody's round was over without a look at the task, as it was claimed. If the claimer
  /// has not moved it and does not look at it again himself, he has to see to it that somebody
  /// does.
  bool release(Task &task) {
    task.claimed = false;
    --numClaimed;
    return task.leftOut;
  }

  /// A round begins with the tasks that are in the queue now, unless it has begun.
  void begin(Round &round) const;
  /// Says whether it is over. With onlyFrontGroup it is about the first task's invocation alone.
  void look(Round &round, bool onlyFrontGroup);

  size_t length() const { return tasks.size(); }
  /// Whether there are tasks that nobody holds. Those that were removed while they were claimed
  /// count until they are released: then it can be false though there are.
  bool hasUnclaimed() const { return tasks.size() > numClaimed; }
  /// Claims so far.
  uint64_t countClaims() const { return claims; }
  Task &at(size_t position) const { return *tasks[position]; }

private:
  size_t frontGroupLength() const;
  void place(Task &task);
  size_t find(const Task &task) const;
  void take(const Task &task);
  void link(Task &task);
  static void unlink(Task &task);
  void countClaim(Task &task);
  void beginPass(size_t length);

  const OrderPolicy order;
  std::vector<Task *> tasks;
  size_t room = 0; // tasks that there may be at a time
  Task ends;       // of the list by claimedAt: the oldest is newer than it
  uint64_t claims = 0;
  size_t numClaimed = 0;
  uint64_t pass = 1;
  size_t next = 0;       // in this pass, all before it have had their turn or came too late
  bool hasBegun = false; // a task has been claimed in this pass
  size_t atStart = 0;    // tasks when it began
  size_t newcomers = 0;  // since then, that have a turn in it
};

} // namespace occl::scheduler
