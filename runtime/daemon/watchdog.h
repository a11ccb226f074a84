// What a rank checks now and then, by whichever executor comes by: deadlines, peers that are gone,
// and, without preemption, cycles. It also publishes what the rank waits for.
#pragma once

#include "runtime/base/clock.h"
#include "runtime/daemon/core.h"
#include "runtime/daemon/deadlock.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::daemon {

/// Looks after one communicator's rank.
class Watchdog {
public:
  /// The name that a collective is known by here: "'name' (id 7)".
  using NameOf = std::function<std::string(uint64_t collective)>;

  Watchdog(Core &core, NameOf nameOf);

  using Clock = SteadyClock;

  /// One round; `now` is the time. Makes the communicator fail if it finds a cause. One thread at a
  /// time.
  void round(Clock::time_point now);

  /// Who waits for whom, on all ranks, one line each; of the other ranks what they published last.
  /// Any thread.
  std::string report();

private:
  void checkDeadlines(Clock::time_point now);
  void checkPeers();
  void checkDeadlock();
  void publishWaits();
  std::vector<transport::WaitSnapshot> readAll() const;
  std::string describe(const RankWait &wait) const;
  std::string describeWaitFor(uint32_t peer);

  Core &core;
  NameOf nameOf;

  // Of the thread that does a round.
  Clock::time_point nextPeerCheck{};
  std::vector<bool> seenLeft; // by rank: had left at the last check, and was waited for
  DeadlockDetector detector;
};

} // namespace occl::daemon
