// What a rank checks now and then, by whichever executor comes by: deadlines, peers that are gone,
// and, without preemption, cycles. It also publishes what the rank waits for.
#pragma once

#include "runtime/observe/report/known_collective.h"
#include "runtime/sched/core.h"
#include "runtime/sync/clock.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::daemon {

/// Looks after one communicator's rank.
class Watchdog {
public:
  /// `lookUp` says what is known of a collective here; `tidy` is called in each round.
  Watchdog(Core &core, insight::LookUp lookUp, std::function<void()> tidy);

  using Clock = SteadyClock;

  /// One round; `now` is the time. Makes the communicator fail if it finds a cause. One thread at a
  /// time.
  void round(Clock::time_point now);

  /// Publishes what the rank waits for now, and that it has, to who has asked. Any thread.
  void publishWaits();

  /// What a wait of this rank is for.
  std::string describe(const transport::WaitEdge &wait) const;

  /// Without preemption: what of another communicator this rank's executors keep to, and what that
  /// waits for; the ranks in it are that communicator's. "" if there is nothing. Any thread.
  std::string describeHolder() const;

private:
  void checkDeadlines(Clock::time_point now);
  void reportLongWaits(Clock::time_point now);
  void checkPeers();
  std::vector<uint64_t> lastLooks() const;
  std::string describeWaitFor(uint32_t peer);

  Core &core;
  insight::LookUp lookUp;
  std::function<void()> tidy;

  // Of the thread that does a round.
  Clock::time_point nextPeerCheck{}, nextReport{};
  Ticks reportedUpTo = 0; // of what was submitted up to then it is said that it takes long
  /// A rank that has left, or whose process is gone.
  struct Gone {
    uint64_t before = 0; // the place's epoch that began after that; 0: it was not seen to be gone
    uint32_t looks = 0;  // that are over, of all who wait for it
  };
  std::vector<Gone> gone; // by rank
};

} // namespace occl::daemon
