// Watches a rank's kernels from the host: ends them when the communicator fails, and makes it fail
// when one of them gives up or waits for a rank that is gone.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/cuda/tables/bound.h"
#include "runtime/cuda/watch/watched_waits.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace occl::cuda {

class HostWatch {
public:
  /// In words, by any thread: what a thread block that gave up stood at; and what else is known to
  /// wait for a rank, "" if nothing does.
  struct Describing {
    std::function<std::string(const GivingUp &)> givingUp;
    /// The call whose shape has that place.
    std::function<std::string(uint32_t place)> collective;
    std::function<std::string(uint32_t rank)> waitFor;
    /// Called now and then: what else of the rank needs a thread that no call of CUDA holds up.
    std::function<void()> lookAfter;
  };
  /// SystemError.
  static StatusOr<std::unique_ptr<HostWatch>> start(daemon::Fabric &fabric, int device,
                                                    Describing describe);
  /// Ends its thread; nothing of this rank is executed any more.
  ~HostWatch();

  /// Of a collective's kernels.
  WaitBound bound(uint32_t place, uint64_t timeoutNanoseconds) const {
    return {words, hasGivenUp, timeoutNanoseconds, place};
  }
  /// The communicator fails if one of its kernels has given up, which is known to any thread whose
  /// stream has come behind that kernel: before this watch's thread has looked.
  void failIfGivenUp();
  /// Whether a call that waits in a stream would leave a connection of the device for what others
  /// wait for; Again: it would not, as far as kernels have said that they wait, which takes them
  /// some milliseconds. mayQueueBehindOwn: the stream is that of the rank's last call, so if calls
  /// of the rank wait it is held already.
  Status checkConnections(bool mayQueueBehindOwn) const;
  /// Whether the rank's kernels have said that they wait, or so many on the device that no
  /// connection may be left for what the device is asked.
  bool mayHoldUp() const;
  /// Makes everything that waits leave.
  void endAll();
  /// Something of this rank may still be executed: what kernels have of it is never freed.
  void abandon() { isAbandoned = true; }

private:
  HostWatch(daemon::Fabric &fabric, int device, uint32_t connections, Describing describe)
      : fabric(fabric), device(device), connections(connections), describe(std::move(describe)),
        goneRanks(fabric.numRanks()), longWaits(fabric.rank()) {}
  void run();
  void endWaits();
  void look();
  void failIfGone(uint32_t rank, SteadyClock::time_point now);
  void lookForLongWaits(uint32_t awaited, SteadyClock::time_point now);
  std::string describeDevice() const;

  daemon::Fabric &fabric;
  const int device;
  const uint32_t connections; // of this process with the device
  const Describing describe;
  HostWords *words = nullptr; // the same address here and there
  uint32_t *hasGivenUp = nullptr;
  GoneRanks goneRanks;    // of its thread
  LongWaits longWaits;    // of its thread
  bool isWaiting = false; // of its thread: what waitingOnDevices() has been told
  Mutex mutex;
  ConditionVariable changed;
  bool isEnding = false, isAbandoned = false;
  Thread thread;
};

} // namespace occl::cuda
