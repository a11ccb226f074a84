#include "runtime/net/transport/tcp.h"

#include "runtime/net/transport/forked.h"
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/liveness.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

constexpr uint64_t kOutputBytes = 512 << 10, kInputBytes = 64 << 10;
/// So many bytes of a put are worth a system call of their own, which saves copying them.
constexpr uint64_t kWorthACall = 16 << 10;
/// At most so much is read at a time into the own buffer; of a long put the rest goes to its place.
constexpr uint64_t kReadAhead = 8 << 10;
static_assert(kOutputBytes >= kMaxPut + sizeof(FrameHeader));
/// Of a visit, so that one peer does not keep others waiting.
constexpr uint64_t kMostReceived = 1 << 20;

class TcpEndpoint final : public Endpoint {
public:
  TcpEndpoint(bootstrap::Descriptor connected, const Regions &regions,
              std::chrono::milliseconds silence);

  Posted put(const Put &put) override { return post(headerOf(put, numSent), put.bytes); }
  Posted send(std::span<const std::byte> message) override {
    return post(headerOfMessage(message.size(), numSent), message);
  }
  bool flush() override;
  bool isDelivered() const override;
  bool receive(Sink &sink) override;
  bool isDown() const override { return down.load(std::memory_order_acquire); }
  std::string whyDown() const override { return why; }
  std::vector<int> descriptors() const override { return {socket.get()}; }
  void checkPeer() override;

private:
  Posted post(const FrameHeader &header, std::span<const std::byte> bytes);
  bool handle(Sink &sink);
  bool sendNow(std::span<const std::byte> header, std::span<const std::byte> bytes);
  void keep(std::span<const std::byte> bytes);
  bool beginFrame();
  bool endFrame(Sink &sink);
  uint64_t read();
  void fail(std::string reason);

  const bootstrap::Descriptor socket;
  const ClosedInChildren notInherited;
  const Regions regions;

  // The sending thread's: [outBegin, outEnd) of `out` is to be sent.
  std::vector<std::byte> out;
  uint64_t outBegin = 0, outEnd = 0, numSent = 0;
  bool cannotSend = false;

  // The receiving thread's: [inBegin, inEnd) of `in` has come and was not looked at.
  std::vector<std::byte> in;
  uint64_t inBegin = 0, inEnd = 0, numReceived = 0;
  FrameHeader header;        // of the frame that is under way
  std::byte *next = nullptr; // null: none is; where its next byte goes
  uint64_t left = 0;         // its bytes that have not come
  bool isWord = false;       // these are one
  std::vector<std::byte> message;
  Liveness liveness;
  std::string why; // before `down`
  Atomic<bool> down{false};
};

TcpEndpoint::TcpEndpoint(bootstrap::Descriptor connected, const Regions &regions,
                         std::chrono::milliseconds silence)
    : socket(std::move(connected)), notInherited(socket.get()), regions(regions), out(kOutputBytes),
      in(kInputBytes), message(kMaxMessage), liveness(socket.get(), silence) {
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  setOption(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
}

Posted TcpEndpoint::post(const FrameHeader &header, std::span<const std::byte> bytes) {
  const uint64_t size = sizeof header + bytes.size();
  if (outEnd + size > out.size()) {
    flush();
    std::memmove(out.data(), out.data() + outBegin, outEnd - outBegin);
    outEnd -= std::exchange(outBegin, 0);
  }
  if (cannotSend)
    return Posted::Down;
  if (outEnd + size > out.size())
    return Posted::Full;
  ++numSent;
  const auto headerBytes = std::as_bytes(std::span(&header, 1));
  if (bytes.size() >= kWorthACall && sendNow(headerBytes, bytes))
    return Posted::Yes;
  keep(headerBytes);
  keep(bytes);
  return Posted::Yes;
}

/// Behind what is to be sent already. For all of it there is room.
void TcpEndpoint::keep(std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, out.begin() + static_cast<ptrdiff_t>(outEnd));
  outEnd += bytes.size();
}

/// All that is to be sent, then these: whatever the socket does not take of them is kept. False if
/// it took nothing.
bool TcpEndpoint::sendNow(std::span<const std::byte> header, std::span<const std::byte> bytes) {
  const auto part = [](const std::byte *begin, size_t size) {
    return iovec{const_cast<std::byte *>(begin), size};
  };
  const uint64_t before = outEnd - outBegin;
  iovec parts[] = {part(out.data() + outBegin, before), part(header.data(), header.size()),
                   part(bytes.data(), bytes.size())};
  msghdr whole{};
  whole.msg_iov = parts;
  whole.msg_iovlen = std::size(parts);
  const ssize_t sent = sendmsg(socket.get(), &whole, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0)
    return false; // flush() will see why
  uint64_t rest = static_cast<uint64_t>(sent);
  const auto taken = [&](uint64_t size) {
    const uint64_t here = std::min(rest, size);
    rest -= here;
    return here;
  };
  outBegin += taken(before);
  if (outBegin == outEnd)
    outBegin = outEnd = 0;
  keep(header.subspan(taken(header.size())));
  keep(bytes.subspan(taken(bytes.size())));
  return true;
}

/// An error here is no proof yet: what the peer had sent before is still to be received.
bool TcpEndpoint::flush() {
  while (outBegin != outEnd && !cannotSend) {
    const ssize_t sent =
        ::send(socket.get(), out.data() + outBegin, outEnd - outBegin, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return false;
    cannotSend = sent < 0;
    outBegin += cannotSend ? 0 : static_cast<uint64_t>(sent);
  }
  outBegin = outEnd = 0;
  return true;
}

bool TcpEndpoint::isDelivered() const {
  int unacknowledged = 0;
  if (cannotSend || isDown())
    return true;
  return outBegin == outEnd &&
         (ioctl(socket.get(), TIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0);
}

void TcpEndpoint::fail(std::string reason) {
  why = std::move(reason);
  down.store(true, std::memory_order_release);
}

/// So many bytes have come; 0: none have now, or never will. Those of a put that is under way go to
/// their place directly, what follows to `in`.
uint64_t TcpEndpoint::read() {
  const bool isDirect = next && inBegin == inEnd && left >= kWorthACall;
  std::memmove(in.data(), in.data() + inBegin, inEnd - inBegin);
  inEnd -= std::exchange(inBegin, 0);
  const uint64_t direct = isDirect ? left : 0;
  iovec parts[] = {{next, direct}, {in.data() + inEnd, std::min(kReadAhead, in.size() - inEnd)}};
  for (;;) {
    msghdr whole{};
    whole.msg_iov = parts + (isDirect ? 0 : 1);
    whole.msg_iovlen = isDirect ? 2 : 1;
    const ssize_t got = recvmsg(socket.get(), &whole, MSG_DONTWAIT);
    if (got > 0) {
      const uint64_t placed = std::min(direct, static_cast<uint64_t>(got));
      next += placed;
      left -= placed;
      inEnd += static_cast<uint64_t>(got) - placed;
      return static_cast<uint64_t>(got);
    }
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return 0;
    fail(got == 0 ? "closed by the peer" : strerror(errno));
    return 0;
  }
}

bool TcpEndpoint::receive(Sink &sink) {
  for (uint64_t received = 0; received < kMostReceived;) {
    if (isDown())
      return false;
    const uint64_t got = read();
    if (got == 0)
      return false;
    received += got;
    if (!handle(sink))
      return false;
  }
  return true;
}

/// All that has come. False: the connection is down.
bool TcpEndpoint::handle(Sink &sink) {
  for (;;) {
    if (!next) {
      if (inEnd - inBegin < sizeof header)
        return true;
      if (!beginFrame())
        return false;
    }
    const uint64_t here = std::min(left, inEnd - inBegin);
    if (isWord && here < left)
      return true; // whole, or not at all
    if (isWord)
      storeWordAt(next, in.data() + inBegin);
    else if (here != 0)
      std::memcpy(next, in.data() + inBegin, here);
    inBegin += here;
    next += here;
    left -= here;
    if (left != 0)
      return true;
    if (!endFrame(sink))
      return false;
  }
}

bool TcpEndpoint::beginFrame() {
  std::memcpy(&header, in.data() + inBegin, sizeof header);
  inBegin += sizeof header;
  if (std::string fault = faultOf(header, numReceived++, regions); !fault.empty()) {
    fail("the peer has sent " + fault);
    return false;
  }
  next = header.kind == FrameHeader::kMessage ? message.data() : placeOf(header, regions);
  left = header.bytes;
  isWord = header.kind == FrameHeader::kPut && isOneWord(next, left);
  return true;
}

bool TcpEndpoint::endFrame(Sink &sink) {
  next = nullptr;
  storeWord(header, regions);
  if (header.kind != FrameHeader::kMessage || sink.message(std::span(message).first(header.bytes)))
    return true;
  fail("the peer has sent a message that makes no sense");
  return false;
}

void TcpEndpoint::checkPeer() {
  if (isDown())
    return;
  if (std::optional<std::string> why = liveness.whyGone())
    fail(std::move(*why));
}

class TcpAttempt final : public Attempt {
public:
  explicit TcpAttempt(const RankPair &pair) : pair(pair) {}

  AttemptBytes address() const override { return {}; }
  Status connect(const AttemptBytes &) override { return {}; }
  StatusOr<bool> tryOut() override { return true; }
  std::string text() const override { return ""; }
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor connected) override {
    return makeTcpEndpoint(std::move(connected), pair.regions, pair.silence);
  }

private:
  const RankPair pair;
};

class TcpTransport final : public TransportKind {
public:
  std::string_view title() const override { return "TCP"; }
  StatusOr<OfferBytes> offer() override { return OfferBytes(); }
  StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &pair, const OfferBytes &,
                                             const OfferBytes &) override {
    return std::unique_ptr<Attempt>(std::make_unique<TcpAttempt>(pair));
  }
};

} // namespace

std::unique_ptr<TransportKind> tcpTransport() { return std::make_unique<TcpTransport>(); }

std::unique_ptr<Endpoint> makeTcpEndpoint(bootstrap::Descriptor socket, const Regions &regions,
                                          std::chrono::milliseconds silence) {
  return std::make_unique<TcpEndpoint>(std::move(socket), regions, silence);
}

} // namespace occl::net
