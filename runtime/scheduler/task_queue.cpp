#include "runtime/scheduler/task_queue.h"

#include <algorithm>

namespace occl::scheduler {

void TaskQueue::beginPass(size_t length) {
  ++pass;
  next = 0;
  hasBegun = false;
  atStart = length;
  newcomers = 0;
}

void TaskQueue::insert(Task &task) {
  if (tasks.empty())
    beginPass(0);
  bool hasTurn = !hasBegun || newcomers < atStart;
  ++(hasBegun ? newcomers : atStart);
  task.pass = hasTurn ? pass - 1 : pass;
  place(task);
}

void TaskQueue::insertClaimed(Task &task) {
  beginPass(1);
  hasBegun = true;
  task.pass = pass;
  task.claimed = true;
  tasks.push_back(&task);
  next = 1;
}

void TaskQueue::place(Task &task) {
  auto position =
      std::upper_bound(tasks.begin(), tasks.end(), &task, [&](const Task *left, const Task *right) {
        return order.goesBefore(left->standing, right->standing);
      });
  auto index = static_cast<size_t>(position - tasks.begin());
  tasks.insert(position, &task);
  if (task.pass == pass && index < next)
    ++next;
  else
    next = std::min(next, index);
}

bool TaskQueue::take(Task &task) {
  if (tasks.size() == 1 && tasks[0] == &task) {
    tasks.clear();
    next = 0;
    return true;
  }
  auto found = std::find(tasks.begin(), tasks.end(), &task);
  if (found == tasks.end())
    return false;
  if (static_cast<size_t>(found - tasks.begin()) < next)
    --next;
  tasks.erase(found);
  return true;
}

void TaskQueue::remove(Task &task) { take(task); }

void TaskQueue::move(Task &task, const Standing &standing) {
  bool wasIn = take(task);
  task.standing = standing;
  if (wasIn)
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
      task.claimed = true;
      task.pass = pass;
      visit = {next++, length, task.movedLast};
      return &task;
    }
    beginPass(length);
  }
  return nullptr;
}

} // namespace occl::scheduler
