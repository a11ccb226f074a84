// The TCP connection by which two ranks have met, once their data goes another way: nothing is said
// there any more, and its end shows that the peer's process has ended.
#pragma once

#include "runtime/control/shm/forked.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/liveness.h"

#include <chrono>
#include <optional>
#include <string>

namespace occl::net {

/// Thread safety: watch() before all others; whyGone() is one thread's, the rest any thread's.
class PeerSocket {
public:
  /// `otherWay`, for errors: what data goes by, "its queue pair".
  explicit PeerSocket(const char *otherWay) : otherWay(otherWay) {}

  /// `silence`: as of Liveness. Children that fork() makes do not keep it open.
  void watch(bootstrap::Descriptor connected, std::chrono::milliseconds silence);
  /// To sleep on; -1 before watch().
  int descriptor() const { return socket.get(); }
  /// Why the peer's process has ended, if it has. Nothing before watch().
  std::optional<std::string> whyEnded() const;
  /// Why its machine is gone: Liveness::whyGone().
  std::optional<std::string> whyGone() { return liveness->whyGone(); }
  /// The peer sees the end.
  void end() const;

private:
  const char *const otherWay;
  bootstrap::Descriptor socket;
  std::optional<bootstrap::ClosedInChildren> notInherited;
  std::optional<Liveness> liveness;
};

} // namespace occl::net
