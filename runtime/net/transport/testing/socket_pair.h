#pragma once

#include "runtime/net/rendezvous/socket.h"

#include <chrono>
#include <fcntl.h>
#include <utility>
#include <vector>

namespace occl::net {

/// Two ends of a TCP connection over loopback; children that a test makes keep them.
inline std::pair<Descriptor, Descriptor> socketPair() {
  auto listener = listenOn(loopback(0));
  const Deadline deadline(std::chrono::seconds(20));
  auto first = connectTo(std::vector{*addressOf(*listener)}, deadline);
  auto second = acceptFrom(*listener, deadline);
  const auto copied = [](const Descriptor &socket) {
    return Descriptor(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  };
  return {copied(*first), copied(*second)};
}

} // namespace occl::net
