// A host scheduler: its workers and members, how they are woken, and the watchdog's rounds.
#include "runtime/sched/device.h"

#include "runtime/sched/core.h"
#include "runtime/sched/policy/calibration.h"
#include "runtime/sched/watchdog.h"
#include "runtime/sched/worker.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <new>
#include <utility>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

constexpr auto kTickPeriod = 5ms;
/// So many times as long as one takes lie between two at least.
constexpr int kTicksApart = 20;

} // namespace

Device::Device(const DeviceOptions &options, std::shared_ptr<bootstrap::SharedBell> shared)
    : options(options), sharedBell(std::move(shared)), bell(sharedBell->bell()),
      board(options.order, options.preemption),
      limits(scheduler::budgetLimits(scheduler::flagRoundTrip(), options.spin)),
      budgetInForce(options.budget.value_or(scheduler::BudgetPolicy::FrontHeavy)) {
  if (!options.preemption)
    cycles.emplace(board, *sharedBell);
}

StatusOr<std::shared_ptr<Device>> Device::start(const DeviceOptions &options,
                                                std::shared_ptr<bootstrap::SharedBell> bell) {
  std::shared_ptr<Device> device(new Device(options, std::move(bell)));
  Status started = device->startWorkers();
  if (!started.ok())
    return started;
  return device;
}

Status Device::startWorkers() {
  workers.reserve(options.workers); // a worker goes with its device alone
  for (uint32_t w = 0; w < options.workers; ++w) {
    auto worker = Worker::start(*this, w == 0);
    if (!worker.ok())
      return worker.status();
    workers.push_back(std::move(*worker));
  }
  return {};
}

void Device::callWorkers() {
  // The call is counted before the look at resting workers, which look the other way round.
  calls.fetch_add(1, std::memory_order_seq_cst);
  fenceAfterUpdate();
  if (resting.load(std::memory_order_relaxed) != 0)
    workBell.ringAll();
}

Device::~Device() {
  stopping.store(true, std::memory_order_seq_cst);
  workers.clear();
}

void Device::attach(Core &core, Watchdog &watchdog) {
  std::lock_guard lock(mutex);
  members.reserve(members.size() + 1); // what may throw comes first
  board.attach(core.place);
  members.push_back({&core, &watchdog});
  // The ranks of a communicator that has gone are still there, so this is never taken back.
  if (options.spin.count() == 0 && !options.budget &&
      core.fabric->numRanks() > Thread::hardware_concurrency())
    budgetInForce.store(scheduler::BudgetPolicy::NoPolling, std::memory_order_relaxed);
}

void Device::detach(Core &core) {
  {
    // No round looks at the core from here on.
    std::lock_guard lock(mutex);
    std::erase_if(members, [&](const Attached &member) { return member.core == &core; });
  }
  board.detach(core.place);
}

uint64_t Device::countRequested() const {
  std::lock_guard lock(mutex);
  uint64_t count = 0;
  for (const Attached &member : members)
    count += member.core->stats.requested.load(std::memory_order_relaxed) +
             member.core->stats.groups.load(std::memory_order_relaxed);
  return count;
}

void Device::wakeFor(bool hasCallback) {
  bell.ringFenced(); // executors that are stuck with something else
  // A thread inside a wait executes it.
  if (helpers.load(std::memory_order_relaxed) != 0)
    return;
  // Lingering workers are woken for callbacks alone: for anything else somebody will wait.
  if (hasCallback && lingering.load(std::memory_order_relaxed) != 0)
    workBell.ringAll();
  else
    workBell.ringFenced();
}

void Device::tick() {
  auto now = Clock::now();
  if (now.time_since_epoch().count() < nextTick.load(std::memory_order_relaxed))
    return;
  // Settling runs callbacks, which may call back into this scheduler, so the lock is free.
  std::vector<Core *> failed;
  try {
    round(now, failed);
  } catch (const std::bad_alloc &) { // the next round looks at what this one has not
  }
  for (Core *core : failed) {
    core->settleFailure();
    core->place.unpin();
  }
}

/// Pins the cores that have failed and are not settled, and adds them to `failed`.
void Device::round(Clock::time_point now, std::vector<Core *> &failed) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock())
    return;
  // Other threads do not try before the next period.
  nextTick.store((now + kTickPeriod).time_since_epoch().count(), std::memory_order_relaxed);
  for (const Attached &member : members) {
    try {
      member.watchdog->round(now);
    } catch (const std::bad_alloc &) { // the next round looks again; the others are looked at
    }
    if (member.core->fabric->failed() && member.core->hasOpen()) {
      // Pinned under the lock, so that it is not detached before it is settled.
      failed.push_back(member.core); // which may throw
      member.core->place.pin();
    }
  }
  if (cycles)
    cycles->round(members);
  // It looks at every open task, under the board's lock: never for more than a small part of the
  // time, however many there are. Deadlines are as late then.
  const auto end = Clock::now();
  nextTick.store((end + std::max<Clock::duration>(kTickPeriod, kTicksApart * (end - now)))
                     .time_since_epoch()
                     .count(),
                 std::memory_order_relaxed);
}

} // namespace occl::daemon
