#pragma once

#include "runtime/net/rendezvous/socket.h"

#include <chrono>
#include <utility>
#include <vector>

namespace occl::net {

/// Two ends of a TCP connection over loopback.
inline std::pair<Descriptor, Descriptor> socketPair() {
  auto listener = listenOn(loopback(0));
  const Deadline deadline(std::chrono::seconds(20));
  auto first = connectTo(std::vector{*addressOf(*listener)}, deadline);
  auto second = acceptFrom(*listener, deadline);
  return {std::move(*first), std::move(*second)};
}

} // namespace occl::net
