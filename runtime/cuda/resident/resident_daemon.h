// A rank's resident daemon: a kernel that stays on its device as long as there is something to do,
// and executes collectives submitted in any order.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/device_collective.h"
#include "runtime/cuda/resident/kernel.h"
#include "runtime/cuda/resident/resident_collective.h"
#include "runtime/cuda/resident/submission_side.h"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace occl::cuda::resident {

struct DaemonOptions {
  int device = 0;
  /// What the collectives need.
  const Kernel *kernel = nullptr;
  Settings settings;
  /// Collectives registered at once.
  uint32_t maxCollectives = 1024;
  /// A submission that is not complete after so long fails the daemon.
  std::chrono::milliseconds timeout{30000};
};

/// Thread safety: any. No call but make(), add() and the destructor waits for the device. The
/// kernel runs on a stream of its own, of the highest priority, that no other stream waits for.
class ResidentDaemon {
public:
  /// Called once, by a thread of the daemon, which calls nobody else meanwhile.
  using Callback = std::function<void(const Status &)>;

  /// InvalidArgument or SystemError.
  static StatusOr<std::unique_ptr<ResidentDaemon>> make(const DaemonOptions &options);
  /// What is open fails. Waits for the kernel to leave, some seconds at most.
  ~ResidentDaemon();

  /// The number of the collective for submit(). Its memory must stay as long as the daemon.
  StatusOr<uint32_t> add(const DeviceCollective &collective);

  /// The request. Again if the window is full; the daemon's failure if it has failed. Buffers are
  /// memory of the device; what writes the input must be complete.
  StatusOr<uint64_t> submit(uint32_t collective, const void *input, void *output,
                            uint8_t priority = 0, Callback callback = {});
  bool isComplete(uint64_t request) const { return side->isComplete(request); }
  /// Timeout if it takes longer: the request stays open. Or the daemon's failure.
  Status wait(uint64_t request, std::chrono::milliseconds atMost);
  /// Waits until the kernel has left because there was nothing to do, or nothing moved.
  Status waitForQuit(std::chrono::milliseconds atMost) const;

  /// Everything open fails with this, and the kernel leaves for good. Returns at once.
  void abort(const Status &cause);
  /// Success as long as it has not failed.
  Status failure() const;

  /// Who waits for what, a line for each blocked thread block: as of when the executors last found
  /// that nothing moves.
  std::string describeWaits() const;
  std::vector<OpenTask> openTasks() const { return side->openTasks(); }
  /// How often the kernel was started.
  uint64_t starts() const { return side->starts(); }
  /// As of when the kernel last left.
  uint64_t total(Count what) const { return side->total(what); }

private:
  using Clock = SteadyClock;
  struct Waiting {
    Clock::time_point since;
    uint32_t collective = 0;
    Callback callback;
  };

  explicit ResidentDaemon(const DaemonOptions &options) : options(options) {}
  Status start();
  Status allocate();
  Status upload(void *to, const void *from, uint64_t bytes);
  void launch(uint64_t generation);
  void keep();
  void keepOnce();
  bool runCallbacks();
  void checkDeadline();

  const DaemonOptions options;
  cudaStream_t stream = nullptr, copies = nullptr;
  HostPage *page = nullptr;
  Board *board = nullptr;                    // of the device
  ResidentCollective *collectives = nullptr; // of the device
  std::unique_ptr<SubmissionSide> side;

  mutable Mutex mutex; // guards all below
  ConditionVariable changed;
  bool isOver = false;
  Status failed;
  std::vector<uint64_t> nextOrdinals;  // by collective
  std::vector<uint32_t> numBlocks;     // by collective
  std::map<uint64_t, Waiting> waiting; // by request
  Thread keeper;
};

} // namespace occl::cuda::resident
