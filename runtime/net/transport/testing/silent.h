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

/// From now on nothing that the one end of a connection sends gets through to the other, but for its
/// kernel's answer that there is no such connection any more: as where only small packets do.
inline bool makeUnheard(int from, int to) {
  const int hops = 10, fewest = 30;
  return setsockopt(from, IPPROTO_IP, IP_TTL, &hops, sizeof hops) == 0 &&
         setsockopt(to, IPPROTO_IP, IP_MINTTL, &fewest, sizeof fewest) == 0;
}

} // namespace occl::net
