// What a rank tells its peers of the addresses by which they may reach it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/rendezvous/socket.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace occl::net {

/// An address of an interface. Fixed layout: it is sent as it is.
struct OfferedAddress {
  std::array<char, 16> interface {};
  std::array<uint8_t, 16> host{}; // as of Address
  uint8_t prefixBits = 0;         // of `host`, so 96 more than IPv4 has
  std::array<uint8_t, 3> unused{};
  uint32_t speed = 0; // Mbit/s; 0: the system does not tell

  std::string name() const;
  bool isIpv4() const;
  /// Of different machines in one subnet.
  bool reaches(const OfferedAddress &other) const;
};

struct TcpOffer {
  static constexpr size_t kMost = 24;

  uint32_t count = 0;
  /// That the rank wants for each interface.
  uint32_t connections = 1;
  /// Its interfaces have been named, so that they are used whatever their speed.
  uint32_t isNamed = 0;
  /// Some have been named or left out: others than these are not to be used.
  uint32_t isRestricted = 0;
  std::array<OfferedAddress, kMost> addresses;
};

/// As OCCL_SOCKET_IFNAME, OCCL_NSOCKS and those of NCCL say. InvalidArgument.
StatusOr<TcpOffer> tcpOffer();

} // namespace occl::net
