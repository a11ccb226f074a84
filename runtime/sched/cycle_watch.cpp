// Without preemption: schedulers tell each other what they are stuck on, and find cycles.
#include "runtime/sched/cycle_watch.h"

#include "runtime/control/records/failure_word.h"
#include "runtime/control/shm/shared_bell.h"
#include "runtime/observe/report/wait_text.h"
#include "runtime/sched/core.h"
#include "runtime/sched/watchdog.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unistd.h>

namespace occl::daemon {

namespace {

using transport::DeviceId;
using transport::DeviceWait;
using transport::DeviceWaitBoard;
using namespace std::chrono_literals;

/// What was said before says nothing of now.
constexpr std::chrono::nanoseconds kForgotten = 2s;

DeviceWaitBoard &boardOf(const bootstrap::SharedBell &bell) {
  static_assert(sizeof(DeviceWaitBoard) <= bootstrap::SharedBell::kNoticeBytes);
  return *reinterpret_cast<DeviceWaitBoard *>(bell.notices());
}

/// Other than that of any device of a process that lives at the same time.
DeviceId newId() {
  static Atomic<uint32_t> count{0};
  return static_cast<DeviceId>(getpid()) << 32 | (count.fetch_add(1) + 1);
}

uint64_t nanoseconds(SteadyClock::time_point time) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
}

std::vector<std::string> textsOf(std::span<const DeviceWait> cycle) {
  std::vector<std::string> texts;
  for (const DeviceWait &wait : cycle)
    texts.push_back(wait.text);
  return texts;
}

} // namespace

CycleWatch::CycleWatch(TaskBoard &board, const bootstrap::SharedBell &bell)
    : board(board), ownBoard(boardOf(bell)), id(newId()) {
  ownBoard.setOwner(id);
}

void CycleWatch::round(std::span<const Attached> attached) {
  // Hear the others, tell the own wait, then see whether a cycle stands still.
  listen(attached);
  std::optional<KeptTo> kept = board.keptTo();
  known.hear(ownWait(kept, attached));
  ownBoard.publish(known.toTell(id));
  std::vector<DeviceWait> stuck = known.stuckWith(id);
  std::vector<DeviceWait> cycle = detector.update(stuck, id, nanoseconds(SteadyClock::now()));
  // One communicator of a cycle fails: the others can go on then.
  if (!cycle.empty() && cycle.front().device == id)
    kept->waits.front().core->fabric->fail(
        {StatusCode::Deadlock,
         insight::describeCycle(textsOf(cycle), transport::FailureCause::kTextBytes - 1)});
}

void CycleWatch::listen(std::span<const Attached> attached) {
  const uint64_t now = nanoseconds(SteadyClock::now());
  const auto forgotten = static_cast<uint64_t>(kForgotten.count());
  const uint64_t oldest = now > forgotten ? now - forgotten : 0;
  std::set<DeviceId> heard{id, 0};
  for (const Attached &one : attached)
    for (uint32_t r = 0; r < one.core->fabric->numRanks(); ++r) {
      const DeviceWaitBoard &theirs = boardOf(*one.core->fabric->ranks().sharedBell(r));
      if (!heard.insert(theirs.device()).second)
        continue;
      for (const DeviceWait &wait : theirs.read())
        // What says to be of the future would never be forgotten.
        if (wait.device != id && wait.device != 0 && wait.saidAt <= now)
          known.hear(wait);
    }
  known.forgetBefore(oldest);
}

DeviceWait CycleWatch::ownWait(const std::optional<KeptTo> &kept,
                               std::span<const Attached> attached) const {
  DeviceWait own;
  own.device = id;
  own.saidAt = nanoseconds(SteadyClock::now());
  if (!kept || kept->waits.front().core->fabric->failed())
    return own;
  own.since = nanoseconds(kept->since);
  own.lookedAt = nanoseconds(kept->lookedAt);
  for (const KeptTo::Wait &wait : kept->waits) {
    // Several waits for one scheduler are one edge of the graph.
    DeviceId other = boardOf(*wait.core->fabric->ranks().sharedBell(wait.edge.peer)).device();
    if (std::find(own.waitsFor.begin(), own.waitsFor.end(), other) == own.waitsFor.end())
      own.waitsFor.push_back(other);
  }
  // The text is of the first wait, by the communicator that it belongs to.
  const KeptTo::Wait &first = kept->waits.front();
  for (const Attached &one : attached)
    if (one.core == first.core)
      own.text = one.watchdog->describe(first.edge) + ", in process " + std::to_string(getpid());
  return own;
}

} // namespace occl::daemon
