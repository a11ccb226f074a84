// A device's own executor thread: runs what nobody waits for.
#pragma once

#include "runtime/sched/device.h"
#include "runtime/sched/executor.h"
#include "runtime/sync/thread.h"

#include <memory>

namespace occl::daemon {

/// A thread of the device inside wait() runs what is open, so that a hand-over to a worker would
/// only cost time: workers then stand down. They linger, asleep for a short time, unwoken by
/// submissions that someone is going to wait for. If one finds such a submission still open and
/// nobody waiting, it takes over. With nothing to do it sleeps until it is rung. After what nobody
/// waited for, such as what has a callback, more of it is likely: then it looks for that a short
/// time, between offers of the processor, before it sleeps.
///
/// Who waits is in the place of the first worker only. The others go on with what they have begun
/// until they are stuck, and come when they are called (Device::callWorkers). And any worker comes
/// when what is open is neglected: nobody has looked at some task for kNeglect, as who waits does
/// not get the processor, or is inside a callback. It stays until it is stuck and somebody else has
/// looked meanwhile.
class Worker {
public:
  /// SystemError if there is no thread to be had.
  static StatusOr<std::unique_ptr<Worker>> start(Device &device, bool isFirst);
  /// Device::stopping must have been set.
  ~Worker();

private:
  Worker(Device &device, bool isFirst) : device(device), isFirst(isFirst), executor(device) {}

  void loop();
  void join();
  bool hasWork();
  bool isCalled() const;
  bool othersLook();
  bool findsMore();
  void linger();
  void sleepUntilRung();
  void sleepWhileOthersLook(uint32_t ticket);

  Device &device;
  const bool isFirst;
  Executor executor;
  Thread thread;
  uint64_t seenRequested = 0;
  uint32_t quietLingers = 0;
  uint32_t seenCalls = 0;
  bool isNeglected = false;  // what is open
  bool stays = false;        // although there are helpers
  uint64_t othersClaims = 0; // when it came
};

} // namespace occl::daemon
