// By which address and port others may reach this machine.
#pragma once

#include <cstdint>
#include <ifaddrs.h>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace occl {

/// As the system has it: of IPv4, of IPv6, or of another family. Length 0: none.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }

  bool isLoopback() const;
  /// Of IPv4 and IPv6.
  void setPort(uint16_t port);
  /// "10.0.0.1:29500", "[fd00::1]:29500".
  std::string text() const;
};

/// By which interfaces others are to reach this machine: OCCL_SOCKET_IFNAME, or NCCL_SOCKET_IFNAME,
/// and NCCL_SOCKET_FAMILY of the environment; "": any.
struct InterfaceChoice {
  std::string names, family;

  static InterfaceChoice fromEnvironment();
};

/// Whether other machines may reach an interface's address: it is up, of that family unless this is
/// neither AF_INET nor AF_INET6, and does not mean another one on each machine (of IPv6).
bool isUsable(const ifaddrs &each, const std::string &family);

/// Of the interface that is chosen as by NCCL_SOCKET_IFNAME (`names`) and NCCL_SOCKET_FAMILY
/// (`family`); without names that of the first which is up and is neither a loopback nor docker's,
/// else the loopback. Length 0 if there is none.
SocketAddress interfaceAddress(const std::string &names, const std::string &family);

/// That by which this machine reaches a host, given by its name or address. Length 0 if it does
/// not, or by loopback alone. Nothing is sent, unless to ask for what the name means.
SocketAddress addressTowards(const std::string &host);

/// A port that is free at all addresses of this machine: bound, so that the system gives it to
/// nobody who does not ask for it, as long as this lives. Whoever binds with SO_REUSEADDR may
/// listen there.
class HeldPort {
public:
  /// None.
  HeldPort() = default;
  /// None, with the reason, if no port is free.
  static HeldPort hold(std::string &why);
  ~HeldPort();
  HeldPort(HeldPort &&other) noexcept
      : file(std::exchange(other.file, -1)), port(std::exchange(other.port, 0)) {}
  HeldPort &operator=(HeldPort &&other) noexcept {
    std::swap(file, other.file);
    std::swap(port, other.port);
    return *this;
  }

  /// 0: none.
  uint16_t number() const { return port; }

private:
  int file = -1;
  uint16_t port = 0;
};

} // namespace occl
