// Sends frames on one TCP connection: short ones from a buffer, long ones past it.
#include "runtime/net/transport/tcp_output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

namespace occl::net {

static_assert(TcpOutput::kMostAtATime >= kMaxPut + sizeof(FrameHeader));

TcpOutput::TcpOutput(int socket) : socket(socket), out(kMostAtATime) {}

bool TcpOutput::hasRoom(uint64_t bytes) {
  if (end + bytes > out.size()) {
    // Make room at the end: send as much as the socket takes, and move the rest to the front.
    flush();
    std::memmove(out.data(), out.data() + begin, end - begin);
    end -= std::exchange(begin, 0);
  }
  return end + bytes <= out.size();
}

void TcpOutput::take(const FrameHeader &header, std::span<const std::byte> bytes) {
  const auto headerBytes = std::as_bytes(std::span(&header, 1));
  if (bytes.size() >= kWorthACall && sendNow(headerBytes, bytes))
    return;
  keep(headerBytes);
  keep(bytes);
}

/// Behind what is to be sent already. For all of it there is room.
void TcpOutput::keep(std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, out.begin() + static_cast<ptrdiff_t>(end));
  end += bytes.size();
}

/// All that is to be sent, then these: whatever the socket does not take of them is kept. False if
/// it took nothing.
bool TcpOutput::sendNow(std::span<const std::byte> header, std::span<const std::byte> bytes) {
  const auto part = [](const std::byte *begin, size_t size) {
    return iovec{const_cast<std::byte *>(begin), size};
  };
  // One call takes the waiting bytes, the header and the bytes of the put.
  const uint64_t before = end - begin;
  iovec parts[] = {part(out.data() + begin, before), part(header.data(), header.size()),
                   part(bytes.data(), bytes.size())};
  msghdr whole{};
  whole.msg_iov = parts;
  whole.msg_iovlen = std::size(parts);
  const ssize_t sent = sendmsg(socket, &whole, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0)
    return false; // flush() will see why
  // The socket has taken a prefix of the three; keep the rest in order.
  uint64_t rest = static_cast<uint64_t>(sent);
  const auto taken = [&](uint64_t size) {
    const uint64_t here = std::min(rest, size);
    rest -= here;
    return here;
  };
  begin += taken(before);
  if (begin == end)
    begin = end = 0;
  keep(header.subspan(taken(header.size())));
  keep(bytes.subspan(taken(bytes.size())));
  return true;
}

/// An error here is no proof yet: what the peer had sent before is still to be received.
bool TcpOutput::flush() {
  while (begin != end && !broken) {
    const ssize_t sent =
        ::send(socket, out.data() + begin, end - begin, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    broken = sent < 0;
    begin += broken ? 0 : static_cast<uint64_t>(sent);
  }
  // Everything is sent, or will never be.
  begin = end = 0;
  return true;
}

bool TcpOutput::isDelivered() const { return backlog() == 0; }

uint64_t TcpOutput::backlog() const {
  int unacknowledged = 0;
  // A socket that cannot say counts as empty.
  if (ioctl(socket, SIOCOUTQ, &unacknowledged) != 0)
    unacknowledged = 0;
  return end - begin + static_cast<uint64_t>(unacknowledged);
}

} // namespace occl::net
