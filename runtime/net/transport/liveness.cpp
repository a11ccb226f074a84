// Tells a machine that is off from a process that is stopped.
#include "runtime/net/transport/liveness.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace occl::net {

namespace {

/// Of Linux 6.15; headers of libc may be older.
constexpr int kMostBetweenRepeats = 44; // TCP_RTO_MAX_MS

} // namespace

bool setOption(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

void resetConnection(int socket) {
  const sockaddr nobody = {.sa_family = AF_UNSPEC, .sa_data = {}};
  connect(socket, &nobody, sizeof nobody);
}

Liveness::Liveness(int socket, std::chrono::milliseconds silence)
    : socket(socket), silence(silence) {
  // How long nothing may be acknowledged is whyGone()'s business.
  setOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  setOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 127);
  // Else pauses between repeats double, and a cut that has healed goes unnoticed for as long as it
  // has lasted. So many repeats would end the connection, but for the second option: in a week.
  if (setOption(socket, IPPROTO_TCP, kMostBetweenRepeats, 1000))
    setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 7 * 24 * 3600 * 1000);
}

/// The kernel goes on with what is closed and not acknowledged, for no longer than this.
Liveness::~Liveness() {
  setOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
}

/// Asked are retransmissions and probes. How long ago the last acknowledgement was says nothing by
/// itself: a stopped process has a closed window, of which the kernel asks ever more rarely.
std::optional<std::string> Liveness::whyGone() {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    return std::nullopt;
  const auto now = SteadyClock::now();
  const uint32_t asked = info.tcpi_retransmits + info.tcpi_probes;
  const std::chrono::milliseconds lastAnswer(info.tcpi_last_ack_recv);
  const bool isAnswered = asked == 0 || (lastLook && lastAnswer < now - *lastLook);
  lastLook = now;
  if (isAnswered || asked != counted)
    unanswered = isAnswered ? 0 : unanswered + 1;
  counted = asked;
  // What has an answer stays among what was repeated until the window opens, so it must not count.
  if (unanswered == 0)
    askedSince.reset();
  else if (!askedSince)
    askedSince = now;
  if (unanswered < kFewest || now - *askedSince < silence)
    return std::nullopt;
  return "its machine has not answered for " + std::to_string(lastAnswer.count()) + " ms";
}

} // namespace occl::net
