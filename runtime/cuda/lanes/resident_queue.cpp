// A rank's calls that wait for a lane or for other ranks: their queue, and those who wait for
// calls.
#include "runtime/cuda/lanes/resident_calls.h"

#include "runtime/base/long_wait.h"
#include "runtime/observe/report/wait_report.h"
#include "runtime/observe/report/wait_text.h"
#include "runtime/sync/thread.h"

#include <bit>
#include <mutex>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

/// Between looks at deadlines and peers of what waits.
constexpr auto kLookEvery = 10ms;
/// Of one who waits for a call, between looks at those that wait for other ranks, if there are any.
constexpr auto kSlice = 200us, kSliceBesideOthers = 3us;

} // namespace

// --- what waits ---

bool ResidentRank::isShortOfNumbers() const {
  return std::ranges::any_of(shares, [&](const auto &share) {
    return share->isAttached.load(std::memory_order_acquire) &&
           set->daemon(share->kernel).isShortOfNumbers();
  });
}

bool ResidentRank::hasWork() const {
  // Calls that wait, numbers that others lack, or counts that others wait for.
  if (numWaiting.load(std::memory_order_relaxed) != 0)
    return true;
  return !fabric.failed() && (isShortOfNumbers() || table.isDoneWanted());
}

/// Whether there is anything to do for who has the lock. Any thread.
bool ResidentRank::isDue() const {
  return table.hasNext() || table.isDoneWanted() ||
         numUnmade.load(std::memory_order_relaxed) != 0 || isShortOfNumbers() || fabric.failed() ||
         Clock::now().time_since_epoch() >=
             Clock::duration(nextLook.load(std::memory_order_relaxed));
}

/// Unless somebody else is at it.
std::vector<ResidentRank::Call *> ResidentRank::tryToAdvance() {
  if (!hasWork() || !isDue())
    return {};
  std::unique_lock lock(starting, std::try_to_lock);
  return lock.owns_lock() ? advance(std::move(lock)) : std::vector<Call *>();
}

/// With the lock.
Status ResidentRank::executeWaiting() {
  LaneCalls::Calls executed;
  Status status = fabric.failed() ? Status() : calls.advance(executed);
  notePlaced(executed);
  return status;
}

/// With the lock: calls that waited, and are in daemons now.
void ResidentRank::notePlaced(const LaneCalls::Calls &executed) {
  noteWaiting();
  if (executed.empty())
    return;
  std::lock_guard known(mutex);
  for (const auto &each : executed) {
    const auto &call = static_cast<const Started &>(*each);
    if (auto found = deferred.find(call.request); found != deferred.end())
      found->second.placed = packedRequest(call.kernel, call.inDaemon);
  }
}

/// With the lock.
void ResidentRank::noteWaiting() {
  numWaiting.store(static_cast<uint32_t>(calls.numWaiting()), std::memory_order_relaxed);
  numUnmade.store(static_cast<uint32_t>(calls.numUnmade()), std::memory_order_relaxed);
}

/// With the lock: what other communicators of the process lack.
void ResidentRank::giveNumbersBack() {
  for (const auto &share : shares)
    if (share->isAttached.load(std::memory_order_acquire) &&
        daemonOf(share->kernel).isShortOfNumbers() && daemonOf(share->kernel).wantsNumbers())
      lanes.giveNumbersBack(share->kernel);
}

/// Executes what can be, ends what cannot be executed any more; callbacks that are to be called.
std::vector<ResidentRank::Call *> ResidentRank::advance(std::unique_lock<Mutex> lock) {
  Status status = executeWaiting();
  giveNumbersBack();
  if (status.ok() && !fabric.failed())
    status = lookAtQueue();
  if (!status.ok())
    fabric.fail(status);
  // After a failure, or at the end, nobody waits any more.
  std::vector<std::unique_ptr<LaneCall>> over;
  if (fabric.failed() || isEnding)
    over = calls.takeAll();
  noteWaiting();
  // Ends are told without the lock.
  lock.unlock();
  return endAll(std::move(over), fabric.failed() ? fabric.failure()
                                                 : Status(StatusCode::Aborted,
                                                          "the communicator is being destroyed"));
}

/// Deadlines, peers that will never come, and long waits of what waits.
Status ResidentRank::lookAtQueue() {
  const auto now = Clock::now();
  if (now.time_since_epoch() < Clock::duration(nextLook.load(std::memory_order_relaxed)))
    return {};
  nextLook.store((now + kLookEvery).time_since_epoch().count(), std::memory_order_relaxed);
  std::vector<bool> isGone(fabric.numRanks(), false);
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    isGone[r] = r != fabric.rank() && fabric.isGone(r);
  // Reports do not wait for a lock that another rank has.
  table.setWaiting(false);
  Status status = lookAtWaiting(isGone, now);
  table.setWaiting(true);
  return status;
}

Status ResidentRank::lookAtWaiting(const std::vector<bool> &isGone, Clock::time_point now) {
  for (const auto &each : calls.queue()) {
    auto &call = static_cast<Started &>(*each);
    const std::string on = " on rank " + std::to_string(fabric.rank());
    // A rank that is gone will never make the call.
    if (const auto lost = calls.lostPeerOf(call, [&](uint32_t r) { return isGone[r]; }))
      return {StatusCode::PeerFailed,
              fabric.describeGone(*lost) + "; " + describe(edgeOf(call, *lost))};
    // One deadline ends the communicator.
    if (call.deadline() < now)
      return {StatusCode::Timeout, "collective " + call.name + " did not end" + on +
                                       " before its deadline: " + describeWaiting(call)};
    if (!call.isReported && now - call.since > longWait()) {
      call.isReported = true;
      reportLongWait("collective " + call.name + " has been in flight" + on + " for " +
                     describeLongWait() + " and goes on: " + describeWaiting(call));
    }
  }
  return {};
}

/// That a rank has not started it.
transport::WaitEdge ResidentRank::edgeOf(const Started &call, uint32_t peer) const {
  transport::WaitEdge edge;
  edge.collective = call.id;
  edge.ordinal = lanes.ordinalOf(calls.numberOf(call).value_or(0));
  edge.reason = transport::WaitReason::Announce;
  edge.peer = peer;
  edge.since = call.sinceTicks;
  return edge;
}

/// Of all that waits for other ranks. Nothing, if somebody starts a call just now.
std::vector<transport::WaitEdge> ResidentRank::edgesOfWaiting() {
  std::vector<transport::WaitEdge> edges;
  std::unique_lock lock(starting, std::try_to_lock);
  if (!lock.owns_lock())
    return edges;
  for (const auto &each : calls.queue()) {
    const auto &call = static_cast<const Started &>(*each);
    for (uint32_t r = 0, missing = calls.missingFor(call); missing >> r != 0; ++r)
      if ((missing >> r & 1) != 0)
        edges.push_back(edgeOf(call, r));
  }
  return edges;
}

std::string ResidentRank::describe(const transport::WaitEdge &edge) {
  return insight::describeWait(
      fabric.rank(), edge, [this](uint64_t id) { return lookUp(id); }, TickScale(), ticks());
}

std::string ResidentRank::describeWaiting(const Started &call) {
  if (!calls.isMade(call))
    return "earlier calls of its id wait for other ranks, or too many ids are in flight";
  const uint32_t missing = calls.missingFor(call);
  return missing == 0 ? "it waits for room in the resident daemon, for calls before it, or for a "
                        "lane; ids that hold lanes: " +
                            table.holders(call.kernel)
                      : describe(edgeOf(call, static_cast<uint32_t>(std::countr_zero(missing))));
}

/// Without a lock.
std::vector<ResidentRank::Call *> ResidentRank::endAll(std::vector<std::unique_ptr<LaneCall>> all,
                                                       const Status &outcome) {
  std::vector<Call *> ends;
  for (const auto &each : all) {
    const auto &call = static_cast<const Started &>(*each);
    // A callback is told how it ended; else whoever asks next.
    if (call.callback) {
      forgetDeferred(call.request);
    } else {
      std::lock_guard lock(mutex);
      if (auto found = deferred.find(call.request); found != deferred.end())
        found->second.outcome = outcome;
    }
    ended(call.id, outcome, Clock::now() - call.since);
    if (call.callback)
      ends.push_back(new Call{this, call.callback, call.request, outcome.code(), call.name,
                              call.callbackNeverBlocks});
    endScaled(call.scaling, true);
  }
  return ends;
}

// --- waiting ---

/// Of a call that had to wait: `placed` is its request in a daemon, or 0: it has ended well. Else
/// InProgress: it waits; or how it ended, or what there is to say of it.
Status ResidentRank::findPlaced(daemon::RequestId request, daemon::RequestId &placed) {
  std::lock_guard lock(mutex);
  placed = 0;
  auto found = deferred.find(request);
  // The user was told of it before, or there never was such a request.
  if (found == deferred.end()) {
    if (request - kFirstDeferred >= numDeferred)
      return {StatusCode::InvalidArgument, "there is no request " + std::to_string(request)};
    return fabric.failed() ? fabric.failure() : Status();
  }
  const Deferred &known = found->second;
  // It ended without a daemon, which its user is told once.
  if (known.outcome) {
    const Status outcome = *known.outcome;
    deferred.erase(found);
    return outcome;
  }
  placed = known.placed;
  return placed != 0 ? Status()
                     : Status(StatusCode::InProgress,
                              "request " + std::to_string(request) + " is in flight");
}

void ResidentRank::forgetDeferred(daemon::RequestId request) {
  std::lock_guard lock(mutex);
  deferred.erase(request);
}

Status ResidentRank::wait(daemon::RequestId request) {
  if (request < kFirstDeferred)
    return waitInDaemon(request);
  for (;;) {
    // This thread may be the only one that can execute it.
    comeBy();
    daemon::RequestId placed = 0;
    Status found = findPlaced(request, placed);
    if (found.ok() && placed != 0) {
      found = waitInDaemon(placed);
      forgetDeferred(request);
    }
    if (found.code() != StatusCode::InProgress)
      return found;
    yieldProcessor();
  }
}

Status ResidentRank::waitInDaemon(daemon::RequestId request) {
  auto found = place(request);
  if (!found.ok())
    return found.status();
  resident::ResidentDaemon &daemon = daemonOf(found->first);
  // With others that wait for ranks, look at those more often.
  const auto slice = [&] {
    return numWaiting.load(std::memory_order_relaxed) == 0 ? kSlice : kSliceBesideOthers;
  };
  while (!daemon.awaitEnd(found->second, slice())) {
    comeBy();
    yieldProcessor();
  }
  return daemon.settle(found->second);
}

Status ResidentRank::test(daemon::RequestId request) {
  comeBy();
  if (request < kFirstDeferred)
    return testInDaemon(request, request);
  daemon::RequestId placed = 0;
  if (Status found = findPlaced(request, placed); !found.ok() || placed == 0)
    return found;
  Status outcome = testInDaemon(placed, request);
  if (outcome.code() != StatusCode::InProgress)
    forgetDeferred(request);
  return outcome;
}

/// given: as the user has it.
Status ResidentRank::testInDaemon(daemon::RequestId request, daemon::RequestId given) {
  auto found = place(request);
  if (!found.ok())
    return found.status();
  resident::ResidentDaemon &daemon = daemonOf(found->first);
  // A daemon that has failed settles its requests, too.
  if (daemon.isComplete(found->second) || !daemon.failure().ok())
    return daemon.settle(found->second);
  daemon.goOn();
  return {StatusCode::InProgress, "request " + std::to_string(given) + " is in flight"};
}

Status ResidentRank::holdStream(cudaStream_t stream, daemon::RequestId request) {
  auto found = place(request);
  return found.ok() ? daemonOf(found->first).holdStream(stream, found->second) : found.status();
}

} // namespace occl::cuda
