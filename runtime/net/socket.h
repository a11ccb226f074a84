// TCP sockets for setting up: addresses, and transfers of whole records before a deadline.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/sync/deadline.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace occl::net {

using bootstrap::Descriptor;

/// IPv4, in host order.
struct Address {
  uint32_t host = 0;
  uint16_t port = 0;

  bool operator==(const Address &) const = default;
  /// "10.0.0.1:29500".
  std::string text() const;
};

/// From "HOST:PORT", HOST being a name or an IPv4 address. InvalidArgument says what is wrong.
StatusOr<Address> resolve(std::string_view text);

/// Port 0: any that is free. SystemError.
StatusOr<Descriptor> listenOn(const Address &address);
/// Tries until somebody listens there, or the deadline has passed: Timeout.
StatusOr<Descriptor> connectTo(const Address &address, const Deadline &deadline);
/// The next connection to a listener. Timeout.
StatusOr<Descriptor> acceptFrom(const Descriptor &listener, const Deadline &deadline);
/// This side's address of a socket.
StatusOr<Address> addressOf(const Descriptor &socket);
/// Whose the other side's is, or "an unknown address".
std::string peerOf(const Descriptor &socket);

/// Timeout; PeerFailed if the connection ends before all is there.
Status sendAll(const Descriptor &socket, std::span<const std::byte> bytes,
               const Deadline &deadline);
Status receiveAll(const Descriptor &socket, std::span<std::byte> bytes, const Deadline &deadline);

template <class Record>
Status sendRecord(const Descriptor &socket, const Record &record, const Deadline &deadline) {
  return sendAll(socket, std::as_bytes(std::span(&record, 1)), deadline);
}
template <class Record>
Status receiveRecord(const Descriptor &socket, Record &record, const Deadline &deadline) {
  return receiveAll(socket, std::as_writable_bytes(std::span(&record, 1)), deadline);
}

} // namespace occl::net
