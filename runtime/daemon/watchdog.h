// What a rank checks now and then, by whichever executor comes by: deadlines, peers that are gone,
// and, without preemption, cycles. It also publishes what the rank waits for.
#pragma once

#include "runtime/daemon/core.h"
#include "runtime/daemon/deadlock.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace occl::daemon {

/// Thread safety: any.
class Watchdog {
public:
  /// The name that a collective is known by here: "'name' (id 7)".
  using NameOf = std::function<std::string(uint64_t collective)>;

  Watchdog(Core &core, NameOf nameOf);

  /// Does its rounds if some time has passed since the last ones; cheap if not. Makes the
  /// communicator fail if it finds a cause.
  void tick();

  /// Who waits for whom, on all ranks, one line each; of the other ranks what they published last.
  std::string report();

private:
  using Clock = std::chrono::steady_clock;

  void checkDeadlines(Clock::time_point now);
  void checkPeers();
  void checkDeadlock();
  std::vector<transport::WaitSnapshot> readAll() const;
  std::string describe(const RankWait &wait) const;
  std::string describeWaitFor(uint32_t peer);

  Core &core;
  NameOf nameOf;
  std::atomic<Clock::rep> nextTick{0};

  std::mutex mutex; // one round at a time; guards all below
  Clock::time_point nextPeerCheck{};
  std::vector<bool> seenLeft; // by rank: had left at the last check, and was waited for
  DeadlockDetector detector;
};

} // namespace occl::daemon
