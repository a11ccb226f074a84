// A worker thread: executes what nobody waits for, lingers a short time, then sleeps.
#include "runtime/sched/worker.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

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
/// More than the longest sleep of an executor that is stuck.
constexpr auto kNeglect = 50ms;

} // namespace

StatusOr<std::unique_ptr<Worker>> Worker::start(Device &device, bool isFirst) {
  std::unique_ptr<Worker> worker(new Worker(device, isFirst));
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

bool Worker::hasWork() {
  if (!device.submissions.areOpen(std::memory_order_acquire))
    return false;
  if (device.helpers.load(std::memory_order_acquire) == 0)
    return true;
  // A worker that stays beside helpers leaves once it is stuck and others have looked.
  return stays && !(executor.isStuck() && othersLook());
}

bool Worker::isCalled() const {
  return !isFirst && device.calls.load(std::memory_order_acquire) != seenCalls;
}

/// Whether another executor has claimed something since this one has come.
bool Worker::othersLook() {
  return device.board.countClaims() - executor.countClaims() != othersClaims;
}

void Worker::join() {
  const bool takesOver = device.helpers.load(std::memory_order_acquire) == 0;
  // Workers but the first go on with work begun without helpers, also when helpers come.
  stays = isNeglected || isCalled() || (takesOver && !isFirst);
  isNeglected = false;
  seenCalls = device.calls.load(std::memory_order_acquire);
  if (!stays)
    return;
  executor.restart();
  othersClaims = device.board.countClaims() - executor.countClaims();
}

bool Worker::findsMore() {
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
    join();
    executor.runUntil([&] {
      bool ends = !hasWork() || device.stopping.load(std::memory_order_acquire);
      hadWork |= !ends;
      return ends;
    });
    stays = false;
    if (hadWork && findsMore())
      continue;
    // Others may need what it has enabled; then it rests, the longer the quieter it is.
    device.handOver();
    uint64_t requested = device.countRequested();
    quietLingers = requested == seenRequested ? quietLingers + 1 : 0;
    seenRequested = requested;
    // Dekker with callWorkers: counted as resting, then the look at the calls.
    device.resting.fetch_add(isFirst ? 0 : 1, std::memory_order_seq_cst);
    if (quietLingers < kQuietLingers)
      linger();
    else
      sleepUntilRung();
    device.resting.fetch_sub(isFirst ? 0 : 1, std::memory_order_relaxed);
  }
}

void Worker::linger() {
  uint32_t ticket = device.workBell.quietTicket();
  device.lingering.fetch_add(1, std::memory_order_seq_cst);
  threadFence(std::memory_order_seq_cst);
  // Only submissions with a callback ring a lingering worker; such a one may have come before it
  // was seen to linger.
  bool wanted =
      isCalled() || (device.openWithCallback.load(std::memory_order_relaxed) != 0 && hasWork());
  if (!wanted && !device.stopping.load(std::memory_order_acquire))
    device.workBell.nap(ticket, kLinger);
  device.lingering.fetch_sub(1, std::memory_order_relaxed);
}

void Worker::sleepUntilRung() {
  // The ticket comes first, so that a ring after the look ends the sleep.
  uint32_t ticket = device.workBell.prepareSleep();
  if (!hasWork() && !isCalled() && !device.stopping.load(std::memory_order_acquire))
    sleepWhileOthersLook(ticket);
}

/// What is open has helpers. If nobody has rung, they have had all the time for a look at each
/// task.
void Worker::sleepWhileOthersLook(uint32_t ticket) {
  if (!device.submissions.areOpen()) {
    device.workBell.sleep(ticket, kLongestSleep);
    return;
  }
  const bool hadSubmissions = device.board.hasSubmissions();
  const scheduler::Round round = device.board.beginRound();
  device.workBell.sleep(ticket, kNeglect);
  if (device.workBell.quietTicket() == ticket)
    isNeglected = (hadSubmissions && device.board.hasSubmissions()) || !device.board.isOver(round);
}

} // namespace occl::daemon
