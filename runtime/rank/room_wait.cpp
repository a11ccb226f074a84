#include "runtime/rank/room_wait.h"

#include "runtime/base/long_wait.h"
#include "runtime/rank/admission.h"
#include "runtime/sched/core.h"
#include "runtime/sync/thread.h"

namespace occl::daemon {

namespace {

/// Most waits are over before.
constexpr uint32_t kLooksAwake = 200;

} // namespace

std::chrono::milliseconds RoomWait::waited() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(coarseNow() - since);
}

Status RoomWait::look(const std::string &refusal) {
  if (looks++ == 0)
    since = coarseNow();
  if (looks < kLooksAwake)
    return {};
  const std::string who = "a call of rank " + std::to_string(core.fabric->rank());
  const auto timeout =
      call.options->timeout.count() != 0 ? call.options->timeout : core.options.timeout;
  if (timeout < kNoDeadline && waited() > timeout)
    return {StatusCode::Timeout,
            who + " found no room for " + std::to_string(timeout.count()) + " ms: " + refusal};
  constexpr auto kLong = std::chrono::seconds(1);
  if (Status holders = admission.checkHolders(call, waited() > kLong); !holders.ok())
    return holders;
  core.roomWaits.set(this, refusal);
  isSaid = true;
  if (!isReported && waited() >= longWait()) {
    reportLongWait(who + " has found no room for " + describeLongWait() +
                   " and goes on: " + refusal);
    isReported = true;
  }
  return {};
}

void RoomWait::pause() const {
  constexpr auto kSleep = std::chrono::microseconds(50);
  yieldProcessor();
  if (looks >= kLooksAwake)
    sleepFor(kSleep);
}

void RoomWait::withdraw() { core.roomWaits.remove(this); }

} // namespace occl::daemon
