// The system calls of the runtime that concern sockets: the linker (--wrap) leads them here, and
// those of threads of a simulated machine go to the simulated network.
#include "test/simulation/tcp_network.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <map>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using occl::simulation::Address;
using occl::simulation::TcpNetwork;
using occl::simulation::World;

/// Null outside of a simulated machine.
TcpNetwork *simulated() {
  World *world = World::current();
  return world && world->currentThread() != 0 ? &world->network() : nullptr;
}

bool isSimulated(int descriptor) { return simulated() && TcpNetwork::isOwn(descriptor); }

/// As system calls return.
template <class Result> Result returned(Result result) {
  if (result >= 0)
    return result;
  errno = static_cast<int>(-result);
  return -1;
}

Address addressFrom(const sockaddr *given) {
  Address address;
  if (given->sa_family == AF_INET) {
    const auto *ipv4 = reinterpret_cast<const sockaddr_in *>(given);
    address.host[10] = address.host[11] = 0xff;
    std::memcpy(&address.host[12], &ipv4->sin_addr, 4);
    address.port = ntohs(ipv4->sin_port);
  } else {
    const auto *ipv6 = reinterpret_cast<const sockaddr_in6 *>(given);
    std::memcpy(address.host.data(), &ipv6->sin6_addr, address.host.size());
    address.port = ntohs(ipv6->sin6_port);
  }
  return address;
}

int give(int result, const Address &address, sockaddr *to, socklen_t *size) {
  if (result < 0)
    return returned(result);
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  std::memcpy(&ipv6.sin6_addr, address.host.data(), address.host.size());
  ipv6.sin6_port = htons(address.port);
  std::memcpy(to, &ipv6, std::min<size_t>(*size, sizeof ipv6));
  *size = sizeof ipv6;
  return 0;
}

std::span<const std::byte> bytesOf(const iovec &part) {
  return {static_cast<const std::byte *>(part.iov_base), part.iov_len};
}

} // namespace

extern "C" {

int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol) {
  return simulated() ? simulated()->makeSocket() : __real_socket(family, type, protocol);
}

int __real_bind(int file, const sockaddr *address, socklen_t size);
int __wrap_bind(int file, const sockaddr *address, socklen_t size) {
  return isSimulated(file) ? returned(simulated()->bind(file, addressFrom(address)))
                           : __real_bind(file, address, size);
}

int __real_listen(int file, int backlog);
int __wrap_listen(int file, int backlog) {
  return isSimulated(file) ? returned(simulated()->listen(file, backlog))
                           : __real_listen(file, backlog);
}

int __real_connect(int file, const sockaddr *address, socklen_t size);
int __wrap_connect(int file, const sockaddr *address, socklen_t size) {
  return isSimulated(file) ? returned(simulated()->connect(file, addressFrom(address)))
                           : __real_connect(file, address, size);
}

int __real_accept4(int file, sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int file, sockaddr *address, socklen_t *size, int flags) {
  return isSimulated(file) ? returned(simulated()->accept(file))
                           : __real_accept4(file, address, size, flags);
}

ssize_t __real_send(int file, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int file, const void *bytes, size_t size, int flags) {
  return isSimulated(file)
             ? returned(simulated()->send(file, {static_cast<const std::byte *>(bytes), size}))
             : __real_send(file, bytes, size, flags);
}

ssize_t __real_recv(int file, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int file, void *bytes, size_t size, int flags) {
  return isSimulated(file) ? returned(simulated()->receive(
                                 file, {static_cast<std::byte *>(bytes), size}, flags & MSG_PEEK))
                           : __real_recv(file, bytes, size, flags);
}

ssize_t __real_sendmsg(int file, const msghdr *message, int flags);
ssize_t __wrap_sendmsg(int file, const msghdr *message, int flags) {
  if (!isSimulated(file))
    return __real_sendmsg(file, message, flags);
  std::vector<std::byte> all;
  for (size_t i = 0; i < message->msg_iovlen; ++i)
    all.insert(all.end(), bytesOf(message->msg_iov[i]).begin(), bytesOf(message->msg_iov[i]).end());
  return returned(simulated()->send(file, all));
}

ssize_t __real_recvmsg(int file, msghdr *message, int flags);
ssize_t __wrap_recvmsg(int file, msghdr *message, int flags) {
  if (!isSimulated(file))
    return __real_recvmsg(file, message, flags);
  ssize_t all = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const iovec &part = message->msg_iov[i];
    const ssize_t got = simulated()->receive(
        file, {static_cast<std::byte *>(part.iov_base), part.iov_len}, flags & MSG_PEEK);
    if (got <= 0)
      return all != 0 ? all : returned(got);
    all += got;
    if (static_cast<size_t>(got) < part.iov_len)
      break;
  }
  return all;
}

int __real_shutdown(int file, int how);
int __wrap_shutdown(int file, int how) {
  return isSimulated(file) ? returned(simulated()->shutdown(file)) : __real_shutdown(file, how);
}

int __real_close(int file);
int __wrap_close(int file) {
  return isSimulated(file) ? returned(simulated()->close(file)) : __real_close(file);
}

int __real_getsockname(int file, sockaddr *address, socklen_t *size);
int __wrap_getsockname(int file, sockaddr *address, socklen_t *size) {
  if (!isSimulated(file))
    return __real_getsockname(file, address, size);
  Address own;
  const int result = simulated()->addressOf(file, false, own);
  return give(result, own, address, size);
}

int __real_getpeername(int file, sockaddr *address, socklen_t *size);
int __wrap_getpeername(int file, sockaddr *address, socklen_t *size) {
  if (!isSimulated(file))
    return __real_getpeername(file, address, size);
  Address other;
  const int result = simulated()->addressOf(file, true, other);
  return give(result, other, address, size);
}

int __real_getsockopt(int file, int level, int option, void *value, socklen_t *size);
int __wrap_getsockopt(int file, int level, int option, void *value, socklen_t *size) {
  if (!isSimulated(file))
    return __real_getsockopt(file, level, option, value, size);
  if (level == SOL_SOCKET && option == SO_ERROR) {
    const int error = simulated()->error(file);
    std::memcpy(value, &error, sizeof error);
    return 0;
  }
  if (level == IPPROTO_TCP && option == TCP_INFO)
    return returned(simulated()->info(file, *static_cast<tcp_info *>(value)));
  return returned(-ENOPROTOOPT);
}

int __real_setsockopt(int file, int level, int option, const void *value, socklen_t size);
int __wrap_setsockopt(int file, int level, int option, const void *value, socklen_t size) {
  return isSimulated(file) ? 0 : __real_setsockopt(file, level, option, value, size);
}

int __real_ioctl(int file, unsigned long request, void *argument);
int __wrap_ioctl(int file, unsigned long request, void *argument) {
  if (!isSimulated(file))
    return __real_ioctl(file, request, argument);
  const int unacknowledged = simulated()->unacknowledged(file);
  if (request != SIOCOUTQ || unacknowledged < 0)
    return returned(-ENOTTY);
  std::memcpy(argument, &unacknowledged, sizeof unacknowledged);
  return 0;
}

int __real_poll(pollfd *polled, nfds_t number, int milliseconds);
int __wrap_poll(pollfd *polled, nfds_t number, int milliseconds) {
  return simulated() ? simulated()->poll({polled, number}, milliseconds)
                     : __real_poll(polled, number, milliseconds);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
  return simulated() ? simulated()->makeEpoll() : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int epoll, int operation, int file, epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int file, epoll_event *event) {
  return isSimulated(epoll) ? returned(simulated()->control(epoll, operation, file, event))
                            : __real_epoll_ctl(epoll, operation, file, event);
}

int __real_epoll_wait(int epoll, epoll_event *events, int most, int milliseconds);
int __wrap_epoll_wait(int epoll, epoll_event *events, int most, int milliseconds) {
  return isSimulated(epoll)
             ? returned(simulated()->wait(epoll, {events, static_cast<size_t>(most)}, milliseconds))
             : __real_epoll_wait(epoll, events, most, milliseconds);
}

int __real_eventfd(unsigned initial, int flags);
int __wrap_eventfd(unsigned initial, int flags) {
  return simulated() ? simulated()->makeEvent() : __real_eventfd(initial, flags);
}

ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __wrap_write(int file, const void *bytes, size_t size) {
  if (!isSimulated(file))
    return __real_write(file, bytes, size);
  uint64_t count = 0;
  std::memcpy(&count, bytes, sizeof count);
  return returned(simulated()->write(file, count));
}

/// Each machine is a host of its own, and has TCP alone.
char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name) {
  static std::map<uint32_t, std::string> hosts;
  static std::string tcp = "tcp";
  const std::string_view asked = name;
  if (!simulated() || (asked != "OCCL_HOSTID" && asked != "OCCL_NET"))
    return __real_getenv(name);
  const uint32_t machine = World::current()->currentMachine();
  return asked == "OCCL_NET"
             ? tcp.data()
             : hosts.emplace(machine, "machine " + std::to_string(machine)).first->second.data();
}

/// A machine has one network, of which the runtime learns by the addresses of its connections.
int __real_getifaddrs(ifaddrs **found);
int __wrap_getifaddrs(ifaddrs **found) {
  if (!simulated())
    return __real_getifaddrs(found);
  *found = nullptr;
  return 0;
}
}
