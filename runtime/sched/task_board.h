// What a device has to run: submissions that have not been looked at, invocations that wait for
// their predecessor, and the task queue. Its lock is held for a few instructions at a time, never
// while a task runs.
#pragma once

#include "runtime/invocation/open_invocation.h"
#include "runtime/observe/counters/stats.h"
#include "runtime/queue/submission_queue.h"
#include "runtime/sched/policy/policy.h"
#include "runtime/sched/policy/task_queue.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/light_mutex.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace occl::daemon {

/// How the visit of a task ended.
struct VisitOutcome {
  bool finished = false;
  bool moved = false;
  bool preempted = false;         // others wait, and it has outlasted its budget
  bool failed = false;            // its communicator has
  interpreter::Obstacle obstacle; // if it is neither finished nor at the end of its quantum
  uint32_t instruction = 0;       // where it stands
  insight::BlockMeter::Span wait; // since when, if for something
  Ticks endedAt = 0;              // after its last slice
  SteadyClock::time_point begin;  // without preemption
};

/// What the executors of a device without preemption keep to, all of it blocked.
struct KeptTo {
  /// Of a thread block, for another rank.
  struct Wait {
    Core *core;
    transport::WaitEdge edge;
  };
  std::vector<Wait> waits;          // not empty; all of one invocation
  SteadyClock::time_point since;    // it has not moved since then, nor anything else
  SteadyClock::time_point lookedAt; // no thread block's last visit began before
};

/// What a visit leaves to do, in this order, for who made it.
struct Released {
  OpenInvocation *complete = nullptr; // this was its last block; pinned if it has a callback
  bool mustSettle = false;            // the communicator has failed; its place is pinned
  bool leftOut = false;               // see TaskQueue::release()
  bool othersWait = false;            // there are tasks that nobody holds
};

/// What one communicator rank has on its device's board.
class BoardPlace {
public:
  /// `capacity` is the submission queue's.
  BoardPlace(uint32_t capacity, Stats &stats) : stats(stats), submissions(capacity) {}

  /// Keeps detach() from returning. The caller knows that it has not returned yet.
  void pin() { pins.fetch_add(1, std::memory_order_relaxed); }
  /// The last that the caller does with the place and its communicator.
  void unpin() { pins.fetch_sub(1, std::memory_order_release); }

private:
  friend class TaskBoard;

  Stats &stats;
  queue::SubmissionQueue<OpenInvocation *> submissions;
  Atomic<uint32_t> pins{0};
  // Under the board's lock.
  uint32_t numClaimed = 0;
  bool stopped = false;
  uint64_t epoch = 1;                            // of the visits that begin
  transport::WaitEdgeBoard *published = nullptr; // where wait edges are to be seen
  size_t room = 0;                               // in the queue, for tasks of its sequences
  InvocationList abandoned;                      // since it was stopped
};

/// Thread safety: any, except where a function says otherwise.
class TaskBoard {
public:
  TaskBoard(scheduler::OrderPolicy order, bool preemption) : preemption(preemption), queue(order) {}

  void attach(BoardPlace &place);
  /// Returns when nobody refers to the place. It has nothing open.
  void detach(BoardPlace &place);

  /// Room in the queue for a sequence of the place whose invocations have so many tasks, of which
  /// one runs at a time; or for so many tasks more of each of a sequence's invocations. What is
  /// submitted then needs no memory any more, on whatever thread it starts. If it throws there is
  /// none, and nothing has changed.
  void addRoom(BoardPlace &place, size_t tasks);
  void removeRoom(BoardPlace &place, size_t tasks);

  /// One thread at a time for each place. False if the submission queue is full.
  bool submit(OpenInvocation &invocation);
  /// The same for some that are there at once, by any thread; each starts, or waits for its
  /// predecessor. Of a place that has failed abandon() takes them. The list is empty afterwards.
  void submitTogether(InvocationList &invocations);
  /// In the place of submit(): starts the invocation and claims its task for the caller, if it has
  /// just one and there is nothing else on the board. nullptr if not: then nothing was done.
  BlockTask *startClaimed(OpenInvocation &invocation, scheduler::Visit &visit);
  /// The same for invocation `ordinal` of the sequence that this one, complete, is of: it becomes
  /// that one. For what its caller runs by itself in the lane (lane_run.h); false if not.
  bool enterLane(OpenInvocation &invocation, uint64_t ordinal);
  /// In the place of release(): it is finished, `total` after it was submitted. False if its
  /// communicator has failed: then nothing was done.
  bool completeInLane(OpenInvocation &invocation, Ticks total);
  /// It goes the usual way from now on, claimed by the caller as from startClaimed().
  void leaveLane(OpenInvocation &invocation, SteadyClock::time_point deadline);
  bool hasSubmissions() const { return submitted.load(std::memory_order_relaxed); }

  /// Claims a task to visit, `now`; nullptr if there is none. Invocations that have no thread block
  /// on this rank are complete at once: they are appended to `complete`, and the place of each that
  /// has a callback is pinned. The round begins, or goes on, with this claim.
  BlockTask *claim(scheduler::Visit &visit, InvocationList &complete, Ticks now,
                   scheduler::Round &round);
  /// A round of somebody who only looks whether others claim.
  scheduler::Round beginRound();
  bool isOver(scheduler::Round round);
  /// Claims so far, of all executors.
  uint64_t countClaims();
  /// Puts the invocation's tasks, one of which the caller has claimed, where this standing belongs;
  /// their arrival stays.
  void place(OpenInvocation &invocation, scheduler::Standing standing);
  /// Ends a visit.
  Released release(BlockTask &task, const VisitOutcome &outcome);

  /// No task of the place is claimed from now on, and none is in the queue. Returns all its
  /// invocations that are not complete, each once, as soon as none of its tasks is claimed; until
  /// then nothing. Who releases the last one calls it again.
  InvocationList abandon(BoardPlace &place);

  /// A new epoch of the place: what was true before is seen by all visits whose task has it as
  /// `lookedIn`, or a later one.
  uint64_t beginEpoch(BoardPlace &place) {
    std::lock_guard lock(mutex);
    return ++place.epoch;
  }

  /// Calls inspect(task) for every task of the place in the queue, in order, under the lock.
  template <class Inspect> void forEachTask(const BoardPlace &place, Inspect inspect) {
    forEach([&](const BlockTask &task) {
      if (&placeOf(task) == &place)
        inspect(task);
    });
  }
  /// Calls inspect(invocation, running) for every invocation of the place that has begun, and for
  /// those that wait behind it; `running` is the one whose tasks are in the queue. Under the lock.
  template <class Inspect> void forEachInvocation(const BoardPlace &place, Inspect inspect) {
    const OpenInvocation *running = nullptr;
    forEachTask(place, [&](const BlockTask &task) {
      if (std::exchange(running, task.invocation) == task.invocation)
        return; // another block of it
      inspect(*running, *running);
      const OpenInvocation *next = running->id->waiting.front();
      for (; next; next = next->nextWaiting)
        inspect(*next, *running);
    });
  }
  /// The same for every task of other places.
  template <class Inspect> void forEachOtherTask(const BoardPlace &place, Inspect inspect) {
    forEach([&](const BlockTask &task) {
      if (&placeOf(task) != &place)
        inspect(task);
    });
  }
  /// Publishes what the place's blocked tasks wait for, and takes it back as soon as one of them
  /// moves.
  void publishWaits(BoardPlace &place, transport::WaitEdgeBoard &edges);
  /// Without preemption: what executors keep to, if it is stuck. Nothing if it may move by itself.
  std::optional<KeptTo> keptTo();

private:
  static BoardPlace &placeOf(const BlockTask &task) { return *task.invocation->place; }

  template <class Inspect> void forEach(Inspect inspect) {
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < queue.length(); ++i)
      inspect(static_cast<const BlockTask &>(queue.at(i)));
  }
  BlockTask *claimNext(scheduler::Visit &visit);
  void drainAll(InvocationList &complete, Ticks now);
  void drain(BoardPlace &place, InvocationList &complete, Ticks now);
  void enter(OpenInvocation &invocation, InvocationList &complete, Ticks now);
  void start(OpenInvocation &invocation, InvocationList &complete, Ticks now);
  void startSuccessor(IdState &id, InvocationList &complete, Ticks now);
  void stop(BoardPlace &place);
  static void takeWithSuccessors(OpenInvocation &invocation, InvocationList &taken);

  const bool preemption;
  /// Some place may have submissions. Set after each push; who takes it back drains all.
  Atomic<bool> submitted{false};

  LightMutex mutex; // guards all below
  std::vector<BoardPlace *> places;
  scheduler::TaskQueue queue;
  uint64_t arrivals = 0;          // invocations started
  InvocationList emptySuccessors; // started by release(), complete at once
  // Without preemption: the group at the front when keptTo() last looked, and since when nothing
  // has moved.
  uint64_t front = 0;
  SteadyClock::time_point stillSince;
};

} // namespace occl::daemon
