// Sockets, as far as ranks and the root of an id need them.
#pragma once

#include "nccl/bootstrap/messages.h"

#include <string>
#include <sys/socket.h>
#include <utility>

namespace occl::nccl {

/// A file descriptor. Not copied.
class Socket {
public:
  explicit Socket(int file = -1) : file(file) {}
  Socket(Socket &&other) noexcept : file(std::exchange(other.file, -1)) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket();

  explicit operator bool() const { return file >= 0; }
  int get() const { return file; }

private:
  int file;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr *get() { return reinterpret_cast<sockaddr *>(&storage); }
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

/// In the abstract namespace: reached from the same network namespace alone, gone with its process.
Address localAddress(const std::array<uint8_t, 8> &rootName);
/// Of the interface that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose; else the first that is
/// up and is neither a loopback nor docker's, else the loopback. Length 0 if there is none.
Address interfaceAddress();
/// To and from an id; length 0 and family 0 if there is none.
void storeAddress(const Address &address, IdLayout &id);
Address loadAddress(const IdLayout &id);
std::string textOf(const Address &address);

/// Listening there, not blocking; port 0 becomes that of the system. None if that is refused.
Socket listenAt(Address &address);

/// A port that is free at all addresses of this machine, and becomes the address's: bound, so that
/// the system gives it to nobody who does not ask for it, until the result goes. Whoever asks may
/// listen there. None, with the reason, if there is none.
Socket holdPort(Address &address, std::string &why);

/// Whole messages, or false: the other side has gone, or has no room.
bool sendWhole(int file, const void *message, size_t bytes);

} // namespace occl::nccl
