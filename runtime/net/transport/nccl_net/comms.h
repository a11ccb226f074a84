// Two comms of a plugin between two ranks, one to send and one to receive, and the memory of both.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/nccl_net/context.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace occl::net {

/// Where a rank listens, and how large its requests may be. Fixed layout: it is sent as it is.
struct NcclNetAddress {
  alignas(8) std::array<std::byte, nccl::kHandleBytes> handle{};
  uint64_t packetBytes = 0;
};

/// Slots of memory by number, modulo kSlots; each is used by one request at a time. An error is one
/// of the plugin, with its function and result. With the context's lock, but for the functions that
/// say otherwise.
///
/// ncclNet cancels no request, and says nothing of those that are under way when a comm is closed.
/// So their memory is retired then: its pages are given back, but its addresses, 1 MiB and a bit,
/// stay mapped until the process ends, and whatever the plugin still writes there meets nobody.
class NcclNetComms {
public:
  static constexpr uint64_t kSlots = 16;
  static_assert(kSlots <= nccl::kMostRequests);

  /// Takes the lock.
  static StatusOr<std::unique_ptr<NcclNetComms>> listen(std::shared_ptr<NcclNetContext> context,
                                                        const NcclNetDevice &device);
  /// Closes all, with the lock, in the process that it was made in. In others, where its memory is
  /// not mapped, it calls nothing of the plugin and unmaps nothing.
  ~NcclNetComms();

  /// Need no lock.
  const NcclNetAddress &address() const { return own; }
  const NcclNetDevice &device() const { return *ofDevice; }
  uint64_t packetBytes() const { return bytesOfPacket; }
  /// False: the address makes no sense.
  bool setPeer(const NcclNetAddress &address);
  /// To be called until it is true: both comms are there, and their memory is registered.
  StatusOr<bool> connect();

  std::span<std::byte> sendSlot(uint64_t number) { return slot(0, number); }
  std::span<std::byte> receiveSlot(uint64_t number) { return slot(kSlots, number); }
  /// False: not now, call again.
  StatusOr<bool> send(uint64_t number, uint64_t bytes);
  StatusOr<bool> receive(uint64_t number);
  StatusOr<bool> isSent(uint64_t number);
  /// How many bytes, once they are there.
  StatusOr<std::optional<uint64_t>> received(uint64_t number);

  /// Bytes of the process that have been retired. Any thread.
  static uint64_t bytesRetired();

private:
  NcclNetComms(std::shared_ptr<NcclNetContext> context, const NcclNetDevice &device)
      : context(std::move(context)), ofDevice(&device) {}
  Status makeMemory();
  Status registerMemory();
  void close();
  void retireSlots();
  void retire(uint64_t bytes);
  std::span<std::byte> slot(uint64_t first, uint64_t number) {
    return memory.get().subspan((first + number % kSlots) * slotBytes, bytesOfPacket);
  }

  const std::shared_ptr<NcclNetContext> context;
  const NcclNetDevice *const ofDevice;
  NcclNetAddress own, peer; // the plugin may keep a state in the peer's
  uint64_t bytesOfPacket = 0, slotBytes = 0;
  void *listenComm = nullptr, *sendComm = nullptr, *recvComm = nullptr;
  void *sendRegistration = nullptr, *receiveRegistration = nullptr;
  bool isSendRegistered = false, isReceiveRegistered = false;
  /// Null: none is under way.
  std::array<void *, kSlots> sends{}, receives{};
  bootstrap::Mapping memory; // of what is sent, then of what is received
};

} // namespace occl::net
