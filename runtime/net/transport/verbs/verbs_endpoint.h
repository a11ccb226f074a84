// An endpoint over RDMA: a reliable queue pair, and the TCP connection over which the two ranks
// have met, by whose end each sees that the other's process has ended.
//
// What is put goes in frames of up to 8 KiB, which the peer's receiving thread copies to their
// place, or, where the peer has registered that part of its region, is written there by the device,
// with a frame behind it that says so and has the word. So a word never needs the order in which a
// device writes memory: docs/decisions/hosts/rdma.md.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/peer_socket.h"
#include "runtime/net/transport/transport.h"
#include "runtime/net/transport/verbs/extents.h"
#include "runtime/net/transport/verbs/queue_pair.h"
#include "runtime/net/transport/verbs/staging.h"
#include "runtime/net/transport/verbs/wire.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/mutex.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace occl::net {

class VerbsEndpoint final : public Endpoint {
public:
  /// `silence`: as of makeTcpEndpoint().
  static StatusOr<std::unique_ptr<VerbsEndpoint>> make(const RdmaPort &port, const Regions &regions,
                                                       std::chrono::milliseconds silence);
  ~VerbsEndpoint() override;

  // These in this order, on both sides, before all others.
  const QueuePairAddress &address() const { return pair->address(); }
  std::string portText() const { return pair->port.text(); }
  Status connect(const QueuePairAddress &peer);
  /// Once the peer has connected, too: sends something that says nothing, again now and then, as
  /// one that is lost alone is repeated late.
  void sendTrial();
  /// Whether the peer's has come. An error: what has failed.
  StatusOr<bool> isTriedOut();
  /// `socket`: connected to the peer, which says nothing there from now on: what comes is its end.
  void watch(bootstrap::Descriptor socket);

  Posted put(const Put &put) override;
  Posted send(std::span<const std::byte> message) override;
  bool flush() override { return true; }
  bool isDelivered() const override;
  bool receive(Sink &sink) override;
  bool isDown() const override { return down.load(std::memory_order_acquire); }
  std::string whyDown() const override { return why; }
  std::vector<int> descriptors() const override;
  bool hasMadeRoom() override { return std::exchange(madeRoom, false); }
  void checkPeer() override;

  /// Bytes that this side's device has written into the peer's memory.
  uint64_t bytesWritten() const { return numBytesWritten.load(std::memory_order_relaxed); }

private:
  /// Part of a put: a frame, or bytes that the device writes and the frame behind them.
  struct Piece {
    FrameHeader header;
    std::span<const std::byte> bytes;
    const VerbsExtent *extent = nullptr;       // where the device writes, if it does
    std::span<std::byte> head = {}, data = {}; // in the staging memory, which they take
    uint64_t stagingEnd = 0;                   // until here
  };
  /// Of a request to send that will be reported.
  struct Sent {
    uint64_t stagingEnd = 0;
    size_t numRequests = 0; // with it
  };

  VerbsEndpoint(std::unique_ptr<QueuePair> pair, bootstrap::Mapping memory, const Regions &regions,
                std::chrono::milliseconds silence);

  // With `sending`.
  void cut(const Put &put);
  bool stage();
  Posted post();
  void postPieces();
  void reap();
  bool hasRoomFor(size_t numFrames, size_t numRequests) const;
  void fillHead(std::span<std::byte> place, const FrameHeader &header, bool isPlaced,
                size_t numExtents);
  void stopSending(std::string reason);

  // The receiving thread's.
  bool owesControl() const;
  void sendControl(bool isTrial);
  void postControl(std::span<std::byte> place);
  void tellPeer();
  std::optional<std::string> whyEnded();
  bool watchForMore();
  std::string handle(const ibv_wc &completion, Sink *sink);
  std::string handleFrame(const VerbsHead &head, const std::byte *bytes, Sink *sink);
  std::string handleExtents(const VerbsHead &head, const std::byte *bytes);
  bool postReceive(uint64_t index);
  void fail(std::string reason);
  std::string whyRequestsFail(const std::string &ofReceive);

  const Regions regions;
  const std::chrono::milliseconds silence;
  PeerSocket socket{"its queue pair"};
  const std::unique_ptr<QueuePair> pair;
  /// What is sent from, then what is received to. Pages of its own: registered ones are not in
  /// children that fork() makes.
  const bootstrap::Mapping memory;
  StatusOr<Registration> registered; // it

  /// All that is sent: frames by the sending thread, heads without one by the receiving thread.
  mutable Mutex sending;
  Staging staging;
  std::vector<Piece> pieces; // of what is being put
  std::vector<ibv_send_wr> requests;
  std::vector<ibv_sge> ranges; // their memory
  std::deque<Sent> sent;
  size_t numRequests = 0;      // that may not have been carried out
  Atomic<uint64_t> numSent{0}; // frames
  PeerExtents peerExtents;
  PlacesToCopy placesToCopy;
  uint32_t numPeerExtents = 0; // of these
  bool cannotSend = false;
  std::string whyCannotSend;
  Atomic<uint64_t> numConsumed{0}; // of these frames, as the peer has said
  Atomic<uint64_t> numBytesWritten{0};

  // The receiving thread's.
  const std::span<std::byte> buffers; // of kFrames + kControls requests
  OwnExtents ownExtents;
  uint32_t numKnownToPeer = 0;     // of these
  Atomic<uint64_t> numReceived{0}; // frames
  Atomic<uint64_t> numTold{0};     // of these the peer is told that they were consumed
  bool wasTriedOut = false, madeRoom = false;
  std::string why; // before `down`
  Atomic<bool> down{false};
};

} // namespace occl::net
