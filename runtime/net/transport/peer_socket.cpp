// The connection by which two ranks have met, of which only the end matters.
#include "runtime/net/transport/peer_socket.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace occl::net {

void PeerSocket::watch(bootstrap::Descriptor connected, std::chrono::milliseconds silence) {
  socket = std::move(connected);
  notInherited.emplace(socket.get());
  liveness.emplace(socket.get(), silence);
}

std::optional<std::string> PeerSocket::whyEnded() const {
  if (!socket.valid())
    return std::nullopt;
  char byte = 0;
  // Peeking leaves the end visible to later looks.
  const ssize_t got = recv(socket.get(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0)
    return std::string("the peer has sent bytes beside ") + otherWay;
  if (got == 0)
    return "closed by the peer";
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return std::nullopt;
  return strerror(errno);
}

void PeerSocket::end() const { shutdown(socket.get(), SHUT_RDWR); }

} // namespace occl::net
