// One rank's daemon: takes submissions, runs them in whatever order the peers allow, tells who
// waits.
#pragma once

#include "runtime/daemon/admission.h"
#include "runtime/daemon/core.h"
#include "runtime/daemon/watchdog.h"
#include "runtime/daemon/worker.h"

#include <memory>
#include <string>
#include <vector>

namespace occl::daemon {

/// Thread safety: any. After a failure every function returns it at once.
class Daemon {
public:
  /// The fabric is connected.
  static StatusOr<std::unique_ptr<Daemon>> start(std::unique_ptr<Fabric> fabric,
                                                 const Options &options);
  /// Waits until nothing is in flight: that takes no longer than the deadlines of what is. Then
  /// tells the peers that this rank has left, and stops the workers. Not from a callback.
  ~Daemon();

  uint32_t rank() const { return core.fabric->rank(); }
  uint32_t numRanks() const { return core.fabric->numRanks(); }

  Status add(CollectiveSpec spec);
  Status remove(uint64_t id);
  StatusOr<RequestId> submit(uint64_t id, const void *input, void *output,
                             const Callback &callback);
  /// Runs this rank's tasks on the calling thread until the request is complete; its result.
  Status wait(RequestId request);
  /// InProgress, or as wait(). Runs each task at most once, without polling.
  Status test(RequestId request);

  /// Ends everything in flight on all ranks with this cause, unless there is one already. Always
  /// returns.
  void fail(const Status &cause);
  /// Why the communicator has failed; Success if it has not.
  Status failure() const { return core.fabric->failure(); }

  const Stats &stats() const { return core.stats; }
  std::string report() { return watchdog.report(); }

private:
  Daemon(std::unique_ptr<Fabric> fabric, const Options &options);

  void wakeFor(const Callback &callback);
  void leaveWait();
  Status take(RequestId request);

  Core core;
  Admission admission;
  Watchdog watchdog;
  std::vector<std::unique_ptr<Worker>> workers;
};

} // namespace occl::daemon
