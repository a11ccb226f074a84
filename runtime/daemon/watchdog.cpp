#include "runtime/daemon/watchdog.h"

#include "runtime/base/long_wait.h"
#include "runtime/insight/wait_report.h"

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

/// Prefers a block that waits for another rank to one that waits for its own.
std::string whatHolds(const OpenInvocation &invocation) {
  const BlockTask *shown = nullptr;
  for (const BlockTask &task : invocation.tasks)
    if (task.obstacle.reason != BlockReason::None &&
        (!shown || (waitsForPeer(task) && !waitsForPeer(*shown))))
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
    : core(core), lookUp(std::move(lookUp)), tidy(std::move(tidy)),
      seenLeft(core.fabric->numRanks(), false) {}

void Watchdog::round(Clock::time_point now) {
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

void Watchdog::checkDeadlines(Clock::time_point now) {
  const OpenInvocation *overdue = nullptr;
  bool isRun = true;
  std::string text;
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    if (overdue || task.invocation->deadline > now)
      return;
    overdue = task.invocation;
    isRun = hasBeenRun(*overdue);
    text = "collective " + overdue->describe() + " did not end on rank " +
           std::to_string(core.fabric->rank()) + " before its deadline: " + whatHolds(*overdue);
  });
  if (!overdue)
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
      text = "collective " + invocation.describe() + " has been in flight on rank " +
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
      text = "without preemption the executor keeps to collective " + task.invocation->describe() +
             " of another communicator: " + describeObstacle(task);
  });
  return text;
}

std::string Watchdog::describeWaitFor(uint32_t peer) {
  std::string text;
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    if (text.empty() && waitsForPeer(task) && task.obstacle.peer == peer)
      text = "collective " + task.invocation->describe() + " on rank " +
             std::to_string(core.fabric->rank()) + ": " + describeObstacle(task);
  });
  return text;
}

void Watchdog::checkPeers() {
  std::vector<bool> waitedFor(core.fabric->numRanks(), false);
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    if (waitsForPeer(task) && task.obstacle.peer < waitedFor.size())
      waitedFor[task.obstacle.peer] = true;
  });
  for (uint32_t r = 0; r < waitedFor.size(); ++r) {
    bool left = waitedFor[r] && core.fabric->hasLeft(r);
    if (left && seenLeft[r])
      // What it did before it left has been looked at since the last check.
      return core.fabric->fail(
          {StatusCode::PeerFailed,
           "rank " + std::to_string(r) + " has destroyed its communicator; " + describeWaitFor(r)});
    seenLeft[r] = left;
    if (waitedFor[r] && !left && core.fabric->isDead(r))
      return core.fabric->fail({StatusCode::PeerFailed, "the process of rank " + std::to_string(r) +
                                                            " is gone; " + describeWaitFor(r)});
  }
}

void Watchdog::publishWaits() {
  if (core.options.isOnDevice)
    return;
  transport::SegmentHeader &header = core.fabric->own().header();
  uint32_t asked = core.fabric->own().words().reportsAsked.load(std::memory_order_acquire);
  core.device->board.publishWaits(core.place, header.waitEdges);
  header.reportsAnswered.store(asked, std::memory_order_release);
}

std::string Watchdog::describe(const transport::WaitEdge &wait) const {
  return insight::describeWait(core.fabric->rank(), wait, lookUp, TickScale(), ticks());
}

} // namespace occl::daemon
