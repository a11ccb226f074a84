// Whether the machine at the other end of a TCP connection is still there.
#pragma once

#include "runtime/sync/clock.h"

#include <chrono>
#include <optional>
#include <string>

namespace occl::net {

/// Of a socket that stays open meanwhile. One thread at a time.
class Liveness {
public:
  /// From now on the peer's kernel is asked for something at least each second; before Linux 6.15
  /// ever more rarely while it does not answer.
  Liveness(int socket, std::chrono::milliseconds silence);
  /// The socket is about to be closed: what the peer does not acknowledge within `silence` is gone.
  ~Liveness();
  Liveness(const Liveness &) = delete;
  Liveness &operator=(const Liveness &) = delete;

  /// To be called now and then. Why it is gone: its kernel has acknowledged nothing for `silence`
  /// although it was asked to, twice at least; a process that is stopped acknowledges, a machine
  /// that is off does not.
  std::optional<std::string> whyGone();
  /// Whether the last look found it asked twice at least, and not to have answered for a second:
  /// two questions take a fast link a good half of that, as little as a passing fault.
  bool isSilent() const { return unanswered >= kFewest && *lastLook - *askedSince >= kPassing; }

private:
  /// A kernel may leave one unanswered, as it says twice a second at most that it has no room.
  static constexpr uint32_t kFewest = 2;
  static constexpr std::chrono::seconds kPassing{1};

  const int socket;
  const std::chrono::milliseconds silence;
  // As whyGone() has seen it.
  std::optional<SteadyClock::time_point> lastLook;
  std::optional<SteadyClock::time_point> askedSince; // and nothing was answered
  uint32_t counted = 0;                              // questions, at the last look
  uint32_t unanswered = 0;                           // since the last answer
};

/// Ends the connection at once, with nothing of what is under way: unlike its ordinary end, which
/// waits behind lost data, this gets through where only small packets do.
void resetConnection(int socket);

/// False: the system lacks it, and does without.
bool setOption(int socket, int level, int option, int value);

} // namespace occl::net
