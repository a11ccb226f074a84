// A device's own executor thread: runs what nobody waits for.
#pragma once

#include "runtime/base/thread.h"
#include "runtime/daemon/device.h"
#include "runtime/daemon/executor.h"

#include <memory>

namespace occl::daemon {

/// While some thread of the device is inside wait(), it runs everything, and a worker would only
/// cost a hand-over: the worker then lingers, asleep for a short time, unwoken by submissions that
/// someone is going to wait for. If it finds such a submission still open and nobody waiting, it
/// takes over. With nothing to do it sleeps until it is rung. After what nobody waited for, such as
/// what has a callback, more of it is likely: then it looks for that a short time, between offers
/// of the processor, before it sleeps.
class Worker {
public:
  /// SystemError if there is no thread to be had.
  static StatusOr<std::unique_ptr<Worker>> start(Device &device);
  /// Device::stopping must have been set.
  ~Worker();

private:
  explicit Worker(Device &device) : device(device), executor(device) {}

  void loop();
  bool hasWork() const;
  bool findsMore() const;
  void linger();
  void sleepUntilRung();

  Device &device;
  Executor executor;
  Thread thread;
  uint64_t seenRequested = 0;
  uint32_t quietLingers = 0;
};

} // namespace occl::daemon
