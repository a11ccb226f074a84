// What a resident daemon's thread does: ends requests that are complete, starts executors again,
// looks after deadlines and tenants that have failed.
//
// For whatever cannot be done while executors run it has them leave: then it learns what they wait
// for, takes out what is not to go on, and has them start again.
#include "runtime/base/long_wait.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/resident/resident_daemon.h"
#include "runtime/cuda/watch/waiting.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// How long the daemon's thread sleeps while something is open, and while nothing is.
constexpr std::chrono::microseconds kBusyPause = 100us;
constexpr std::chrono::microseconds kIdlePause = 5ms;
/// For executors that have been told to leave: until streams are released that perhaps keep others
/// of them from beginning, and until they will never leave.
constexpr auto kUsualLeave = 500ms, kLeavePatience = 5000ms;
/// For the daemon's thread once around, until it may be held up in a call of CUDA.
constexpr auto kUsualKeeping = 1s;
constexpr auto kHeldForLong = 10ms;
/// So long after a submission it does not sleep if there are callbacks to be called, or tenants
/// have work for it.
constexpr auto kAwake = 500us;
/// Between two times around, some 3 us; without callbacks to be called some 10.
constexpr uint32_t kPauses = 64, kPausesWithoutCallbacks = 256;
constexpr std::chrono::milliseconds kLookAtDeviceEvery = 10ms, kReportEvery = 1s;

} // namespace

void ResidentDaemon::keep() {
  for (;;) {
    uint32_t pauses = kPauses;
    {
      std::unique_lock lock(mutex);
      if (isOver)
        return waitingOnDevices().setHeld(options.device, this, 0);
      // Soon after a submission it goes on polling for callbacks and tenants at work; else it
      // sleeps.
      const bool isAtWork = isAnyAtWork();
      if ((numCallbacks == 0 && !isAtWork) || Clock::now() - lastSubmission > kAwake)
        changed.wait_for(lock, waiting.empty() && !isAtWork ? kIdlePause : kBusyPause);
      if (isOver)
        continue;
      if (numCallbacks == 0)
        pauses = kPausesWithoutCallbacks;
      isKeeping = true;
      keepingSince = Clock::now();
    }
    keepOnce();
    {
      std::lock_guard lock(mutex);
      isKeeping = false;
      changed.notify_all();
    }
    for (; pauses != 0; --pauses)
      relax(); // those who start calls and wait for them need the same locks
    yieldProcessor();
  }
}

void ResidentDaemon::keepOnce() {
  settleComplete();
  if (options.isStrict)
    heldOnDevice.sweep(); // perhaps nobody need stay any more
  for (Tenant *tenant : allTenants()) {
    std::function<void()> afterwards;
    callTenant(*tenant, [&] { afterwards = tenant->comeBy(); });
    if (afterwards)
      afterwards();
  }
  noteBegun();
  countHeldStreams();
  lookAtDevice();
  if (!failure().ok())
    return breakDown();
  if (isHolding || mustStop())
    return stopAndLook();
  if (!side->anyOpen())
    return;
  // They have left, perhaps because nothing moves; somebody may have started them again. A lookout
  // speaks up now and then: the same words are no second look.
  const uint64_t starts = side->starts(), published = side->publishedAt();
  const bool isNew = side->hasLookout() ? published != lookedAtPublished
                                        : starts != lookedAtStart || side->hasQuit();
  if (isNew) {
    lookedAtStart = starts;
    lookedAtPublished = published;
    lookAtWaits();
  }
  reportLongWaits();
  side->restartIfOpen();
}

void ResidentDaemon::settleComplete() {
  std::vector<uint64_t> complete;
  {
    std::lock_guard lock(mutex);
    for (const auto &[request, open] : waiting)
      if (isComplete(request) && !open.isReleased)
        complete.push_back(request);
  }
  for (uint64_t request : complete)
    (void)settle(request).ok();
}

/// Streams may come late to what was submitted: its time begins when they do.
void ResidentDaemon::noteBegun() {
  const auto now = Clock::now();
  bool hasAnyBegun = false;
  {
    std::lock_guard lock(mutex);
    for (auto &[request, open] : waiting)
      if (!open.hasBegun && side->isReached(request)) {
        hasAnyBegun = open.hasBegun = true;
        open.since = now;
        open.deadline = open.timeout < kNoDeadline ? now + open.timeout : Clock::time_point::max();
      }
  }
  if (hasAnyBegun && !side->hasLookout())
    side->startIfQuit();
}

/// Those that have been held for some time.
void ResidentDaemon::countHeldStreams() {
  uint32_t held = 0;
  {
    const auto before = Clock::now() - kHeldForLong;
    std::lock_guard lock(mutex);
    for (const auto &[request, open] : waiting)
      held += open.hasBegun && open.since < before ? open.streams.size() : 0;
  }
  if (held != heldStreams)
    waitingOnDevices().setHeld(options.device, this, held);
  heldStreams = held;
}

/// With the lock.
bool ResidentDaemon::isAnyAtWork() const {
  return std::ranges::any_of(tenants, [](const auto &entry) { return entry.first->hasWork(); });
}

bool ResidentDaemon::mustStop() const {
  const auto now = Clock::now();
  // A lookout says so without being stopped; another one might not get round to beginning, and
  // while streams wait none of the next might.
  const bool isTold = side->hasLookout() || heldOnDevice.count() != 0;
  std::lock_guard lock(mutex);
  if (marksState != Marks::Off && marksState != Marks::On)
    return true;
  for (const auto &[tenant, isLeaving] : tenants)
    if (!isTold && tenant->isAsked())
      return true;
  return std::ranges::any_of(waiting, [&](const auto &entry) {
    const Waiting &open = entry.second;
    return open.deadline < now || open.tenant->hasFailed() || tenants.at(open.tenant);
  });
}

void ResidentDaemon::stopAndLook() {
  side->hold();
  bool areOut = awaitGone(kUsualLeave);
  if (!areOut) {
    releaseLateStreams();
    areOut = awaitGone(kLeavePatience);
  }
  if (!areOut) {
    // They have not begun: something else has all multiprocessors. Nobody fails for that. Who asks
    // learns what was last known; what is late makes its communicator fail; and it is taken out
    // when they have come and gone, for until then they may still take it up.
    settleComplete();
    lookAtWaits();
    endLate();
    turnMarksOff({StatusCode::Timeout, "the resident daemon of CUDA device " +
                                           std::to_string(options.device) +
                                           " gets no multiprocessor: other kernels have them all"});
    isHolding = mustStop();
    if (!isHolding)
      side->resume();
    return;
  }
  settleComplete();
  lookAtWaits();
  endLate();
  withdrawFailed();
  turnMarksNow();
  isHolding = false;
  side->resume();
}

/// Held streams may keep executors from beginning, so from leaving.
/// Those of what is late or has failed need not be held any longer.
void ResidentDaemon::releaseLateStreams() {
  for (Tenant *tenant : allTenants())
    callTenant(*tenant, [&] { releaseLateStreamsOf(*tenant); });
}

void ResidentDaemon::releaseLateStreamsOf(Tenant &tenant) {
  endLateOf(tenant);
  std::lock_guard lock(mutex);
  auto found = tenants.find(&tenant);
  if (found == tenants.end() || (!tenant.hasFailed() && !found->second))
    return;
  for (auto &[request, open] : waiting)
    if (open.isGated && open.tenant == &tenant && !open.isReleased) {
      open.isReleased = true;
      side->releaseStream(request);
    }
}

void ResidentDaemon::lookAfter(Tenant &tenant) {
  {
    std::lock_guard lock(mutex);
    if (!isKeeping || Clock::now() - keepingSince < kUsualKeeping)
      return;
  }
  releaseLateStreamsOf(tenant);
}

Status ResidentDaemon::badEndOf(const Waiting &open) const {
  const Status outcome = open.tenant->failure();
  return outcome.ok() ? Status(StatusCode::Aborted, "the communicator is being destroyed")
                      : outcome;
}

/// Errors that stay, as after an access of somebody's kernel to where no memory is: nothing of this
/// process is executed on the device any more.
void ResidentDaemon::lookAtDevice() {
  const auto now = Clock::now();
  if (now < nextLookAtDevice)
    return;
  nextLookAtDevice = now + kLookAtDeviceEvery;
  OnDevice on(options.device);
  // An error of the context that stays is the answer of every call, so any one finds it.
  const cudaError_t state = cudaStreamQuery(copies);
  if (state == cudaSuccess || state == cudaErrorNotReady)
    return;
  Status broken =
      toStatus(state, ("CUDA device " + std::to_string(options.device) +
                       " of this process executes nothing any more, after an error of some kernel "
                       "of the process, perhaps not of OCCL's")
                          .c_str());
  std::lock_guard lock(mutex);
  if (failed.ok())
    failed = std::move(broken);
}

/// Each once: who waits for whom, as far as is known.
void ResidentDaemon::reportLongWaits() {
  const auto now = Clock::now();
  if (now < nextReport)
    return;
  nextReport = now + kReportEvery;
  // Tenants are called without the lock: they may ask this daemon for its waits.
  std::vector<std::pair<Tenant *, InvocationName>> late;
  {
    std::lock_guard lock(mutex);
    for (auto &[request, open] : waiting)
      if (open.hasBegun && !open.isReported && now - open.since > longWait()) {
        open.isReported = true;
        late.emplace_back(open.tenant, open.invocation);
      }
  }
  for (const auto &[tenant, invocation] : late)
    callTenant(*tenant, [&] { tenant->reportLate(invocation); });
}

/// Unless it has gone meanwhile.
void ResidentDaemon::callTenant(Tenant &tenant, const std::function<void()> &call) {
  std::lock_guard isCalling(calling);
  {
    std::lock_guard lock(mutex);
    if (!tenants.contains(&tenant))
      return;
  }
  call();
}

/// The daemon has failed: so does everybody who has something open here.
void ResidentDaemon::breakDown() {
  // First executors and tenants, then the requests, then, without the lock, their callbacks.
  side->abort();
  const Status cause = failure();
  for (Tenant *tenant : allTenants())
    callTenant(*tenant, [&] { tenant->fail(cause); });
  std::vector<std::pair<uint64_t, Callback>> calls;
  {
    std::lock_guard lock(mutex);
    while (!waiting.empty()) {
      const uint64_t request = waiting.begin()->first;
      if (waiting.begin()->second.isGated)
        side->releaseStream(request);
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
    callTenant(*tenant, [&] { tenant->look(waitsOf(*tenant)); });
}

void ResidentDaemon::endLate() {
  for (Tenant *tenant : allTenants())
    callTenant(*tenant, [&] { endLateOf(*tenant); });
}

void ResidentDaemon::endLateOf(Tenant &tenant) {
  InvocationName late;
  bool isLate = false;
  {
    std::lock_guard lock(mutex);
    for (const auto &[request, open] : waiting)
      if (open.tenant == &tenant && open.deadline < Clock::now() && !isLate) {
        isLate = true;
        late = open.invocation;
      }
  }
  if (isLate && !tenant.hasFailed())
    tenant.endLate(late, waitsOf(tenant));
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
      const Status outcome = badEndOf(open->second);
      // In its stream: before the executors that are started next.
      Status cleared =
          toStatus(cudaMemsetAsync(&board->slots[request % kWindow], 0, offsetof(Slot, words),
                                   streams[current.load(std::memory_order_relaxed)]),
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
