#include "support/own_address.h"

#include "support/name_list.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

namespace occl {

namespace {

/// Its meaning is another one on each machine.
bool isLinkLocal(const sockaddr *address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

/// This side's address of a socket that would send there; length 0 if it could not.
SocketAddress ownSideTowards(const addrinfo &there) {
  SocketAddress own;
  // A datagram socket is "connected" without a packet being sent: the kernel only looks up the
  // route, and with it the address that packets there would leave from.
  const int file = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0)
    return own;
  own.length = sizeof own.storage;
  if (connect(file, there.ai_addr, there.ai_addrlen) != 0 ||
      getsockname(file, own.get(), &own.length) != 0)
    own.length = 0;
  close(file);
  return own;
}

std::string setting(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

} // namespace

InterfaceChoice InterfaceChoice::fromEnvironment() {
  const std::string own = setting("OCCL_SOCKET_IFNAME");
  return {own.empty() ? setting("NCCL_SOCKET_IFNAME") : own, setting("NCCL_SOCKET_FAMILY")};
}

bool isUsable(const ifaddrs &each, const std::string &family) {
  if (!each.ifa_addr || !(each.ifa_flags & IFF_UP))
    // An address of an interface that is down is listed, too, but cannot be reached.
    return false;
  if (each.ifa_addr->sa_family == AF_INET)
    return family != "AF_INET6";
  if (each.ifa_addr->sa_family != AF_INET6 || family == "AF_INET")
    return false;
  return !isLinkLocal(each.ifa_addr);
}

bool SocketAddress::isLoopback() const {
  if (storage.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in *>(&storage)->sin_addr.s_addr) >> 24 == 127;
  const auto &six = reinterpret_cast<const sockaddr_in6 *>(&storage)->sin6_addr;
  return storage.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six);
}

void SocketAddress::setPort(uint16_t port) {
  if (storage.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in *>(&storage)->sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6 *>(&storage)->sin6_port = htons(port);
}

std::string SocketAddress::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto *four = reinterpret_cast<const sockaddr_in *>(&storage);
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(four->sin_port));
  }
  if (storage.ss_family != AF_INET6)
    return "a local socket";
  const auto *six = reinterpret_cast<const sockaddr_in6 *>(&storage);
  inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + std::to_string(ntohs(six->sin6_port));
}

SocketAddress interfaceAddress(const std::string &names, const std::string &family) {
  SocketAddress chosen;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return chosen;
  // Docker's bridges have addresses that no other machine reaches, so they are taken only if they
  // are named.
  const NameList choice(names.empty() ? "^lo,docker" : names);
  auto take = [&](auto &&accepts) {
    for (const ifaddrs *each = all; each && chosen.length == 0; each = each->ifa_next)
      // The first that fits stays: interfaces are listed in the kernel's order, which is the same
      // in each process of a machine.
      if (isUsable(*each, family) && accepts(*each)) {
        chosen.length =
            each->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        std::memcpy(&chosen.storage, each->ifa_addr, chosen.length);
      }
  };
  // Loopback last, and only where nobody has chosen: it serves ranks of one machine.
  take([&](const ifaddrs &each) { return choice.takes(each.ifa_name); });
  if (names.empty())
    take([](const ifaddrs &each) { return (each.ifa_flags & IFF_LOOPBACK) != 0; });
  freeifaddrs(all);
  return chosen;
}

SocketAddress addressTowards(const std::string &host) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  // Port 9 (discard) is never sent to; a name without a port resolves to nothing that can be
  // connected.
  if (getaddrinfo(host.c_str(), "9", &wanted, &found) != 0)
    return {};
  SocketAddress own;
  for (const addrinfo *it = found; it && own.length == 0; it = it->ai_next) {
    own = ownSideTowards(*it);
    if (own.isLoopback() || isLinkLocal(own.get()))
      own.length = 0;
  }
  freeaddrinfo(found);
  return own;
}

/// As OCCL listens: at all addresses of both families, if there are both.
HeldPort HeldPort::hold(std::string &why) {
  HeldPort held;
  // The port is the kernel's choice (0 in `any`), and it stays bound, so that no other process is
  // given it before this one listens.
  SocketAddress any;
  any.storage.ss_family = AF_INET6;
  any.length = sizeof(sockaddr_in6);
  held.file = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1, no = 0;
  if (held.file >= 0) {
    // Some systems make IPv6 sockets deaf to IPv4 by default (net.ipv6.bindv6only).
    setsockopt(held.file, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  } else {
    any.storage.ss_family = AF_INET;
    any.length = sizeof(sockaddr_in);
    held.file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  // With SO_REUSEADDR on both sockets the library can bind the same port again while this one holds
  // it: neither listens yet.
  if (held.file < 0 || setsockopt(held.file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(held.file, any.get(), any.length) != 0) {
    why = std::string("no port is free: ") + std::strerror(errno);
    return {};
  }
  // The kernel has filled in the port only now.
  any.length = sizeof any.storage;
  getsockname(held.file, any.get(), &any.length);
  held.port = ntohs(any.storage.ss_family == AF_INET
                        ? reinterpret_cast<const sockaddr_in *>(&any.storage)->sin_port
                        : reinterpret_cast<const sockaddr_in6 *>(&any.storage)->sin6_port);
  return held;
}

HeldPort::~HeldPort() {
  if (file >= 0)
    close(file);
}

} // namespace occl
