// TCP sockets for setting up: addresses, and transfers of whole records before a deadline. Children
// that fork() makes keep none of them: runtime/control/shm/forked.h.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/net/rendezvous/patience.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace occl::net {

using bootstrap::Descriptor;

/// IPv6, or IPv4 as IPv6 writes it (::ffff:10.0.0.1). Fixed layout: it is sent as it is.
struct Address {
  std::array<uint8_t, 16> host{};
  uint16_t port = 0;
  std::array<uint16_t, 3> unused{};

  bool operator==(const Address &) const = default;
  bool isIpv4() const;
  /// At which a listener is at all addresses: 0.0.0.0, [::].
  bool isAny() const;
  /// Of one machine alone.
  bool isLoopback() const;
  /// Of IPv6: it means another machine on each interface.
  bool isLinkLocal() const;
  /// "10.0.0.1:29500", "[fd00::1]:29500".
  std::string text() const;
};

/// Of this machine alone: 127.0.0.1.
Address loopback(uint16_t port);

/// From "HOST:PORT", HOST being a name, an IPv4 address, or an IPv6 address in brackets: all that
/// it leads to, the best first. InvalidArgument says what is wrong. For a name it waits for the
/// system's resolver, which has its own timeouts: no deadline of this process ends that. A name
/// that is not known yet is looked up again until the deadline.
StatusOr<std::vector<Address>> resolve(std::string_view text, const Deadline &deadline);
/// For who listens there: no name is looked up, in its place are all addresses of this machine.
StatusOr<std::vector<Address>> resolvePort(std::string_view text);

/// At an address of this machine and no other; of IPv6 also at a link-local one. Port 0: any that
/// is free. SystemError.
StatusOr<Descriptor> listenOn(const Address &address);
/// On all addresses of this machine, of IPv4 and, where there is that, IPv6.
StatusOr<Descriptor> listenOnPort(uint16_t port);
/// Tries the addresses in turn until somebody listens at one, or the deadline has passed: Timeout.
/// If there are several, each has a second a time. PeerFailed: nobody listens at any after
/// `mostRefused`, which is for those where somebody did.
StatusOr<Descriptor> connectTo(std::span<const Address> addresses, const Patience &patience,
                               std::chrono::milliseconds mostRefused = kNoDeadline);
/// Begins to connect from an address of this machine, whatever its port, by whose interface a
/// link-local one is reached. SystemError.
StatusOr<Descriptor> beginConnect(const Address &from, const Address &to);
/// Whether that has succeeded by now; PeerFailed if it has failed.
StatusOr<bool> isConnected(const Descriptor &socket);
/// The next connection to a listener, if there is one by now: else no descriptor. SystemError: this
/// process or the machine has no descriptor or no memory left for it.
StatusOr<Descriptor> acceptNow(const Descriptor &listener);
/// The next one. Timeout; SystemError as of acceptNow().
StatusOr<Descriptor> acceptFrom(const Descriptor &listener, const Deadline &deadline);
/// This side's address of a socket.
StatusOr<Address> addressOf(int socket);
inline StatusOr<Address> addressOf(const Descriptor &socket) { return addressOf(socket.get()); }
/// The other side's.
StatusOr<Address> addressOfPeer(int socket);
inline StatusOr<Address> addressOfPeer(const Descriptor &socket) {
  return addressOfPeer(socket.get());
}
/// Whose the other side's is, or "an unknown address".
std::string peerOf(const Descriptor &socket);

/// Whether its other side has ended it, and all that was said before is read. False without a
/// socket.
bool hasEnded(const Descriptor &socket);

/// Timeout; PeerFailed if the connection ends before all is there; or why it is not waited for.
Status sendAll(const Descriptor &socket, std::span<const std::byte> bytes,
               const Patience &patience);
Status receiveAll(const Descriptor &socket, std::span<std::byte> bytes, const Patience &patience);

template <class Record>
Status sendRecord(const Descriptor &socket, const Record &record, const Patience &patience) {
  return sendAll(socket, std::as_bytes(std::span(&record, 1)), patience);
}
template <class Record>
Status receiveRecord(const Descriptor &socket, Record &record, const Patience &patience) {
  return receiveAll(socket, std::as_writable_bytes(std::span(&record, 1)), patience);
}

} // namespace occl::net
