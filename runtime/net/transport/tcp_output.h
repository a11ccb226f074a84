// What one TCP connection is to send: frames that the socket has not taken yet.
#pragma once

#include "runtime/net/transport/frame.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace occl::net {

/// So many bytes of a put are worth a system call of their own, which saves copying them.
inline constexpr uint64_t kWorthACall = 16 << 10;

/// One thread's.
class TcpOutput {
public:
  /// The socket stays open meanwhile.
  explicit TcpOutput(int socket);

  /// Whether frames of so many bytes, with their headers, can be taken now. At most kMostAtATime.
  bool hasRoom(uint64_t bytes);
  /// For which there is room. The bytes may change once it returns.
  void take(const FrameHeader &header, std::span<const std::byte> bytes);
  /// True: nothing is held back any more.
  bool flush();
  /// The socket takes nothing any more.
  bool isBroken() const { return broken; }
  bool isDelivered() const;
  /// Bytes that were taken and that the peer's machine has not acknowledged.
  uint64_t backlog() const;

  static constexpr uint64_t kMostAtATime = 512 << 10;

private:
  bool sendNow(std::span<const std::byte> header, std::span<const std::byte> bytes);
  void keep(std::span<const std::byte> bytes);

  const int socket;
  std::vector<std::byte> out; // [begin, end) is to be sent
  uint64_t begin = 0, end = 0;
  bool broken = false;
};

} // namespace occl::net
