// Turns the marks of executors into events: visits, runs and waits of each thread block.
#include "runtime/cuda/resident/trace/mark_events.h"

#include <algorithm>
#include <map>
#include <utility>

namespace occl::cuda::resident {

namespace {

using insight::TraceEvent;
using insight::TraceKind;

/// One conversion.
class Events {
public:
  Events(std::span<const TracedRequest> requests, const DeviceClock &clock, uint32_t rank)
      : clock(clock), rank(rank) {
    for (const TracedRequest &request : requests) {
      known[static_cast<uint32_t>(request.sequence)] = &request;
      add(TraceKind::Submit, request, request.submitted);
      // It waited for another rank before the daemon had it.
      if (request.awaited && request.entered > request.submitted) {
        TraceEvent &wait = add(TraceKind::Wait, request, request.submitted, request.entered);
        wait.reason = static_cast<uint8_t>(transport::WaitReason::Announce);
        wait.peer = *request.awaited;
      }
      if (request.ended != 0)
        add(TraceKind::Complete, request, request.ended).detail[0] =
            static_cast<uint64_t>(request.outcome);
    }
  }

  void addExecutor(const std::vector<MarkView> &marks, uint16_t executor) {
    const MarkView *visit = nullptr; // it is in
    const MarkView *last = nullptr;  // its mark before
    for (const MarkView &mark : marks) {
      if (mark.moment == Moment::Visit)
        visit = &mark;
      if (const TracedRequest *request = requestOf(mark))
        addMark(mark, *request, visit, last, executor);
      last = &mark;
    }
  }

  std::vector<TraceEvent> take() {
    for (const auto &[sequence, time] : announced)
      add(TraceKind::Announced, *known.at(sequence), time);
    for (auto &[task, changes] : changesOf)
      addWaits(*known.at(task.first), task.second, changes);
    std::ranges::stable_sort(events, {}, &TraceEvent::begin);
    return std::move(events);
  }

private:
  /// Of a task: it was found to wait for something, or it has moved.
  struct Change {
    Ticks time = 0;
    uint64_t obstacle = 0; // as WaitRecord has it; 0: it has moved
    uint32_t instruction = 0;
  };

  const TracedRequest *requestOf(const MarkView &mark) const {
    if (mark.moment == Moment::Begun) // of an invocation, not a submission
      return nullptr;
    auto found = known.find(mark.sequence);
    return found == known.end() ? nullptr : found->second;
  }

  void addMark(const MarkView &mark, const TracedRequest &request, const MarkView *visit,
               const MarkView *last, uint16_t executor) {
    const Ticks time = clock.hostAt(mark.time);
    switch (mark.moment) {
    case Moment::TakenIn:
      add(TraceKind::Start, request, time);
      return;
    case Moment::Visit:
      // All ranks had announced it by then; the earliest visit that says so counts.
      if (mark.flag)
        if (auto [known, isNew] = announced.emplace(mark.sequence, time); !isNew)
          known->second = std::min(known->second, time);
      return;
    case Moment::Stepped:
      return addRun(mark, request, last);
    case Moment::Blocked:
      if (mark.detail != 0)
        changesOf[{mark.sequence, mark.block}].push_back({time, mark.detail, mark.instruction});
      return;
    case Moment::Finished:
    case Moment::Left:
      addVisit(mark, request, visit, executor);
      if (mark.moment == Moment::Finished)
        changesOf[{mark.sequence, mark.block}].push_back({time});
      return;
    case Moment::Completed:
      add(TraceKind::Finish, request, time);
      return;
    case Moment::None:
    case Moment::Ready:
    case Moment::Begun:
    case Moment::Visible:
      return;
    }
  }

  /// Slices, from when it began to look for what the first of them needs.
  void addRun(const MarkView &mark, const TracedRequest &request, const MarkView *last) {
    const Ticks atLeast = last != nullptr ? clock.hostAt(last->time) : 0;
    TraceEvent &event =
        add(TraceKind::Run, request, std::max(clock.hostAt(mark.time - mark.detail), atLeast),
            clock.hostAt(mark.time));
    event.block = mark.block;
    event.instruction = mark.instruction;
    changesOf[{mark.sequence, mark.block}].push_back({event.begin});
  }

  void addVisit(const MarkView &mark, const TracedRequest &request, const MarkView *visit,
                uint16_t executor) {
    const Ticks time = clock.hostAt(mark.time);
    // The begin of the visit may have been overwritten in the ring.
    if (visit != nullptr && visit->sequence == mark.sequence && visit->block == mark.block) {
      TraceEvent &event = add(TraceKind::Visit, request, clock.hostAt(visit->time), time);
      event.block = mark.block;
      event.executor = executor;
      event.detail[1] = visit->detail;
    }
    if (mark.moment == Moment::Left && mark.flag)
      add(TraceKind::Preempt, request, time).block = mark.block;
  }

  /// Whoever has visited it.
  void addWaits(const TracedRequest &request, uint32_t block, std::vector<Change> &changes) {
    std::ranges::stable_sort(changes, {}, &Change::time);
    const Change *wait = nullptr;
    for (const Change &change : changes) {
      if (wait == nullptr) {
        wait = change.obstacle != 0 ? &change : nullptr;
      } else if (change.obstacle == 0) {
        addWait(request, block, *wait, change.time);
        wait = nullptr;
      }
    }
    if (wait != nullptr) // as far as is known
      addWait(request, block, *wait, changes.back().time);
  }

  void addWait(const TracedRequest &request, uint32_t block, const Change &wait, Ticks end) {
    const auto reason = static_cast<interpreter::BlockReason>(wait.obstacle >> 56);
    TraceEvent &event = add(TraceKind::Wait, request, wait.time, end);
    event.block = block;
    event.instruction = wait.instruction;
    event.reason = static_cast<uint8_t>(waitReasonOf(reason));
    event.peer = reason == interpreter::BlockReason::Dependency
                     ? rank
                     : static_cast<uint32_t>(wait.obstacle >> 32 & 0xffffff);
  }

  TraceEvent &add(TraceKind kind, const TracedRequest &request, Ticks begin, Ticks end = 0) {
    TraceEvent event;
    event.kind = kind;
    event.begin = begin;
    event.end = std::max(begin, end);
    event.collective = request.invocation.collective;
    event.ordinal = request.invocation.ordinal;
    events.push_back(event);
    return events.back();
  }

  const DeviceClock &clock;
  const uint32_t rank;
  std::map<uint32_t, const TracedRequest *> known; // by the low half of the sequence
  std::map<uint32_t, Ticks> announced;             // by the same
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Change>> changesOf; // and by block
  std::vector<TraceEvent> events;
};

} // namespace

transport::WaitReason waitReasonOf(interpreter::BlockReason reason) {
  // Traces have the same reasons for hosts and devices.
  using interpreter::BlockReason;
  using transport::WaitReason;
  switch (reason) {
  case BlockReason::Data:
    return WaitReason::Data;
  case BlockReason::Credit:
    return WaitReason::Credit;
  case BlockReason::Dependency:
    return WaitReason::Dependency;
  case BlockReason::Signal:
    return WaitReason::Signal;
  case BlockReason::Announce:
  case BlockReason::None:
    break;
  }
  return WaitReason::Announce;
}

std::vector<TraceEvent> eventsOf(std::span<const std::vector<MarkView>> marks,
                                 std::span<const TracedRequest> requests, const DeviceClock &clock,
                                 uint32_t rank, uint16_t firstExecutor) {
  Events events(requests, clock, rank);
  for (size_t e = 0; e < marks.size(); ++e)
    events.addExecutor(marks[e], static_cast<uint16_t>(firstExecutor + e));
  return events.take();
}

} // namespace occl::cuda::resident
