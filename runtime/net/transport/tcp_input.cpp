// Reads frames from one TCP connection, and the rest of long puts directly to its place.
#include "runtime/net/transport/tcp_input.h"

#include "runtime/net/transport/tcp_output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

namespace occl::net {
namespace {

constexpr uint64_t kInputBytes = 64 << 10;
/// At most so much is read at a time into the own buffer; of a long put the rest goes to its place.
constexpr uint64_t kReadAhead = 8 << 10;

} // namespace

TcpInput::TcpInput(int socket) : socket(socket), in(kInputBytes) {}

uint64_t TcpInput::read() {
  // The rest of a long put goes to its place, unless the buffer has bytes of it.
  const bool isDirect = place && inBegin == inEnd && left >= kWorthACall;
  // Unread bytes move to the front, which leaves room behind them.
  std::memmove(in.data(), in.data() + inBegin, inEnd - inBegin);
  inEnd -= std::exchange(inBegin, 0);
  const uint64_t direct = isDirect ? left : 0;
  iovec parts[] = {{place, direct}, {in.data() + inEnd, std::min(kReadAhead, in.size() - inEnd)}};
  for (;;) {
    msghdr whole{};
    whole.msg_iov = parts + (isDirect ? 0 : 1);
    whole.msg_iovlen = isDirect ? 2 : 1;
    const ssize_t got = recvmsg(socket, &whole, MSG_DONTWAIT);
    if (got > 0) {
      // The place is filled first, then the buffer.
      const uint64_t placed = std::min(direct, static_cast<uint64_t>(got));
      place += placed;
      left -= placed;
      inEnd += static_cast<uint64_t>(got) - placed;
      return static_cast<uint64_t>(got);
    }
    if (got < 0 && errno == EINTR)
      continue;
    // There is nothing for the moment, or the connection has ended.
    const bool isReset = got < 0 && errno == ECONNRESET;
    closed = got == 0;
    if (closed || (errno != EAGAIN && errno != EWOULDBLOCK))
      ended = got == 0  ? "closed by the peer"
              : isReset ? "reset by the peer: it has ended, or cannot reach this machine"
                        : strerror(errno);
    return 0;
  }
}

bool TcpInput::hasHeader() {
  if (isRead || place)
    return isRead;
  if (inEnd - inBegin < sizeof next)
    return false;
  std::memcpy(&next, in.data() + inBegin, sizeof next);
  inBegin += sizeof next;
  return isRead = true;
}

void TcpInput::begin(std::byte *where, bool asWord) {
  isRead = false;
  place = where;
  left = next.bytes;
  isWord = asWord;
}

bool TcpInput::finish() {
  // Place the part of the frame that is in the buffer.
  const uint64_t here = std::min(left, inEnd - inBegin);
  if (isWord && here < left)
    return false; // whole, or not at all
  if (isWord)
    storeWordAt(place, in.data() + inBegin);
  else if (here != 0)
    std::memcpy(place, in.data() + inBegin, here);
  inBegin += here;
  place += here;
  left -= here;
  if (left != 0)
    return false;
  place = nullptr;
  return true;
}

} // namespace occl::net
