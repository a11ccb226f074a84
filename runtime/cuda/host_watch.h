// Watches a rank's kernels from the host: ends them when the communicator fails, and makes it fail
// when one of them gives up or waits for a rank that is gone.
#pragma once

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/bound.h"
#include "runtime/daemon/fabric.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace occl::cuda {

class HostWatch {
public:
  /// describe: what a thread block that gave up stood at; any thread. SystemError.
  static StatusOr<std::unique_ptr<HostWatch>>
  start(daemon::Fabric &fabric, int device, std::function<std::string(const GivingUp &)> describe);
  /// Ends its thread; nothing of this rank is executed any more.
  ~HostWatch();

  /// Of a collective's kernels.
  WaitBound bound(uint32_t slot, uint64_t timeoutNanoseconds) const {
    return {words, hasGivenUp, timeoutNanoseconds, slot};
  }
  /// Makes everything that waits leave.
  void endAll();

private:
  HostWatch(daemon::Fabric &fabric, int device,
            std::function<std::string(const GivingUp &)> describe)
      : fabric(fabric), device(device), describe(std::move(describe)) {}
  void run();
  void look();

  daemon::Fabric &fabric;
  const int device;
  const std::function<std::string(const GivingUp &)> describe;
  HostWords *words = nullptr; // the same address here and there
  uint32_t *hasGivenUp = nullptr;
  Mutex mutex;
  ConditionVariable changed;
  bool isEnding = false;
  Thread thread;
};

} // namespace occl::cuda
