#include "nccl/bootstrap/network.h"

#include "nccl/base/environment.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace occl::nccl {

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(file, other.file);
  return *this;
}

Socket::~Socket() {
  if (file >= 0)
    close(file);
}

Address localAddress(const std::array<uint8_t, 8> &rootName) {
  Address address;
  auto *local = reinterpret_cast<sockaddr_un *>(&address.storage);
  local->sun_family = AF_UNIX;
  std::string name = "occl-nccl-";
  for (uint8_t byte : rootName)
    for (int digit : {byte >> 4, byte & 15})
      name += "0123456789abcdef"[digit];
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

namespace {

/// NCCL_SOCKET_IFNAME: prefixes with commas between them; ^ in front: none of these; = in front:
/// whole names.
class InterfaceChoice {
public:
  InterfaceChoice() {
    std::string list = setting("NCCL_SOCKET_IFNAME").value_or("");
    isGiven = !list.empty();
    if (!isGiven)
      list = "^lo,docker";
    isExclusion = list[0] == '^';
    if (isExclusion)
      list.erase(0, 1);
    isWhole = !list.empty() && list[0] == '=';
    if (isWhole)
      list.erase(0, 1);
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      if (end > begin)
        names.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  bool takes(const std::string &interface) const {
    for (const std::string &name : names)
      if (isWhole ? interface == name : interface.starts_with(name))
        return !isExclusion;
    return isExclusion;
  }

  bool isGiven = false;

private:
  bool isExclusion = false, isWhole = false;
  std::vector<std::string> names;
};

bool isUsable(const ifaddrs &each) {
  if (!each.ifa_addr || !(each.ifa_flags & IFF_UP))
    return false;
  const std::string family = setting("NCCL_SOCKET_FAMILY").value_or("");
  if (each.ifa_addr->sa_family == AF_INET)
    return family != "AF_INET6";
  if (each.ifa_addr->sa_family != AF_INET6 || family == "AF_INET")
    return false;
  const auto *six = reinterpret_cast<const sockaddr_in6 *>(each.ifa_addr);
  return !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr); // its meaning is another one on each machine
}

} // namespace

Address interfaceAddress() {
  Address chosen;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return chosen;
  const InterfaceChoice choice;
  auto take = [&](auto &&accepts) {
    for (const ifaddrs *each = all; each && chosen.length == 0; each = each->ifa_next)
      if (isUsable(*each) && accepts(*each)) {
        chosen.length =
            each->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        std::memcpy(&chosen.storage, each->ifa_addr, chosen.length);
      }
  };
  take([&](const ifaddrs &each) { return choice.takes(each.ifa_name); });
  if (!choice.isGiven)
    take([](const ifaddrs &each) { return (each.ifa_flags & IFF_LOOPBACK) != 0; });
  freeifaddrs(all);
  return chosen;
}

void storeAddress(const Address &address, IdLayout &id) {
  if (address.length == 0)
    return;
  if (address.storage.ss_family == AF_INET) {
    const auto *four = reinterpret_cast<const sockaddr_in *>(&address.storage);
    id.family = 4;
    id.port = ntohs(four->sin_port);
    std::memcpy(id.address.data(), &four->sin_addr, 4);
  } else {
    const auto *six = reinterpret_cast<const sockaddr_in6 *>(&address.storage);
    id.family = 6;
    id.port = ntohs(six->sin6_port);
    std::memcpy(id.address.data(), &six->sin6_addr, 16);
  }
}

Address loadAddress(const IdLayout &id) {
  Address address;
  if (id.family == 4) {
    auto *four = reinterpret_cast<sockaddr_in *>(&address.storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(id.port);
    std::memcpy(&four->sin_addr, id.address.data(), 4);
    address.length = sizeof(*four);
  } else if (id.family == 6) {
    auto *six = reinterpret_cast<sockaddr_in6 *>(&address.storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(id.port);
    std::memcpy(&six->sin6_addr, id.address.data(), 16);
    address.length = sizeof(*six);
  }
  return address;
}

std::string textOf(const Address &address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    const auto *four = reinterpret_cast<const sockaddr_in *>(&address.storage);
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(four->sin_port));
  }
  if (address.storage.ss_family != AF_INET6)
    return "a local socket";
  const auto *six = reinterpret_cast<const sockaddr_in6 *>(&address.storage);
  inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
  return "[" + std::string(text) + "]:" + std::to_string(ntohs(six->sin6_port));
}

Socket listenAt(Address &address) {
  if (address.length == 0)
    return Socket();
  Socket made(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  constexpr int kBacklog = 1024;
  if (!made || bind(made.get(), address.get(), address.length) != 0 ||
      listen(made.get(), kBacklog) != 0)
    return Socket();
  address.length = sizeof(address.storage);
  getsockname(made.get(), address.get(), &address.length);
  return made;
}

/// As OCCL listens: at all addresses of both families, if there are both.
Socket holdPort(Address &address, std::string &why) {
  if (address.length == 0) {
    why = "no interface is up that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY allow";
    return Socket();
  }
  Address any;
  any.storage.ss_family = AF_INET6;
  any.length = sizeof(sockaddr_in6);
  Socket made(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1, no = 0;
  if (made) {
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  } else {
    any.storage.ss_family = AF_INET;
    any.length = sizeof(sockaddr_in);
    made = Socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  if (!made || setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(made.get(), any.get(), any.length) != 0) {
    why = std::string("no port is free: ") + std::strerror(errno);
    return Socket();
  }
  any.length = sizeof(any.storage);
  getsockname(made.get(), any.get(), &any.length);
  const auto portOf = [](Address &of) -> in_port_t & {
    return of.storage.ss_family == AF_INET
               ? reinterpret_cast<sockaddr_in *>(&of.storage)->sin_port
               : reinterpret_cast<sockaddr_in6 *>(&of.storage)->sin6_port;
  };
  portOf(address) = portOf(any);
  return made;
}

bool sendWhole(int file, const void *message, size_t bytes) {
  const char *from = static_cast<const char *>(message);
  while (bytes > 0) {
    const ssize_t sent = send(file, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    from += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

} // namespace occl::nccl
