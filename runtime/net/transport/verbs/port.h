// The RDMA ports of this machine.
#pragma once

#include "runtime/net/transport/forked.h"
#include "runtime/net/transport/verbs/ibverbs.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace occl::net {

/// Where others reach a port. Fixed layout: it is sent as it is.
struct PortAddress {
  std::array<uint8_t, 16> gid{}; // with RoCE an IPv6 address, or an IPv4 one as IPv6 writes it
  uint32_t number = 0;           // of the port among those of its machine
  uint16_t lid = 0;              // of InfiniBand
  uint16_t isInfiniband = 0;

  bool operator==(const PortAddress &) const = default;
};

/// A device that is open, and the domain that queue pairs and memory of one device share. For as
/// long as the process lives: what is registered belongs to it.
struct RdmaDevice {
  RdmaDevice(ibv_context *context, ibv_pd *domain, std::string name)
      : context(context), domain(domain), name(std::move(name)), notInherited(context->cmd_fd) {}

  ibv_context *const context;
  ibv_pd *const domain;
  const std::string name;

private:
  /// As long as a child has it, memory that others may write to stays what it is.
  const ClosedInChildren notInherited;
};

/// A port that is up, at one of its addresses.
struct RdmaPort {
  const RdmaDevice *device = nullptr;
  uint8_t number = 0;   // within the device
  uint8_t gidIndex = 0; // of the address
  ibv_mtu mtu = IBV_MTU_1024;
  PortAddress address;

  /// "mlx5_0 port 1".
  std::string text() const;
};

struct RdmaPorts {
  std::vector<RdmaPort> ports;
  std::string whyNone; // if there are none
};

/// All of this machine, found at the first call of a process, also of
/// one that fork() has made. Any thread. Addresses are those of RoCE v2 and, of InfiniBand, the
/// first one.
const RdmaPorts &rdmaPorts();

/// Of `mine` and `theirs`, the ports of rank `own` and of rank `peer`: by which of each the two
/// reach each other, as both compute it. Ports on one subnet are preferred; among equal ones
/// ranks take turns, so that all ports of a machine are used. {-1, -1}: by none.
struct PortPair {
  int mine = -1, theirs = -1;
};
PortPair choosePorts(std::span<const PortAddress> mine, uint32_t own,
                     std::span<const PortAddress> theirs, uint32_t peer);

/// Memory that a device may access.
class Registration {
public:
  /// `access`: of ibv_access_flags. SystemError says how to raise the limit of locked memory.
  static StatusOr<Registration> make(const RdmaDevice &device, std::span<std::byte> memory,
                                     int access);
  Registration(Registration &&other) noexcept : region(std::exchange(other.region, nullptr)) {}
  Registration &operator=(Registration &&other) noexcept {
    std::swap(region, other.region);
    return *this;
  }
  ~Registration();

  uint32_t localKey() const { return region->lkey; }
  uint32_t remoteKey() const { return region->rkey; }

private:
  explicit Registration(ibv_mr *region) : region(region) {}

  ibv_mr *region = nullptr;
};

} // namespace occl::net
