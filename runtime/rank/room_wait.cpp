// Calls that were refused for want of room, until they are admitted or in vain.
#include "runtime/rank/room_wait.h"

#include "runtime/base/long_wait.h"
#include "runtime/sync/thread.h"

#include <mutex>
#include <new>

namespace occl::daemon {

namespace {

/// Most waits are over before.
constexpr uint32_t kLooksAwake = 200;

} // namespace

void pauseAfter(uint32_t looks) {
  constexpr auto kSleep = std::chrono::microseconds(50);
  yieldProcessor();
  if (looks >= kLooksAwake)
    sleepFor(kSleep);
}

std::chrono::milliseconds RoomWait::waited() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(coarseNow() - since);
}

Status RoomWait::look(const std::string &refusal) {
  if (looks++ == 0)
    since = coarseNow();
  // Most waits end within these looks, which do nothing else.
  if (looks < kLooksAwake)
    return {};
  const std::string who = "a call of rank " + std::to_string(core.fabric->rank());
  const auto timeout =
      call.options->timeout.count() != 0 ? call.options->timeout : core.options.timeout;
  // End what is overdue, or waits for a rank that is gone.
  if (timeout < kNoDeadline && waited() > timeout)
    return {StatusCode::Timeout,
            who + " found no room for " + std::to_string(timeout.count()) + " ms: " + refusal};
  constexpr auto kLong = std::chrono::seconds(1);
  // After a second it is enough that some of what is missing is held by a dead rank.
  if (Status holders = admission.checkHolders(call, waited() > kLong); !holders.ok())
    return holders;
  // Reports name the call from here on.
  core.roomWaits.set(this, refusal);
  isSaid = true;
  if (!isReported && waited() >= longWait()) {
    reportLongWait(who + " has found no room for " + describeLongWait() +
                   " and goes on: " + refusal);
    isReported = true;
  }
  return {};
}

void RoomWait::withdraw() { core.roomWaits.remove(this); }

void DeferredStarts::add(DeferredStart &start, const Status &refusal) {
  std::lock_guard lock(mutex);
  // What may throw comes first: until then the start is nobody's.
  waiting.reserve(waiting.size() + 1);
  core.roomWaits.set(&start, start.subject + ": " + refusal.message());
  start.isWaiting.store(true, std::memory_order_relaxed);
  core.device->submissions.add(); // so that workers look again
  waiting.push_back(&start);
  number.fetch_add(1, std::memory_order_release);
}

void DeferredStarts::checkWait(const DeferredStart &start, const Status &refusal) const {
  if (coarseNow() >= start.deadline)
    core.fabric->fail({StatusCode::Timeout, start.subject + " did not begin on rank " +
                                                std::to_string(core.fabric->rank()) +
                                                " before its deadline: " + refusal.message()});
  else if (Status holders = admission.checkHolders(start.call, false); !holders.ok())
    core.fabric->fail(holders);
}

/// Again: it waits on. Else the last access to it.
Status DeferredStarts::tryOne(DeferredStart &start) {
  if (!core.fabric->failed()) {
    auto admitted = admission.submit(start.call);
    if (admitted.ok()) {
      start.request = admitted->request;
    } else if (admitted.status().code() == StatusCode::Again) {
      core.roomWaits.set(&start, start.subject + ": " + admitted.status().message());
      checkWait(start, admitted.status());
      return admitted.status();
    } else {
      core.fabric->fail(admitted.status()); // no memory
    }
  }
  core.roomWaits.remove(&start);
  // With this store the owner may go on, and free it.
  start.isWaiting.store(false, std::memory_order_release);
  return {};
}

/// Tries it. What there is no memory for waits on, until its deadline.
bool DeferredStarts::isOver(DeferredStart &start) {
  try {
    return tryOne(start).ok();
  } catch (const std::bad_alloc &) {
    if (coarseNow() >= start.deadline)
      core.fabric->fail(outOfMemory());
    return false;
  }
}

void DeferredStarts::tryAll() {
  if (!areThere())
    return;
  bool haveBegun = false;
  {
    // Those that have waited for longest go first. Each leaves the list as it begins, so that none
    // begins twice if there is no memory for the next one.
    std::lock_guard lock(mutex);
    for (auto next = waiting.begin(); next != waiting.end();) {
      if (!isOver(**next)) {
        ++next;
        continue;
      }
      next = waiting.erase(next);
      number.fetch_sub(1, std::memory_order_release);
      core.device->submissions.end(); // the invocation is counted as open by itself
      haveBegun = true;
    }
  }
  // Executors may be asleep, as nobody else rings for these.
  if (haveBegun)
    core.device->wakeFor(false);
}

} // namespace occl::daemon
