// What a resident daemon's thread does: ends requests that are complete, starts executors again,
// looks after deadlines and tenants that have failed.
//
// For whatever cannot be done while executors run it has them leave: then it learns what they wait
// for, takes out what is not to go on, and has them start again.
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/resident/resident_daemon.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// How long the daemon's thread sleeps while something is open, and while nothing is.
constexpr std::chrono::microseconds kBusyPause = 100us;
constexpr std::chrono::microseconds kIdlePause = 5ms;
/// So long after a submission it does not sleep if there are callbacks to be called.
constexpr auto kAwake = 500us;

} // namespace

void ResidentDaemon::keep() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      if (isOver)
        return;
      if (numCallbacks == 0 || Clock::now() - lastSubmission > kAwake)
        changed.wait_for(lock, waiting.empty() ? kIdlePause : kBusyPause);
      if (isOver)
        return;
      isKeeping = true;
    }
    keepOnce();
    {
      std::lock_guard lock(mutex);
      isKeeping = false;
      changed.notify_all();
    }
    yieldProcessor();
  }
}

void ResidentDaemon::keepOnce() {
  settleComplete();
  if (!failure().ok())
    return breakDown();
  if (mustStop())
    return stopAndLook();
  // They have left, perhaps because nothing moves; somebody may have started them again.
  const uint64_t starts = side->starts();
  if ((starts != lookedAtStart || side->hasQuit()) && side->anyOpen()) {
    lookedAtStart = starts;
    lookAtWaits();
    side->restartIfOpen();
  }
}

void ResidentDaemon::settleComplete() {
  for (;;) {
    uint64_t request = 0;
    {
      std::lock_guard lock(mutex);
      auto found =
          std::ranges::find_if(waiting, [&](const auto &entry) { return isComplete(entry.first); });
      if (found == waiting.end())
        return;
      request = found->first;
    }
    (void)settle(request).ok();
  }
}

bool ResidentDaemon::mustStop() const {
  const auto now = Clock::now();
  std::lock_guard lock(mutex);
  for (const auto &[tenant, isLeaving] : tenants)
    if (tenant->isAsked())
      return true;
  return std::ranges::any_of(waiting, [&](const auto &entry) {
    const Waiting &open = entry.second;
    return open.deadline < now || open.tenant->hasFailed() || tenants.at(open.tenant);
  });
}

void ResidentDaemon::stopAndLook() {
  side->hold();
  if (!awaitGone()) {
    {
      std::lock_guard lock(mutex);
      failed = {StatusCode::SystemError, "the resident daemon of CUDA device " +
                                             std::to_string(options.device) +
                                             " does not react; something else occupies the device"};
    }
    return breakDown();
  }
  settleComplete();
  lookAtWaits();
  endLate();
  withdrawFailed();
  side->resume();
}

/// The daemon has failed: so does everybody who has something open here.
void ResidentDaemon::breakDown() {
  side->abort();
  const Status cause = failure();
  for (Tenant *tenant : allTenants())
    tenant->fail(cause);
  std::vector<std::pair<uint64_t, Callback>> calls;
  {
    std::lock_guard lock(mutex);
    while (!waiting.empty()) {
      const uint64_t request = waiting.begin()->first;
      calls.emplace_back(request, end(waiting.begin(), cause));
    }
    changed.notify_all();
  }
  for (auto &[request, callback] : calls)
    if (callback)
      callback(request, cause);
}

void ResidentDaemon::lookAtWaits() {
  for (Tenant *tenant : allTenants())
    tenant->look(waitsOf(*tenant));
}

void ResidentDaemon::endLate() {
  for (Tenant *tenant : allTenants()) {
    InvocationName late;
    bool isLate = false;
    {
      std::lock_guard lock(mutex);
      for (const auto &[request, open] : waiting)
        if (open.tenant == tenant && open.deadline < Clock::now() && !isLate) {
          isLate = true;
          late = open.invocation;
        }
    }
    if (isLate && !tenant->hasFailed())
      tenant->endLate(late, waitsOf(*tenant));
  }
}

/// Executors have left, and find nothing of it when they come again.
void ResidentDaemon::withdrawFailed() {
  struct Call {
    uint64_t request;
    Status outcome;
    Callback callback;
  };
  std::vector<Call> calls;
  OnDevice on(options.device);
  {
    std::lock_guard lock(mutex);
    for (auto next = waiting.begin(); next != waiting.end();) {
      const auto open = next++;
      const uint64_t request = open->first;
      const Tenant &tenant = *open->second.tenant;
      if (!tenant.hasFailed() && !tenants.at(open->second.tenant))
        continue;
      Status outcome = tenant.failure();
      if (outcome.ok())
        outcome = {StatusCode::Aborted, "the communicator is being destroyed"};
      // In its stream: before the executors that are started next.
      Status cleared = toStatus(
          cudaMemsetAsync(&board->slots[request % kWindow], 0, offsetof(Slot, words), stream),
          "clearing a slot of the resident daemon");
      if (!cleared.ok() && failed.ok())
        failed = cleared;
      side->withdraw(request);
      calls.push_back({request, outcome, end(open, outcome)});
    }
    changed.notify_all();
  }
  for (const Call &call : calls)
    if (call.callback)
      call.callback(call.request, call.outcome);
}

std::vector<TenantWait> ResidentDaemon::waitsOf(const Tenant &tenant) const {
  std::vector<TenantWait> waits;
  const std::vector<OpenTask> tasks = side->openTasks();
  std::lock_guard lock(mutex);
  for (const OpenTask &task : tasks) {
    auto found = waiting.find(task.request);
    if (found != waiting.end() && found->second.tenant == &tenant)
      waits.push_back({found->second.invocation, task, side->missing(task.request)});
  }
  return waits;
}

std::vector<Tenant *> ResidentDaemon::allTenants() const {
  std::lock_guard lock(mutex);
  std::vector<Tenant *> all;
  for (const auto &[tenant, isLeaving] : tenants)
    all.push_back(tenant);
  return all;
}

} // namespace occl::cuda::resident
