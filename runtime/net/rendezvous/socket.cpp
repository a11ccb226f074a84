// TCP sockets for setting up, with addresses of both families and with deadlines.
#include "runtime/net/rendezvous/socket.h"

#include "runtime/base/long_wait.h"
#include "runtime/control/shm/forked.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

constexpr std::array<uint8_t, 12> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// As the system takes it.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

/// `scope`: the number of the interface, of a link-local address of IPv6.
SystemAddress systemAddress(const Address &address, uint32_t scope = 0) {
  SystemAddress system;
  // IPv4 addresses are kept as IPv6 writes them.
  if (address.isIpv4()) {
    auto &ipv4 = reinterpret_cast<sockaddr_in &>(system.storage);
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(address.port);
    std::memcpy(&ipv4.sin_addr, address.host.data() + kIpv4Prefix.size(), sizeof ipv4.sin_addr);
    system.size = sizeof ipv4;
  } else {
    auto &ipv6 = reinterpret_cast<sockaddr_in6 &>(system.storage);
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(address.port);
    std::memcpy(&ipv6.sin6_addr, address.host.data(), sizeof ipv6.sin6_addr);
    ipv6.sin6_scope_id = address.isLinkLocal() ? scope : 0;
    system.size = sizeof ipv6;
  }
  return system;
}

Address addressFrom(const sockaddr *system) {
  Address address;
  if (system->sa_family == AF_INET) {
    const auto *ipv4 = reinterpret_cast<const sockaddr_in *>(system);
    std::ranges::copy(kIpv4Prefix, address.host.begin());
    std::memcpy(address.host.data() + kIpv4Prefix.size(), &ipv4->sin_addr, sizeof ipv4->sin_addr);
    address.port = ntohs(ipv4->sin_port);
  } else if (system->sa_family == AF_INET6) {
    const auto *ipv6 = reinterpret_cast<const sockaddr_in6 *>(system);
    std::memcpy(address.host.data(), &ipv6->sin6_addr, sizeof ipv6->sin6_addr);
    address.port = ntohs(ipv6->sin6_port);
  }
  return address;
}

/// Of an address of this machine: the number of the interface that its system address has to name.
uint32_t scopeOf(const Address &own) {
  ifaddrs *all = nullptr;
  if (!own.isLinkLocal() || getifaddrs(&all) != 0)
    return 0;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> given(all, freeifaddrs);
  for (const ifaddrs *each = all; each; each = each->ifa_next)
    if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET6 &&
        addressFrom(each->ifa_addr).host == own.host)
      return if_nametoindex(each->ifa_name);
  return 0;
}

Descriptor makeSocket(int family) {
  return bootstrap::openNotInherited(
      [&] { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

/// Timeout, or why nobody waits until then.
Status awaitEvent(const Descriptor &socket, short events, const Patience &patience,
                  const Deadline &deadline) {
  for (;;) {
    pollfd waiting = {socket.get(), events, 0};
    const int ready = poll(&waiting, 1, patience.milliseconds(deadline));
    if (ready > 0)
      return {};
    if (const Status &gone = patience.look(); !gone.ok())
      return gone;
    if (ready == 0 && deadline.passed())
      return {StatusCode::Timeout, ""};
  }
}

/// The error with which trying to connect has ended, or 0.
int connectOnce(const Descriptor &socket, const Address &address, const Patience &patience,
                const Deadline &deadline) {
  const SystemAddress system = systemAddress(address);
  if (connect(socket.get(), system.get(), system.size) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  // The connection is under way, and its result shows once the socket is writable.
  if (!awaitEvent(socket, POLLOUT, patience, deadline).ok())
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// A port of this machine that is free may be given to the socket that looks for it: it is
/// connected to itself then.
bool isConnectedToItself(const Descriptor &socket) {
  const auto own = addressOf(socket), other = addressOfPeer(socket);
  return own.ok() && other.ok() && *own == *other;
}

/// Of a socket on which `what` is to be possible.
Status awaitPeer(const Descriptor &socket, short events, const char *what,
                 const Patience &patience) {
  const Status status = awaitEvent(socket, events, patience, patience.end());
  if (status.code() == StatusCode::Timeout)
    return {StatusCode::Timeout, peerOf(socket) + " did not " + what + " in time"};
  return status;
}

/// "HOST:PORT" in its parts.
struct HostAndPort {
  std::string host;
  uint16_t port = 0;
};

Status invalidAddress(std::string_view text, const std::string &why) {
  return {StatusCode::InvalidArgument,
          "the address '" + std::string(text) + "' " + why + ", expected HOST:PORT or [IPv6]:PORT"};
}

StatusOr<HostAndPort> divide(std::string_view text) {
  // The port is behind the last colon; IPv6 addresses have colons, so they need brackets.
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return invalidAddress(text, "has no host or no port");
  std::string host(text.substr(0, colon));
  const bool hasBrackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (hasBrackets)
    host = host.substr(1, host.size() - 2);
  if (!hasBrackets && host.find(':') != std::string::npos)
    return invalidAddress(text, "has an IPv6 address without brackets");
  uint16_t port = 0;
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || rest != end || port == 0)
    return invalidAddress(text, "has no port of 1 to 65535");
  return HostAndPort{std::move(host), port};
}

Status isLinkLocalIn(std::string_view text) {
  return invalidAddress(text, "has a link-local host");
}

/// All addresses of the name, each once; what getaddrinfo() says, or 0.
int lookUp(const HostAndPort &named, std::vector<Address> &addresses, int flags = 0) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;
  if (const int failed = getaddrinfo(named.host.c_str(), nullptr, &wanted, &found); failed != 0)
    return failed;
  for (const addrinfo *it = found; it; it = it->ai_next) {
    Address address = addressFrom(it->ai_addr);
    address.port = named.port;
    if (!address.isLinkLocal() && std::ranges::find(addresses, address) == addresses.end())
      addresses.push_back(address);
  }
  freeaddrinfo(found);
  return 0;
}

} // namespace

bool Address::isIpv4() const {
  return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), host.begin());
}

bool Address::isAny() const {
  const size_t begin = isIpv4() ? kIpv4Prefix.size() : 0;
  return std::ranges::all_of(std::span(host).subspan(begin),
                             [](uint8_t byte) { return byte == 0; });
}

bool Address::isLoopback() const {
  constexpr std::array<uint8_t, 16> kIpv6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return isIpv4() ? host[kIpv4Prefix.size()] == 127 : host == kIpv6;
}

bool Address::isLinkLocal() const { return host[0] == 0xfe && (host[1] & 0xc0) == 0x80; }

std::string Address::text() const {
  char numbers[INET6_ADDRSTRLEN] = {};
  // An IPv4 address is the end of the one that is kept.
  const uint8_t *ipv4 = host.data() + kIpv4Prefix.size();
  if (isIpv4())
    inet_ntop(AF_INET, ipv4, numbers, sizeof numbers);
  else
    inet_ntop(AF_INET6, host.data(), numbers, sizeof numbers);
  const std::string text = numbers;
  return (isIpv4() ? text : "[" + text + "]") + ":" + std::to_string(port);
}

Address loopback(uint16_t port) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return addressFrom(reinterpret_cast<const sockaddr *>(&ipv4));
}

StatusOr<std::vector<Address>> resolve(std::string_view text, const Deadline &deadline) {
  constexpr auto kBetweenTries = 200ms, kSilent = 1000ms;
  const auto named = divide(text);
  if (!named.ok())
    return named.status();
  // A cluster may tell of a name a while after its machine has started.
  std::vector<Address> addresses;
  const Deadline silent(kSilent);
  bool isSaid = false;
  int failed = lookUp(*named, addresses);
  while ((failed == EAI_AGAIN || failed == EAI_NONAME) && !deadline.passed()) {
    // A mistyped name is not only said at the deadline.
    if (!isSaid && silent.passed()) {
      isSaid = true;
      reportLongWait("the address '" + std::string(text) + "' names no host so far (" +
                     gai_strerror(failed) + "); it is looked up again until the deadline");
    }
    sleepFor(std::min<std::chrono::nanoseconds>(kBetweenTries, deadline.remaining()));
    failed = lookUp(*named, addresses);
  }
  if (failed != 0)
    return invalidAddress(text, std::string("names no host (") + gai_strerror(failed) + ")");
  if (addresses.empty())
    return isLinkLocalIn(text);
  return addresses;
}

StatusOr<std::vector<Address>> resolvePort(std::string_view text) {
  const auto named = divide(text);
  if (!named.ok())
    return named.status();
  std::vector<Address> addresses;
  if (lookUp(*named, addresses, AI_NUMERICHOST) != 0) {
    addresses.emplace_back();
    addresses.front().port = named->port;
  }
  if (addresses.empty())
    return isLinkLocalIn(text);
  return addresses;
}

namespace {

StatusOr<Descriptor> listenOn(int family, SystemAddress system, const std::string &text) {
  const auto failed = [&] { return systemError("cannot listen on " + text, errno); };
  Descriptor socket = makeSocket(family);
  if (!socket.valid())
    return failed();
  // The port of a job that has just ended is free at once.
  const int yes = 1, no = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (family == AF_INET6) // of IPv4, too
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  constexpr int kBacklog = 4096; // all ranks may come at once
  if (bind(socket.get(), system.get(), system.size) != 0 || listen(socket.get(), kBacklog) != 0)
    return failed();
  return socket;
}

} // namespace

StatusOr<Descriptor> listenOn(const Address &address) {
  return listenOn(address.isIpv4() ? AF_INET : AF_INET6, systemAddress(address, scopeOf(address)),
                  address.text());
}

StatusOr<Descriptor> listenOnPort(uint16_t port) {
  const std::string text = "port " + std::to_string(port);
  Address any;
  any.port = port;
  // A socket of IPv6 serves both families.
  if (makeSocket(AF_INET6).valid())
    return listenOn(AF_INET6, systemAddress(any), text);
  std::ranges::copy(kIpv4Prefix, any.host.begin());
  return listenOn(AF_INET, systemAddress(any), text);
}

StatusOr<Descriptor> connectTo(std::span<const Address> addresses, const Patience &patience,
                               std::chrono::milliseconds mostRefused) {
  constexpr auto kBetweenTries = 20ms;
  constexpr std::chrono::milliseconds kAtATime = 1s;
  const Deadline isListening(mostRefused);
  for (;;) {
    // The error tells the failures of the last round.
    std::string failures;
    bool isRefused = true;
    for (const Address &address : addresses) {
      Descriptor socket = makeSocket(address.isIpv4() ? AF_INET : AF_INET6);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience.remaining());
      // With several addresses, a silent one must leave time for the others.
      const Deadline own(addresses.size() > 1 ? std::min(left, kAtATime) : left);
      int error = socket.valid() ? connectOnce(socket, address, patience, own) : errno;
      if (error == 0 && !isConnectedToItself(socket))
        return socket;
      error = error != 0 ? error : ECONNREFUSED;
      isRefused &= error == ECONNREFUSED;
      failures += (failures.empty() ? "" : ", nor at ") + address.text() + ": " + strerror(error);
    }
    if (const Status &gone = patience.look(); !gone.ok())
      return gone;
    if (isRefused && isListening.passed())
      return Status(StatusCode::PeerFailed, "nobody listens any more at " + failures);
    if (patience.passed())
      return Status(StatusCode::Timeout, "nobody answers at " + failures);
    sleepFor(kBetweenTries);
  }
}

StatusOr<Descriptor> beginConnect(const Address &from, const Address &to) {
  Descriptor socket = makeSocket(to.isIpv4() ? AF_INET : AF_INET6);
  Address own = from;
  // Any port of that address will do.
  own.port = 0;
  const uint32_t scope = scopeOf(own);
  const SystemAddress source = systemAddress(own, scope), destination = systemAddress(to, scope);
  if (!socket.valid() || bind(socket.get(), source.get(), source.size) != 0 ||
      (connect(socket.get(), destination.get(), destination.size) != 0 && errno != EINPROGRESS))
    return systemError("cannot connect to " + to.text(), errno);
  return socket;
}

StatusOr<bool> isConnected(const Descriptor &socket) {
  // A socket is writable once the attempt has ended, well or not.
  pollfd waiting = {socket.get(), POLLOUT, 0};
  if (poll(&waiting, 1, 0) <= 0)
    return false;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0 || isConnectedToItself(socket))
    return Status(StatusCode::PeerFailed, strerror(error != 0 ? error : ECONNREFUSED));
  return true;
}

StatusOr<Descriptor> acceptNow(const Descriptor &listener) {
  Descriptor socket = bootstrap::openNotInherited(
      [&] { return accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  // A connection that has ended before it was accepted is an error here, too.
  if (!socket.valid() &&
      (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
    return systemError("cannot accept a connection", errno);
  return socket;
}

StatusOr<Descriptor> acceptFrom(const Descriptor &listener, const Deadline &deadline) {
  for (;;) {
    auto socket = acceptNow(listener);
    if (!socket.ok() || socket->valid())
      return socket;
    if (!awaitEvent(listener, POLLIN, deadline, deadline).ok())
      return Status(StatusCode::Timeout, "nobody has connected in time");
  }
}

StatusOr<Address> addressOf(int socket) {
  SystemAddress own;
  if (getsockname(socket, own.get(), &own.size) != 0)
    return systemError("a socket has no address", errno);
  return addressFrom(own.get());
}

StatusOr<Address> addressOfPeer(int socket) {
  SystemAddress other;
  if (getpeername(socket, other.get(), &other.size) != 0)
    return systemError("a socket has no peer", errno);
  return addressFrom(other.get());
}

std::string peerOf(const Descriptor &socket) {
  const auto other = addressOfPeer(socket);
  return other.ok() ? other->text() : "an unknown address";
}

bool hasEnded(const Descriptor &socket) {
  char byte = 0;
  // Peeking leaves what has come, and the end, to whoever reads.
  const ssize_t got =
      socket.valid() ? recv(socket.get(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) : 1;
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

Status sendAll(const Descriptor &socket, std::span<const std::byte> bytes,
               const Patience &patience) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      bytes = bytes.subspan(static_cast<size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Status ready = awaitPeer(socket, POLLOUT, "take what was sent", patience); !ready.ok())
        return ready;
    } else if (errno != EINTR)
      return {StatusCode::PeerFailed, "the connection has ended: " + std::string(strerror(errno))};
  }
  return {};
}

Status receiveAll(const Descriptor &socket, std::span<std::byte> bytes, const Patience &patience) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<size_t>(got));
    else if (got == 0)
      return {StatusCode::PeerFailed, "the other side has closed the connection"};
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (Status ready = awaitPeer(socket, POLLIN, "answer", patience); !ready.ok())
        return ready;
    } else if (errno != EINTR)
      return {StatusCode::PeerFailed, "the connection has ended: " + std::string(strerror(errno))};
  }
  return {};
}

} // namespace occl::net
