// A call that waits for room. Nothing of it is in flight, so nobody else looks after it: it finds
// out by itself when waiting is in vain, and says that it waits.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/clock.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace occl::daemon {

class Admission;
struct Core;
struct Submission;

/// Of one call, from its first refusal until it is admitted or given up. Used by its thread.
class RoomWait {
public:
  RoomWait(Core &core, Admission &admission, const Submission &call)
      : core(core), admission(admission), call(call) {}
  ~RoomWait() {
    if (isSaid)
      withdraw();
  }
  RoomWait(const RoomWait &) = delete;
  RoomWait &operator=(const RoomWait &) = delete;

  /// The call has been refused, with this reason. Timeout, PeerFailed: it is not to be tried again,
  /// and the communicator has to fail.
  Status look(const std::string &refusal);
  /// Between two tries, once what could be done has been done: sleeps if it has waited for long.
  void pause() const;
  /// The first refusal.
  SteadyClock::time_point begin() const { return since; }

private:
  void withdraw();
  std::chrono::milliseconds waited() const;

  Core &core;
  Admission &admission;
  const Submission &call;
  uint32_t looks = 0;
  SteadyClock::time_point since{};
  bool isSaid = false, isReported = false;
};

} // namespace occl::daemon
