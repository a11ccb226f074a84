#include "runtime/daemon/worker.h"

#include "runtime/base/atomic.h"
#include "runtime/base/thread.h"

#include <system_error>

namespace occl::daemon {

namespace {

using namespace std::chrono_literals;

constexpr auto kLinger = 2ms;
/// How long a worker that had something to do looks for more: some times what waking it takes.
constexpr auto kLookOut = 20us;
/// Lingers without a submission until the worker sleeps for good.
constexpr uint32_t kQuietLingers = 3;
/// Nothing depends on it: a ring ends every sleep that matters.
constexpr auto kLongestSleep = 200ms;

} // namespace

StatusOr<std::unique_ptr<Worker>> Worker::start(Device &device) {
  std::unique_ptr<Worker> worker(new Worker(device));
  try {
    worker->thread = Thread([self = worker.get()] { self->loop(); });
  } catch (const std::system_error &error) {
    return systemError("starting an executor thread", error.code().value());
  }
  return worker;
}

Worker::~Worker() {
  device.workBell.ringAll();
  device.bell.ringAll();
  if (thread.joinable())
    thread.join();
}

bool Worker::hasWork() const {
  return device.submissions.areOpen(std::memory_order_acquire) &&
         device.helpers.load(std::memory_order_acquire) == 0;
}

bool Worker::findsMore() const {
  auto end = SteadyClock::now() + kLookOut;
  do {
    if (hasWork() || device.stopping.load(std::memory_order_acquire))
      return true;
    yieldProcessor();
  } while (SteadyClock::now() < end);
  return false;
}

void Worker::loop() {
  while (!device.stopping.load(std::memory_order_acquire)) {
    bool hadWork = false;
    executor.runUntil([&] {
      bool ends = !hasWork() || device.stopping.load(std::memory_order_acquire);
      hadWork |= !ends;
      return ends;
    });
    if (hadWork && findsMore())
      continue;
    device.handOver();
    uint64_t requested = device.countRequested();
    quietLingers = requested == seenRequested ? quietLingers + 1 : 0;
    seenRequested = requested;
    if (quietLingers < kQuietLingers)
      linger();
    else
      sleepUntilRung();
  }
}

void Worker::linger() {
  uint32_t ticket = device.workBell.quietTicket();
  device.lingering.fetch_add(1, std::memory_order_seq_cst);
  threadFence(std::memory_order_seq_cst);
  // Only submissions with a callback ring a lingering worker; such a one may have come before it
  // was seen to linger.
  bool wanted = device.openWithCallback.load(std::memory_order_relaxed) != 0 && hasWork();
  if (!wanted && !device.stopping.load(std::memory_order_acquire))
    device.workBell.nap(ticket, kLinger);
  device.lingering.fetch_sub(1, std::memory_order_relaxed);
}

void Worker::sleepUntilRung() {
  uint32_t ticket = device.workBell.prepareSleep();
  if (!hasWork() && !device.stopping.load(std::memory_order_acquire))
    device.workBell.sleep(ticket, kLongestSleep);
}

} // namespace occl::daemon
