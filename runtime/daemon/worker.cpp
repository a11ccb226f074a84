#include "runtime/daemon/worker.h"

#include <system_error>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

constexpr auto kLinger = 2ms;
/// Lingers without a submission until the worker sleeps for good.
constexpr uint32_t kQuietLingers = 3;
/// Nothing depends on it: a ring ends every sleep that matters.
constexpr auto kLongestSleep = 200ms;

} // namespace

StatusOr<std::unique_ptr<Worker>> Worker::start(Core &core, Watchdog &watchdog) {
  std::unique_ptr<Worker> worker(new Worker(core, watchdog));
  try {
    worker->thread = std::thread([self = worker.get()] { self->loop(); });
  } catch (const std::system_error &error) {
    return systemError("starting an executor thread", error.code().value());
  }
  return worker;
}

Worker::~Worker() {
  core.workBell.ringAll();
  core.fabric->own().header().doorbell.ringAll();
  if (thread.joinable())
    thread.join();
}

bool Worker::hasWork() const {
  return core.open.load(std::memory_order_acquire) != 0 &&
         core.helpers.load(std::memory_order_acquire) == 0;
}

void Worker::loop() {
  while (!core.stopping.load(std::memory_order_acquire)) {
    executor.runUntil([&] { return !hasWork() || core.stopping.load(std::memory_order_acquire); });
    uint64_t submissions = core.stats.submitted.load(std::memory_order_relaxed);
    quietLingers = submissions == seenSubmissions ? quietLingers + 1 : 0;
    seenSubmissions = submissions;
    if (quietLingers < kQuietLingers)
      linger();
    else
      sleepUntilRung();
  }
}

void Worker::linger() {
  uint32_t ticket = core.workBell.quietTicket();
  core.lingering.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Only submissions with a callback ring a lingering worker; such a one may have come before it
  // was seen to linger.
  bool wanted = core.openWithCallback.load(std::memory_order_relaxed) != 0 && hasWork();
  if (!wanted && !core.stopping.load(std::memory_order_acquire))
    core.workBell.sleep(ticket, kLinger);
  core.lingering.fetch_sub(1, std::memory_order_relaxed);
}

void Worker::sleepUntilRung() {
  uint32_t ticket = core.workBell.prepareSleep();
  if (!hasWork() && !core.stopping.load(std::memory_order_acquire))
    core.workBell.sleep(ticket, kLongestSleep);
}

} // namespace occl::daemon
