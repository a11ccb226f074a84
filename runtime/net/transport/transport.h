// How bytes get from one process to another: the boundary between what the runtime wants moved and
// what moves it. One data operation, a put: bytes, then a word that becomes visible after them.
// Every byte has a place reserved for it, so a receiver never stops reading.
//
// Implementations: tcp.h, verbs/verbs_endpoint.h, nccl_net/nccl_net_endpoint.h, and loop.h for
// tests. testing/conformance.cpp says what all must do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace occl::net {

/// Memory of this process that the peer of one endpoint may write to, by number.
inline constexpr uint32_t kNumRegions = 5;
using Regions = std::array<std::span<std::byte>, kNumRegions>;

/// Bytes of a put, and of a message.
inline constexpr uint32_t kMaxPut = 128 << 10;
inline constexpr uint32_t kMaxMessage = 4096;

struct Put {
  uint32_t region = 0; // of the peer
  uint64_t offset = 0; // in it
  /// 8 bytes at a multiple of 8 are one word, of which nobody sees a part.
  std::span<const std::byte> bytes = {};
  /// A word of 8 bytes in the same region, stored with release after the bytes, unless a larger one
  /// is there: what other connections, or devices, have stored meanwhile.
  bool hasWord = false;
  uint64_t wordOffset = 0; // a multiple of 8
  uint64_t word = 0;
};

/// Full: there is no room now, nothing was taken; there may be once receive() has handled what the
/// peer has sent. Down: nothing will be taken any more.
enum class Posted : uint8_t { Yes, Full, Down };

/// Who is told of what a peer has sent.
class Sink {
public:
  virtual ~Sink() = default;
  /// All frames before it have been handled, those behind it have not. False: it makes no sense;
  /// the connection ends.
  virtual bool message(std::span<const std::byte> bytes) = 0;
};

/// A connection to one peer. put(), send(), flush() and isDelivered() are one thread's, receive()
/// is one's; the others any thread's. No function waits.
class Endpoint {
public:
  virtual ~Endpoint() = default;

  /// At most kMaxPut bytes. Yes: they may change now. What one endpoint has taken takes effect in
  /// that order, but bytes may be there before: whoever looks at them waits for their word. Two
  /// long puts to one place are not under way at once: the peer has said meanwhile that it needs
  /// the first no more.
  virtual Posted put(const Put &put) = 0;
  /// At most kMaxMessage bytes; in order with puts.
  virtual Posted send(std::span<const std::byte> message) = 0;
  /// Puts and messages may be held back until this is called. True: nothing is held back any more.
  virtual bool flush() = 0;
  /// All that was taken has reached the peer's machine, or never will.
  virtual bool isDelivered() const = 0;

  /// Handles some of what the peer has sent: true if there may be more. A peer's end or fault makes
  /// isDown() true after all that it had sent before.
  virtual bool receive(Sink &sink) = 0;
  virtual bool isDown() const = 0;
  /// Why, once it is down.
  virtual std::string whyDown() const = 0;

  /// One of them is readable when there is something to receive; writable, or readable, when put()
  /// may go on. Empty: there are none.
  virtual std::vector<int> descriptors() const { return {}; }
  /// Whether no descriptor tells that something has come, or that put() may go on: receive() is to
  /// be called again and again. It then says true if it has handled something.
  virtual bool mustBePolled() const { return false; }
  /// Whether receive() has made room since it was last asked: put() may go on although no
  /// descriptor is writable. The receiving thread's.
  virtual bool hasMadeRoom() { return false; }
  /// To be called now and then by the receiving thread: looks whether the peer is still there.
  virtual void checkPeer() {}
  /// Nothing is sent or received any more, and nobody needs what was taken: if it does not get
  /// through the peer learns of the end without it.
  virtual void abandon() {}
};

} // namespace occl::net
