#include "runtime/scheduler/task_queue.h"

#include <algorithm>

namespace occl::scheduler {

void TaskQueue::insert(Task &task) {
  auto position = static_cast<std::ptrdiff_t>(order.positionFor(task.priority, priorities));
  tasks.insert(tasks.begin() + position, &task);
  priorities.insert(priorities.begin() + position, task.priority);
}

void TaskQueue::remove(Task &task) {
  auto found = std::find(tasks.begin(), tasks.end(), &task);
  if (found == tasks.end())
    return;
  priorities.erase(priorities.begin() + (found - tasks.begin()));
  tasks.erase(found);
}

size_t TaskQueue::frontGroupLength() const {
  auto end = std::find_if(tasks.begin(), tasks.end(),
                          [&](const Task *task) { return task->group != tasks.front()->group; });
  return static_cast<size_t>(end - tasks.begin());
}

Task *TaskQueue::claimNext(size_t &cursor, bool onlyFrontGroup, Visit &visit) {
  size_t length = onlyFrontGroup ? frontGroupLength() : tasks.size();
  for (size_t i = 0; i < length; ++i) {
    size_t position = cursor < length ? cursor : 0;
    cursor = position + 1;
    Task &task = *tasks[position];
    if (task.claimed)
      continue;
    task.claimed = true;
    visit = {position, length, task.movedLast};
    return &task;
  }
  return nullptr;
}

} // namespace occl::scheduler
