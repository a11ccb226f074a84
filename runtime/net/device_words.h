// What the sending thread of a network moves for ranks on devices, whose kernels ring nobody.
#pragma once

#include "runtime/net/transport/transport.h"

#include <chrono>
#include <cstdint>

namespace occl::net {

/// Called by the sending thread alone, one call at a time. No function waits.
class DeviceWords {
public:
  virtual ~DeviceWords() = default;
  /// Puts what rank `peer` must have before the next meeting. True: all of it has been put.
  virtual bool sendCard(uint32_t peer, Endpoint &endpoint) = 0;
  /// Puts what kernels have stored for that rank since. True: all of it.
  virtual bool send(uint32_t peer, Endpoint &endpoint) = 0;
  /// How long nobody need look, if nobody rings meanwhile.
  virtual std::chrono::nanoseconds pause() = 0;
};

} // namespace occl::net
