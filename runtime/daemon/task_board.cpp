#include "runtime/daemon/task_board.h"

#include <utility>

namespace occl::daemon {

namespace {

/// Tells the peers that this rank does not touch the invocation's arenas any more. Under the lock,
/// before the successor starts, so that the count only grows.
void publishDone(const OpenInvocation &invocation) {
  invocation.id->cell->done.store(invocation.ordinal + 1, std::memory_order_release);
}

/// Tells the ranks that access the invocation's buffers that they may, from now on until it is
/// done.
void publishBegun(const OpenInvocation &invocation) {
  const std::vector<uint32_t> &accessors = invocation.collective->accessors;
  if (accessors.empty())
    return;
  invocation.id->cell->begun.store(invocation.ordinal + 1, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint32_t accessor : accessors)
    if (Doorbell *bell = invocation.view.doorbells[accessor])
      bell->ringFenced();
}

} // namespace

void TaskBoard::drainSubmissions(std::vector<OpenInvocation *> &complete) {
  while (auto submitted = submissions.pop()) {
    OpenInvocation &invocation = **submitted;
    IdState &id = *invocation.id;
    if (!id.running) {
      start(invocation, complete);
      continue;
    }
    (id.lastWaiting ? id.lastWaiting->nextWaiting : id.firstWaiting) = &invocation;
    id.lastWaiting = &invocation;
  }
}

void TaskBoard::start(OpenInvocation &invocation, std::vector<OpenInvocation *> &complete) {
  publishBegun(invocation);
  if (invocation.blocksLeft == 0) {
    publishDone(invocation);
    complete.push_back(&invocation);
    return;
  }
  invocation.id->running = &invocation;
  for (BlockTask &task : invocation.tasks)
    queue.insert(task);
}

void TaskBoard::startSuccessor(IdState &id, std::vector<OpenInvocation *> &complete) {
  id.running = nullptr;
  while (!id.running && id.firstWaiting) {
    OpenInvocation &next = *id.firstWaiting;
    id.firstWaiting = next.nextWaiting;
    if (!id.firstWaiting)
      id.lastWaiting = nullptr;
    start(next, complete);
  }
}

BlockTask *TaskBoard::claim(size_t &cursor, scheduler::Visit &visit,
                            std::vector<OpenInvocation *> &complete) {
  std::lock_guard lock(mutex);
  if (stopped)
    return nullptr;
  if (!emptySuccessors.empty())
    complete.insert(complete.end(), emptySuccessors.begin(), emptySuccessors.end());
  emptySuccessors.clear();
  if (!submissions.empty())
    drainSubmissions(complete);
  auto *task = static_cast<BlockTask *>(queue.claimNext(cursor, !preemption, visit));
  if (task)
    ++numClaimed;
  return task;
}

OpenInvocation *TaskBoard::release(BlockTask &task, const VisitOutcome &outcome) {
  std::lock_guard lock(mutex);
  --numClaimed;
  queue.release(task);
  task.movedLast = outcome.moved;
  task.obstacle = outcome.obstacle;
  task.instruction = outcome.instruction;
  if (outcome.moved && published) {
    published->clear();
    published = nullptr;
  }
  if (!outcome.finished)
    return nullptr;
  queue.remove(task);
  OpenInvocation &invocation = *task.invocation;
  if (--invocation.blocksLeft != 0)
    return nullptr;
  publishDone(invocation);
  startSuccessor(*invocation.id, emptySuccessors);
  return &invocation;
}

void TaskBoard::stop() {
  std::lock_guard lock(mutex);
  stopped = true;
}

void TaskBoard::takeWithSuccessors(OpenInvocation &invocation,
                                   std::vector<OpenInvocation *> &taken) {
  IdState &id = *invocation.id;
  taken.push_back(&invocation);
  for (OpenInvocation *next = id.firstWaiting; next; next = next->nextWaiting)
    taken.push_back(next);
  id.running = id.firstWaiting = id.lastWaiting = nullptr;
}

std::vector<OpenInvocation *> TaskBoard::takeAll() {
  std::lock_guard lock(mutex);
  if (!stopped || numClaimed != 0)
    return {};
  std::vector<OpenInvocation *> taken = std::exchange(emptySuccessors, {});
  drainSubmissions(taken);
  for (size_t i = 0; i < queue.length(); ++i) {
    OpenInvocation &invocation = *static_cast<BlockTask &>(queue.at(i)).invocation;
    if (invocation.id->running == &invocation)
      takeWithSuccessors(invocation, taken);
  }
  queue.clear();
  return taken;
}

void TaskBoard::publishWaits(transport::WaitEdgeBoard &edges, uint32_t ownRank) {
  std::lock_guard lock(mutex);
  std::vector<transport::WaitEdge> waits;
  for (size_t i = 0; i < queue.length() && waits.size() < transport::WaitEdgeBoard::kMaxEdges;
       ++i) {
    const auto &task = static_cast<const BlockTask &>(queue.at(i));
    if (task.obstacle.reason != interpreter::BlockReason::None)
      waits.push_back(edgeOf(task, ownRank));
  }
  edges.publish(waits);
  published = &edges;
}

} // namespace occl::daemon
