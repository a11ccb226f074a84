// The RDMA ports of this machine.
#pragma once

#include "runtime/control/shm/forked.h"
#include "runtime/net/transport/verbs/ibverbs.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
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

/// A device that is open, for as long as the process lives. Thread safety: any.
class RdmaDevice {
public:
  /// `verbs` has to live as long.
  RdmaDevice(const Ibverbs &verbs, ibv_context *context, std::string name);

  /// Whether the device, or this queue of it, has failed without saying so in a completion.
  bool hasFailed(const void *queue) const;
  /// Also forgets whether it has failed: another queue may get its address.
  void destroy(ibv_qp *queue) const;
  void destroy(ibv_cq *queue) const;

  const Ibverbs &verbs;
  ibv_context *const context;
  const std::string name;

private:
  /// As long as a child has it, memory that others may write to stays what it is.
  const bootstrap::ClosedInChildren notInherited;
  mutable Mutex mutex;
  mutable bool isBroken = false;
  mutable std::unordered_set<const void *> failedQueues;
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

/// The ports of two ranks by which they reach each other, and in whose turn each of them is: ranks
/// of one machine have different turns, so that they use different ports. Ports of one subnet are
/// preferred. {-1, -1}: by none. Equal on both sides if both call it for the same rank as the
/// first.
struct PortPair {
  int first = -1, second = -1;
};
PortPair choosePorts(std::span<const PortAddress> ofFirst, uint32_t turnOfFirst,
                     std::span<const PortAddress> ofSecond, uint32_t turnOfSecond);

/// "<what>: <text of errno>", with what to do if it is for want of locked memory.
Status rdmaError(const std::string &what, int error);

/// Memory that a device may access.
class Registration {
public:
  /// `access`: of ibv_access_flags. SystemError says how to raise the limit of locked memory.
  static StatusOr<Registration> make(ibv_pd *domain, std::span<std::byte> memory, int access);
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
