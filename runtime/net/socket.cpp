#include "runtime/net/socket.h"

#include "runtime/sync/thread.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

sockaddr_in systemAddress(const Address &address) {
  sockaddr_in system{};
  system.sin_family = AF_INET;
  system.sin_addr.s_addr = htonl(address.host);
  system.sin_port = htons(address.port);
  return system;
}

Address addressFrom(const sockaddr_in &system) {
  return {ntohl(system.sin_addr.s_addr), ntohs(system.sin_port)};
}

Descriptor makeSocket() {
  return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// False: not before the deadline.
bool awaitEvent(const Descriptor &socket, short events, const Deadline &deadline) {
  for (;;) {
    pollfd waiting = {socket.get(), events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 60000)));
    if (ready > 0)
      return true;
    if (ready == 0 && deadline.passed())
      return false;
  }
}

/// The error with which trying to connect has ended, or 0.
int connectOnce(const Descriptor &socket, const Address &address, const Deadline &deadline) {
  const sockaddr_in system = systemAddress(address);
  if (connect(socket.get(), reinterpret_cast<const sockaddr *>(&system), sizeof system) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!awaitEvent(socket, POLLOUT, deadline))
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// A port of this machine that is free may be given to the socket that looks for it: it is
/// connected to itself then.
bool isConnectedToItself(const Descriptor &socket) {
  sockaddr_in own{}, other{};
  socklen_t ownSize = sizeof own, otherSize = sizeof other;
  getsockname(socket.get(), reinterpret_cast<sockaddr *>(&own), &ownSize);
  getpeername(socket.get(), reinterpret_cast<sockaddr *>(&other), &otherSize);
  return addressFrom(own) == addressFrom(other);
}

Status lateFor(const char *what, const Descriptor &socket) {
  return {StatusCode::Timeout, peerOf(socket) + " did not " + what + " in time"};
}

} // namespace

std::string Address::text() const {
  std::string numbers;
  for (int shift = 24; shift >= 0; shift -= 8)
    numbers += std::to_string(host >> shift & 255) + (shift != 0 ? "." : ":");
  return numbers + std::to_string(port);
}

StatusOr<Address> resolve(std::string_view text) {
  const auto invalid = [&](const std::string &why) {
    return Status(StatusCode::InvalidArgument,
                  "the address '" + std::string(text) + "' " + why + ", expected HOST:PORT");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalid("has no host or no port");
  Address address;
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || rest != end || address.port == 0)
    return invalid("has no port of 1 to 65535");
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  const std::string host(text.substr(0, colon));
  if (const int failed = getaddrinfo(host.c_str(), nullptr, &wanted, &found); failed != 0)
    return invalid(std::string("names no IPv4 host (") + gai_strerror(failed) + ")");
  address.host = ntohl(reinterpret_cast<const sockaddr_in *>(found->ai_addr)->sin_addr.s_addr);
  freeaddrinfo(found);
  return address;
}

StatusOr<Descriptor> listenOn(const Address &address) {
  Descriptor socket = makeSocket();
  const int yes = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in system = systemAddress(address);
  constexpr int kBacklog = 1024;
  if (!socket.valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr *>(&system), sizeof system) != 0 ||
      listen(socket.get(), kBacklog) != 0)
    return systemError("cannot listen on " + address.text(), errno);
  return socket;
}

StatusOr<Descriptor> connectTo(const Address &address, const Deadline &deadline) {
  constexpr auto kBetweenTries = 20ms;
  for (;;) {
    Descriptor socket = makeSocket();
    if (!socket.valid())
      return systemError("cannot make a socket", errno);
    const int error = connectOnce(socket, address, deadline);
    if (error == 0 && !isConnectedToItself(socket))
      return socket;
    if (deadline.passed())
      return Status(StatusCode::Timeout, "nobody answers at " + address.text() + ": " +
                                             strerror(error != 0 ? error : ECONNREFUSED));
    sleepFor(kBetweenTries);
  }
}

StatusOr<Descriptor> acceptFrom(const Descriptor &listener, const Deadline &deadline) {
  for (;;) {
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid())
      return socket;
    // A connection that has ended before it was accepted is an error here, too.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      return systemError("cannot accept a connection", errno);
    if (!awaitEvent(listener, POLLIN, deadline))
      return Status(StatusCode::Timeout, "nobody has connected in time");
  }
}

StatusOr<Address> addressOf(const Descriptor &socket) {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr *>(&own), &size) != 0)
    return systemError("a socket has no address", errno);
  return addressFrom(own);
}

std::string peerOf(const Descriptor &socket) {
  sockaddr_in other{};
  socklen_t size = sizeof other;
  return getpeername(socket.get(), reinterpret_cast<sockaddr *>(&other), &size) == 0
             ? addressFrom(other).text()
             : "an unknown address";
}

Status sendAll(const Descriptor &socket, std::span<const std::byte> bytes,
               const Deadline &deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      bytes = bytes.subspan(static_cast<size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!awaitEvent(socket, POLLOUT, deadline))
        return lateFor("take what was sent", socket);
    } else if (errno != EINTR)
      return {StatusCode::PeerFailed, "the connection has ended: " + std::string(strerror(errno))};
  }
  return {};
}

Status receiveAll(const Descriptor &socket, std::span<std::byte> bytes, const Deadline &deadline) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<size_t>(got));
    else if (got == 0)
      return {StatusCode::PeerFailed, "the other side has closed the connection"};
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!awaitEvent(socket, POLLIN, deadline))
        return lateFor("answer", socket);
    } else if (errno != EINTR)
      return {StatusCode::PeerFailed, "the connection has ended: " + std::string(strerror(errno))};
  }
  return {};
}

} // namespace occl::net
