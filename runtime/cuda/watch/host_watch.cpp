// A thread of each rank that looks at the words of its kernels every two milliseconds.
#include "runtime/cuda/watch/host_watch.h"

#include "runtime/base/long_wait.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/watch/describe_giving_up.h"
#include "runtime/cuda/watch/waiting.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/background_thread.h"

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace occl::cuda {

namespace {

constexpr auto kPeriod = std::chrono::milliseconds(2);

} // namespace

StatusOr<std::unique_ptr<HostWatch>> HostWatch::start(daemon::Fabric &fabric, int device,
                                                      Describing describe) {
  std::unique_ptr<HostWatch> watch(
      new HostWatch(fabric, device, connectionsFrom(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")),
                    std::move(describe)));
  OnDevice on(device);
  Status status = on.status();
  void *pinned = nullptr, *word = nullptr;
  if (status.ok())
    status = toStatus(cudaHostAlloc(&pinned, sizeof(HostWords), cudaHostAllocMapped),
                      "allocating pinned memory");
  if (status.ok()) {
    // Others count the rank's waits from here on.
    watch->words = new (pinned) HostWords;
    waitingOnDevices().add(device, *watch->words);
    status = toStatus(cudaMalloc(&word, sizeof(uint32_t)), "allocating device memory");
  }
  if (status.ok()) {
    watch->hasGivenUp = static_cast<uint32_t *>(word);
    status = clearNow(word, sizeof(uint32_t));
  }
  if (!status.ok())
    return status;
  // The thread comes last, since it looks at all of that.
  try {
    watch->thread = startInBackground([watch = watch.get()] { watch->run(); });
  } catch (const std::system_error &error) {
    return Status(StatusCode::SystemError, std::string("starting a thread: ") + error.what());
  }
  return watch;
}

HostWatch::~HostWatch() {
  // The thread ends first, since it uses the words.
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
  OnDevice on(device);
  if (words)
    waitingOnDevices().remove(*words);
  // Kernels may still store into the words.
  if (isAbandoned)
    return;
  if (hasGivenUp)
    cudaFree(hasGivenUp);
  if (words)
    cudaFreeHost(words);
}

void HostWatch::endAll() { storeShared(&words->abort, 1, std::memory_order_release); }

void HostWatch::run() {
  std::unique_lock lock(mutex);
  while (!isEnding) {
    lock.unlock();
    // After a failure all kernels are to end, and nothing more is looked at.
    if (fabric.failed())
      endWaits();
    else
      look();
    describe.lookAfter();
    lock.lock();
    changed.wait_for(lock, kPeriod, [&] { return isEnding; });
  }
}

/// Kernels leave when they see the word, so nobody need leave a connection for whom they wait for.
void HostWatch::endWaits() {
  endAll();
  if (std::exchange(isWaiting, false))
    waitingOnDevices().setWaiting(*words, 0);
}

/// Kernels wait for the rank. One that has left, or whose process is gone, harms nobody who does
/// not need it.
void HostWatch::failIfGone(uint32_t rank, SteadyClock::time_point now) {
  // One word may be late, so the rank must be named several times.
  if (!fabric.isGone(rank) || !goneRanks.isStillAwaited(rank, now))
    return;
  std::string wait = "rank " + std::to_string(fabric.rank()) + " waits for it";
  if (std::string known = describe.waitFor(rank); !known.empty())
    wait = known;
  fabric.fail({StatusCode::PeerFailed, fabric.describeGone(rank) + "; " + wait});
}

void HostWatch::failIfGivenUp() {
  if (loadShared(&words->givingUp.isValid, std::memory_order_acquire) != 0)
    fabric.fail({codeOf(words->givingUp), describe.givingUp(words->givingUp) + describeDevice()});
}

void HostWatch::look() {
  failIfGivenUp();
  // Of the time since the last look: a kernel that waits says so again.
  uint32_t awaited = loadShared(&words->waitsFor, std::memory_order_acquire);
  const auto now = SteadyClock::now();
  if (awaited != 0)
    lookForLongWaits(awaited - 1, now);
  // The last value is told when the waits are over, too.
  if (awaited != 0 || isWaiting) {
    const uint32_t waiting = longWaits.numWaiting(now);
    isWaiting = waiting != 0;
    waitingOnDevices().setWaiting(*words, waiting);
  }
  if (awaited != 0 && awaited <= fabric.numRanks() && awaited - 1 != fabric.rank())
    failIfGone(awaited - 1, now);
  storeShared(&words->waitsFor, 0, std::memory_order_release);
}

void HostWatch::lookForLongWaits(uint32_t awaited, SteadyClock::time_point now) {
  for (const LongWaits::Found &wait : longWaits.look(*words, awaited, longWait(), now))
    reportLongWait("collective " + describe.collective(wait.place) +
                   " has waited in a stream of rank " + std::to_string(fabric.rank()) + " for " +
                   describeLongWait() + " and goes on; this rank waits for " +
                   describeAwaited(wait, fabric.rank()) + describeDevice());
}

Status HostWatch::checkConnections(bool mayQueueBehindOwn) const {
  // A stream that is held already takes no further connection.
  const Status status =
      cuda::checkConnections(device, waitingOnDevices().waitingNow(device), connections);
  const bool isHeldAlready =
      !status.ok() && mayQueueBehindOwn && waitingOnDevices().waitingNow(*words) != 0;
  return isHeldAlready ? Status() : status;
}

bool HostWatch::mayHoldUp() const {
  return waitingOnDevices().waitingNow(*words) != 0 || !checkConnections(false).ok();
}

/// What keeps things from starting, to follow a report.
std::string HostWatch::describeDevice() const {
  return describeConnections(device, waitingOnDevices().count(device), connections) +
         describeLaunchBlocking(std::getenv("CUDA_LAUNCH_BLOCKING")) +
         describeLazyLoading(std::getenv("CUDA_MODULE_LOADING"));
}

} // namespace occl::cuda
