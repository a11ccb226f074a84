// The open tasks in the order of a policy: claims go in passes, rounds by the age of claims.
#include "runtime/sched/policy/task_queue.h"

#include <algorithm>

namespace occl::scheduler {

void TaskQueue::addRoom(size_t number) {
  if (room + number > tasks.capacity())
    tasks.reserve(std::max(room + number, 2 * tasks.capacity()));
  room += number;
}

void TaskQueue::beginPass(size_t length) {
  ++pass;
  next = 0;
  hasBegun = false;
  atStart = length;
  newcomers = 0;
}

/// As the one whose claim is the latest.
void TaskQueue::link(Task &task) {
  task.claimedAt = claims;
  task.older = ends.older;
  task.newer = &ends;
  ends.older->newer = &task;
  ends.older = &task;
}

void TaskQueue::unlink(Task &task) {
  task.older->newer = task.newer;
  task.newer->older = task.older;
  task.older = task.newer = nullptr;
}

void TaskQueue::countClaim(Task &task) {
  ++claims;
  ++numClaimed;
  task.claimed = true;
  task.pass = pass;
  task.leftOut = false;
}

void TaskQueue::insert(Task &task) {
  if (tasks.empty())
    beginPass(0);
  // Newcomers beyond the length at its begin have no turn, so that each pass ends.
  bool hasTurn = !hasBegun || newcomers < atStart;
  ++(hasBegun ? newcomers : atStart);
  task.pass = hasTurn ? pass - 1 : pass;
  link(task);
  place(task);
}

void TaskQueue::insertClaimed(Task &task) {
  beginPass(1);
  hasBegun = true;
  countClaim(task);
  link(task);
  tasks.push_back(&task);
  next = 1;
}

void TaskQueue::place(Task &task) {
  auto position =
      std::upper_bound(tasks.begin(), tasks.end(), &task, [&](const Task *left, const Task *right) {
        return goesBefore(order, left->standing, right->standing);
      });
  auto index = static_cast<size_t>(position - tasks.begin());
  tasks.insert(position, &task);
  // The pass goes on where it was, or with this task if it has its turn in front.
  if (task.pass == pass && index < next)
    ++next;
  else
    next = std::min(next, index);
}

/// The task is in the queue.
size_t TaskQueue::find(const Task &task) const {
  auto isBefore = [&](const Task *left, const Task *right) {
    return goesBefore(order, left->standing, right->standing);
  };
  auto begin = std::lower_bound(tasks.begin(), tasks.end(), &task, isBefore);
  auto found = std::find(begin, tasks.end(), &task);
  // Turns that are further apart than a half circle are in no order.
  if (found == tasks.end())
    found = std::find(tasks.begin(), begin, &task);
  return static_cast<size_t>(found - tasks.begin());
}

void TaskQueue::take(const Task &task) {
  if (tasks.size() == 1) {
    tasks.clear();
    next = 0;
    return;
  }
  size_t index = find(task);
  if (index < next)
    --next;
  tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(index));
}

void TaskQueue::remove(Task &task) {
  if (!task.older)
    return; // it is not in the queue
  take(task);
  unlink(task);
}

void TaskQueue::move(Task &task, const Standing &standing) {
  if (task.older)
    take(task);
  task.standing = standing;
  if (task.older)
    place(task);
}

size_t TaskQueue::frontGroupLength() const {
  auto end = std::find_if(tasks.begin(), tasks.end(),
                          [&](const Task *task) { return task->group != tasks.front()->group; });
  return static_cast<size_t>(end - tasks.begin());
}

Task *TaskQueue::claimNext(bool onlyFrontGroup, Visit &visit) {
  size_t length = onlyFrontGroup ? frontGroupLength() : tasks.size();
  // The rest of this pass, then the next one.
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (; next < length; ++next) {
      Task &task = *tasks[next];
      if (task.claimed || task.pass == pass)
        continue;
      hasBegun = true;
      countClaim(task);
      unlink(task);
      link(task);
      visit = {static_cast<uint32_t>(next++), static_cast<uint32_t>(length), task.movedLast};
      return &task;
    }
    beginPass(length);
  }
  return nullptr;
}

void TaskQueue::begin(Round &round) const {
  if (!round.hasBegun)
    round = {true, false, claims};
}

void TaskQueue::look(Round &round, bool onlyFrontGroup) {
  round.isOver = true;
  auto look = [&](Task &task) {
    if (task.claimedAt > round.begin)
      return;
    task.leftOut = task.claimed;
    round.isOver &= task.claimed;
  };
  if (onlyFrontGroup) {
    for (size_t position = 0, length = frontGroupLength(); position < length; ++position)
      look(*tasks[position]);
    return;
  }
  // Of those that are claimed there are no more than executors.
  for (Task *task = ends.newer; round.isOver && task != &ends; task = task->newer) {
    if (task->claimedAt > round.begin)
      break;
    look(*task);
  }
}

} // namespace occl::scheduler
