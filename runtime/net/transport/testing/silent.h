#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

namespace occl::net {

/// From now on nothing of IPv4 gets through to a socket, as no packet has so many hops left: to who
/// connects to a listener it looks like a link that leads nowhere.
inline bool makeSilent(int socket) {
  const int hops = 255;
  return setsockopt(socket, IPPROTO_IP, IP_MINTTL, &hops, sizeof hops) == 0;
}

} // namespace occl::net
