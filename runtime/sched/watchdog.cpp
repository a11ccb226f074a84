// The watchdog's rounds: deadlines, dead peers, long waits, and wait edges for reports.
#include "runtime/sched/watchdog.h"

#include "runtime/base/long_wait.h"
#include "runtime/observe/report/wait_report.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;
using interpreter::BlockReason;

constexpr auto kPeerCheckPeriod = 20ms, kReportPeriod = 500ms;

/// Waits for another rank.
bool waitsForPeer(const BlockTask &task) {
  return task.obstacle.reason != BlockReason::None &&
         task.obstacle.reason != BlockReason::Dependency;
}

/// Of a task that goes on only once its program has marked a partition: whether the rank's program
/// takes something of that rank, which has not done its own part.
bool willWaitFor(const BlockTask &task, const Fabric &fabric, uint32_t peer) {
  const OpenInvocation &invocation = *task.invocation;
  if (!interpreter::isPartition(task.obstacle) || invocation.operation || peer == fabric.rank() ||
      !std::ranges::binary_search(invocation.collective->binding->arenaRanks(), peer))
    return false;
  const transport::AnnounceCell *cell = peerCell(*invocation.id, fabric, peer);
  return !cell || cell->done.load(std::memory_order_acquire) <= invocation.ordinal;
}

/// The higher, the more a wait says of why others wait: what the program has to do; another rank;
/// the own one.
int weightOf(const BlockTask &task) {
  return interpreter::isPartition(task.obstacle) ? 2 : waitsForPeer(task) ? 1 : 0;
}

std::string whatHolds(const OpenInvocation &invocation) {
  const BlockTask *shown = nullptr;
  for (const BlockTask &task : invocation.tasks)
    if (task.obstacle.reason != BlockReason::None && (!shown || weightOf(task) > weightOf(*shown)))
      shown = &task;
  return shown ? describeObstacle(*shown) : "none of its thread blocks has been run";
}

bool hasBeenRun(const OpenInvocation &invocation) {
  return std::any_of(invocation.tasks.begin(), invocation.tasks.end(), [](const BlockTask &task) {
    return task.obstacle.reason != BlockReason::None;
  });
}

} // namespace

Watchdog::Watchdog(Core &core, insight::LookUp lookUp, std::function<void()> tidy)
    : core(core), lookUp(std::move(lookUp)), tidy(std::move(tidy)), gone(core.fabric->numRanks()) {}

void Watchdog::round(Clock::time_point now) {
  // Settling a failed communicator is its scheduler's affair.
  if (core.fabric->failed())
    return;
  publishWaits();
  tidy();
  checkDeadlines(now);
  reportLongWaits(now);
  if (now >= nextPeerCheck) {
    nextPeerCheck = now + kPeerCheckPeriod;
    checkPeers();
  }
}

/// Of what waits for its predecessor, too: a deadline counts from the call on.
void Watchdog::checkDeadlines(Clock::time_point now) {
  bool isOverdue = false, isRun = true;
  std::string text;
  // The text is made under the board's lock, as tasks may be gone afterwards; failing needs it
  // free.
  core.device->board.forEachInvocation(
      core.place, [&](const OpenInvocation &invocation, const OpenInvocation &running) {
        if (isOverdue || invocation.deadline > now)
          return;
        isOverdue = true;
        isRun = hasBeenRun(running);
        text = invocation.subject() + " did not end on rank " +
               std::to_string(core.fabric->rank()) + " before its deadline: ";
        if (&invocation != &running)
          text += "it comes after " + running.subject() + ": ";
        text += whatHolds(running);
      });
  if (!isOverdue)
    return;
  if (std::string holder = isRun ? "" : describeHolder(); !holder.empty())
    text += "; " + holder;
  core.fabric->fail({StatusCode::Timeout, text});
}

/// What has been in flight for longest, once; what was submitted before the report, and has come to
/// last for long since, is as old or is held up by it.
void Watchdog::reportLongWaits(Clock::time_point now) {
  if (now < nextReport)
    return;
  nextReport = now + kReportPeriod;
  const auto forEachUnreported = [&](const auto &inspect) {
    core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
      if (task.invocation->times.submitted > reportedUpTo)
        inspect(*task.invocation);
    });
  };
  Ticks oldest = std::numeric_limits<Ticks>::max();
  forEachUnreported([&](const OpenInvocation &invocation) {
    oldest = std::min(oldest, invocation.times.submitted);
  });
  const Ticks at = ticks();
  if (elapsed(oldest, at) == 0 ||
      TickScale().nanoseconds(elapsed(oldest, at)) <
          static_cast<uint64_t>(std::chrono::nanoseconds(longWait()).count()))
    return;
  std::string text;
  forEachUnreported([&](const OpenInvocation &invocation) {
    if (text.empty() && invocation.times.submitted == oldest)
      text = invocation.subject() + " has been in flight on rank " +
             std::to_string(core.fabric->rank()) + " for " + describeLongWait() +
             " and goes on: " + whatHolds(invocation);
  });
  reportedUpTo = at;
  if (!text.empty()) // else it has ended just now
    reportLongWait(text);
}

std::string Watchdog::describeHolder() const {
  std::string text;
  if (core.device->options.preemption)
    return text;
  core.device->board.forEachOtherTask(core.place, [&](const BlockTask &task) {
    if (text.empty() && waitsForPeer(task))
      text = "without preemption the executor keeps to " + task.invocation->subject() +
             " of another communicator: " + describeObstacle(task);
  });
  return text;
}

std::string Watchdog::describeWaitFor(uint32_t peer) {
  std::string text;
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    const bool waits = waitsForPeer(task) && task.obstacle.peer == peer;
    if (text.empty() && (waits || willWaitFor(task, *core.fabric, peer)))
      text = task.invocation->subject() + " on rank " + std::to_string(core.fabric->rank()) + ": " +
             describeObstacle(task) + (waits ? "" : ", and then for rank " + std::to_string(peer));
  });
  return text;
}

/// By rank: 1 + the last epoch in which a look found something missing that only that rank would
/// do; 0: nothing waits for it, nor will once the program has marked what it is to mark.
std::vector<uint64_t> Watchdog::lastLooks() const {
  std::vector<uint64_t> looks(core.fabric->numRanks(), 0);
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    const auto waitsFor = [&](uint32_t r) { looks[r] = std::max(looks[r], task.lookedIn + 1); };
    if (waitsForPeer(task) && task.obstacle.peer < looks.size())
      waitsFor(task.obstacle.peer);
    for (uint32_t r = 0; interpreter::isPartition(task.obstacle) && r < looks.size(); ++r)
      if (willWaitFor(task, *core.fabric, r))
        waitsFor(r);
  });
  return looks;
}

/// A peer that is gone may have done before what is waited for: the looks that count are those
/// that began afterwards. Two, as the first may have been where the peer's ring was (IdState), and
/// has found out then where it is.
void Watchdog::checkPeers() {
  const std::vector<uint64_t> looks = lastLooks();
  for (uint32_t r = 0; r < gone.size(); ++r) {
    Gone &peer = gone[r];
    if (looks[r] <= peer.before || (peer.before == 0 && !core.fabric->isGone(r)))
      continue;
    if (peer.before != 0 && ++peer.looks >= 2)
      return core.fabric->fail(
          {StatusCode::PeerFailed, core.fabric->describeGone(r) + "; " + describeWaitFor(r)});
    peer.before = core.device->board.beginEpoch(core.place);
  }
}

void Watchdog::publishWaits() {
  if (core.options.isOnDevice)
    return;
  transport::SegmentHeader &header = core.fabric->own().header();
  // Read before publishing: a request that comes later waits for the next answer.
  uint32_t asked = core.fabric->own().words().reportsAsked.load(std::memory_order_acquire);
  core.device->board.publishWaits(core.place, header.waitEdges);
  header.reportsAnswered.store(asked, std::memory_order_release);
}

std::string Watchdog::describe(const transport::WaitEdge &wait) const {
  return insight::describeWait(core.fabric->rank(), wait, lookUp, TickScale(), ticks());
}

} // namespace occl::daemon
