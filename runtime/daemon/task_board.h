// What a rank has to run: submissions that have not been looked at, invocations that wait for their
// predecessor, and the task queue. Its lock is held for a few instructions at a time, never while a
// task runs.
#pragma once

#include "runtime/daemon/open_invocation.h"
#include "runtime/queue/submission_queue.h"
#include "runtime/scheduler/policy.h"
#include "runtime/scheduler/task_queue.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace occl::daemon {

/// How the visit of a task ended.
struct VisitOutcome {
  bool finished = false;
  bool moved = false;
  interpreter::Obstacle obstacle; // if it is neither finished nor at the end of its quantum
  uint32_t instruction = 0;       // where it stands
};

/// Thread safety: any, except where a function says otherwise.
class TaskBoard {
public:
  TaskBoard(const scheduler::OrderPolicy &order, bool preemption, uint32_t capacity)
      : preemption(preemption), submissions(capacity), queue(order) {}

  /// One thread at a time. False if the submission queue is full.
  bool submit(OpenInvocation &invocation) { return submissions.push(&invocation); }
  bool hasSubmissions() const { return !submissions.empty(); }

  /// Claims a task to visit; nullptr if there is none, or after stop(). The cursor is the
  /// executor's place in the queue. Invocations that have no thread block on this rank are complete
  /// at once: they are appended to `complete`.
  BlockTask *claim(size_t &cursor, scheduler::Visit &visit,
                   std::vector<OpenInvocation *> &complete);
  /// Ends a visit. Returns the task's invocation if this was its last block, else nullptr.
  OpenInvocation *release(BlockTask &task, const VisitOutcome &outcome);

  /// No task is claimed from now on.
  void stop();
  /// After stop(): all invocations that are not complete, once, as soon as no task is claimed;
  /// until then nothing. Who releases the last task calls it again.
  std::vector<OpenInvocation *> takeAll();

  /// Calls inspect(task) for every task in the queue, in order, under the lock.
  template <class Inspect> void forEachTask(Inspect inspect) {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < queue.length(); ++i)
      inspect(static_cast<const BlockTask &>(queue.at(i)));
  }
  /// Publishes what the blocked tasks wait for, and takes it back as soon as one of them moves.
  void publishWaits(transport::WaitEdgeBoard &edges, uint32_t ownRank);

private:
  void drainSubmissions(std::vector<OpenInvocation *> &complete);
  void start(OpenInvocation &invocation, std::vector<OpenInvocation *> &complete);
  void startSuccessor(IdState &id, std::vector<OpenInvocation *> &complete);
  void takeWithSuccessors(OpenInvocation &invocation, std::vector<OpenInvocation *> &taken);

  const bool preemption;
  queue::SubmissionQueue<OpenInvocation *> submissions;

  std::mutex mutex; // guards all below
  scheduler::TaskQueue queue;
  uint32_t numClaimed = 0;
  bool stopped = false;
  transport::WaitEdgeBoard *published = nullptr; // where wait edges are to be seen
  std::vector<OpenInvocation *> emptySuccessors; // started by release(), complete at once
};

} // namespace occl::daemon
