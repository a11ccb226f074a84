// What endpoints over a network plugin send each other: packets, each one request of the plugin.
// A packet is a head, then frames (../frame.h), as many as were there when it could be sent.
#pragma once

#include "runtime/base/status.h"
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/nccl_net/comms.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace occl::net {

/// Little endian.
struct PacketHead {
  uint64_t number = 0;   // of the packet in its direction, from 0 on
  uint64_t consumed = 0; // frames of the other direction, since the begin
  uint32_t bytes = 0;    // behind the head
  uint32_t asks = 0;     // 1: how many frames were consumed is to be said at once
};
static_assert(sizeof(PacketHead) == 24);

/// So that a message fits into one, and the longest put into all that are under way at a time.
inline constexpr uint64_t kLeastFrameBytes = kMaxPut / NcclNetComms::kSlots;
static_assert(kLeastFrameBytes >= kMaxMessage);
inline constexpr uint64_t kLeastPacketBytes =
    sizeof(PacketHead) + sizeof(FrameHeader) + kLeastFrameBytes;
/// Bytes of a frame that makes a packet as large as they are.
inline constexpr uint64_t kMostFrameBytes = 32 << 10;
inline constexpr uint64_t kMostPacketBytes =
    sizeof(PacketHead) + sizeof(FrameHeader) + kMostFrameBytes;

/// Puts frames into packets, and sends these in order. With the context's lock.
class PacketSender {
public:
  explicit PacketSender(NcclNetComms &comms) : comms(comms) {}

  /// For all of a put, or a message, of so many bytes.
  bool hasRoomFor(uint64_t bytes) const;
  /// There is room. Larger puts go in several frames.
  void add(const Put &put);
  void add(std::span<const std::byte> message);
  /// A packet will go soon, without a frame if there is none. False: there is no room.
  bool addHead(bool asks);
  /// What was added may go.
  void seal();
  /// Sends what may go, `consumed` being that of its heads, and frees what has been sent. An error
  /// is one of the plugin.
  Status progress(uint64_t consumed);

  uint64_t numFrames() const { return frames; }
  /// Whether everything that may go has been taken by the plugin.
  bool isPosted() const { return posted == sealed; }
  bool hasSealed() const { return posted != sealed; }
  bool isIdle() const { return done == sealed && used == 0; }
  /// How often there was more room than before.
  uint64_t numFreed() const { return posted + done; }

private:
  static constexpr uint64_t kSlots = NcclNetComms::kSlots;

  void addFrame(FrameHeader header, std::span<const std::byte> bytes);
  uint64_t mostFrameBytes() const;

  NcclNetComms &comms;
  /// Packets [0, done) have been sent, [done, posted) are under way, [posted, sealed) wait for the
  /// plugin, and `sealed` is being filled, if `used` is not 0.
  uint64_t done = 0, posted = 0, sealed = 0;
  uint64_t used = 0; // bytes of it
  uint64_t frames = 0;
  std::array<PacketHead, kSlots> heads{};
};

/// Packets that have come, in order. With the context's lock, but what front() gives may be read
/// without, until pop().
class PacketReceiver {
public:
  explicit PacketReceiver(NcclNetComms &comms) : comms(comms) {}

  struct Packet {
    PacketHead head;
    std::span<const std::byte> frames;
    std::string fault; // "a packet of 3 bytes": it makes no sense
  };
  /// Has room for what will come. An error is one of the plugin.
  Status progress();
  std::optional<Packet> front() const;
  void pop() { ++handled; }
  /// Of the last packet that has come, handled or not: how many frames the peer has consumed.
  uint64_t consumedByPeer() const { return consumed; }

private:
  static constexpr uint64_t kSlots = NcclNetComms::kSlots;

  Packet packet(uint64_t number) const;

  NcclNetComms &comms;
  /// Packets [0, handled) were, [handled, come) are there, [come, posted) have memory.
  uint64_t handled = 0, come = 0, posted = 0;
  uint64_t consumed = 0;
  std::array<uint64_t, kSlots> sizes{};
};

} // namespace occl::net
