#include "nccl/bootstrap/network.h"

#include "nccl/base/environment.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

namespace occl::nccl {

Address localAddress(const std::array<uint8_t, 8> &rootName) {
  Address address;
  // In the abstract namespace (a name that begins with a zero byte): it needs no folder, and is
  // gone with the process, so that nothing is left behind by one that was killed.
  auto *local = reinterpret_cast<sockaddr_un *>(&address.storage);
  local->sun_family = AF_UNIX;
  std::string name = "occl-nccl-";
  for (uint8_t byte : rootName)
    for (int digit : {byte >> 4, byte & 15})
      name += "0123456789abcdef"[digit];
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  // The length ends the name; zero bytes behind it would be part of it.
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Address interfaceAddress() {
  return occl::interfaceAddress(setting("NCCL_SOCKET_IFNAME").value_or(""),
                                setting("NCCL_SOCKET_FAMILY").value_or(""));
}

void storeAddress(const Address &address, IdLayout &id) {
  if (address.length == 0)
    return;
  // The id has room for an address and a port, in no system's layout: ranks may be of other builds.
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
  // An id of a process without network has family 0, and gives an address of length 0.
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

Socket listenAt(Address &address) {
  if (address.length == 0)
    return Socket();
  Socket made = Socket::open([&] {
    return socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
  // Ranks of large jobs arrive within milliseconds; with a full backlog the system drops them, and
  // they would try again a second later.
  constexpr int kBacklog = 1024;
  if (!made || bind(made.get(), address.get(), address.length) != 0 ||
      listen(made.get(), kBacklog) != 0)
    return Socket();
  // The port was the system's choice.
  address.length = sizeof(address.storage);
  getsockname(made.get(), address.get(), &address.length);
  return made;
}

HeldPort holdPort(Address &address, std::string &why) {
  if (address.length == 0) {
    why = "no interface is up that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY allow";
    return {};
  }
  HeldPort held = HeldPort::hold(why);
  address.setPort(held.number());
  return held;
}

bool sendWhole(int file, const void *message, size_t bytes) {
  const char *from = static_cast<const char *>(message);
  while (bytes > 0) {
    // Without SIGPIPE: the program has its own idea of signals. A peer that is gone is an error
    // here.
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
