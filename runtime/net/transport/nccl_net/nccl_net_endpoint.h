// An endpoint over a network plugin of NCCL: a comm in each direction, and the TCP connection over
// which the two ranks have met, by whose end each sees that the other's process has ended.
//
// What is put goes in packets (packets.h), which the peer's receiving thread copies to their place:
// docs/decisions/hosts/nccl-net.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/nccl_net/comms.h"
#include "runtime/net/transport/nccl_net/packets.h"
#include "runtime/net/transport/peer_socket.h"
#include "runtime/net/transport/transport.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::net {

/// In a process that fork() has made from the one in which it was made it is down, and calls
/// nothing of the plugin.
class NcclNetEndpoint final : public Endpoint {
public:
  /// `silence`: as of makeTcpEndpoint().
  static StatusOr<std::unique_ptr<NcclNetEndpoint>> make(std::shared_ptr<NcclNetContext> context,
                                                         const NcclNetDevice &device,
                                                         const Regions &regions,
                                                         std::chrono::milliseconds silence);

  // These in this order, on both sides, before all others.
  const NcclNetAddress &address() const { return comms->address(); }
  Status connect(const NcclNetAddress &peer);
  /// To be called until it is true: the comms are connected, and a first packet has come.
  StatusOr<bool> tryOut();
  /// Afterwards: a plugin may need to be asked before the peer gets what it waits for.
  void driveOn();
  /// `socket`: connected to the peer, which says nothing there from now on: what comes is its end.
  void watch(bootstrap::Descriptor socket);

  Posted put(const Put &put) override;
  Posted send(std::span<const std::byte> message) override;
  bool flush() override;
  bool isDelivered() const override;
  bool receive(Sink &sink) override;
  bool isDown() const override;
  std::string whyDown() const override;
  std::vector<int> descriptors() const override { return {socket.descriptor()}; }
  bool mustBePolled() const override { return true; }
  bool hasMadeRoom() override { return madeRoom.exchange(false, std::memory_order_relaxed); }
  void checkPeer() override;

private:
  NcclNetEndpoint(std::shared_ptr<NcclNetContext> context, std::unique_ptr<NcclNetComms> comms,
                  const Regions &regions, std::chrono::milliseconds silence);

  template <class Frame> Posted post(const Frame &frame, uint64_t bytes);
  // With the lock.
  void progress();
  void stopSending(std::string reason);
  std::optional<std::string> whyEnded() const;

  // The receiving thread's.
  std::optional<PacketReceiver::Packet> next();
  std::string handle(const PacketReceiver::Packet &packet, Sink &sink);
  std::string handleFrame(const FrameHeader &header, const std::byte *bytes, Sink &sink);
  void lookForEnd();
  void fail(std::string reason);

  bool isOfThisProcess() const { return context->mark.isThisProcess(); }

  const Regions regions;
  const std::chrono::milliseconds silence;
  PeerSocket socket{"the plugin"};

  /// Its lock guards all that follow.
  const std::shared_ptr<NcclNetContext> context;
  const std::unique_ptr<NcclNetComms> comms;
  PacketSender sender;
  PacketReceiver receiver;
  bool isConnected = false, trialIsSent = false;
  bool owesAnswer = false;  // the peer has asked how many frames were consumed
  uint64_t askedAt = 0;     // the peer was asked when so many had been sent
  uint64_t numConsumed = 0; // of the peer's
  std::string whyCannotSend, whyCannotReceive;

  // The receiving thread's.
  std::optional<Deadline> patience; // for what is still under way once the peer has ended
  std::string why;                  // before `down`
  Atomic<bool> down{false};

  Atomic<bool> madeRoom{false};
};

} // namespace occl::net
