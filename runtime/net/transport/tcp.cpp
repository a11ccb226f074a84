// The endpoint over TCP: frames on one connection, or on several with one order of numbers.
#include "runtime/net/transport/tcp.h"

#include "runtime/control/shm/forked.h"
#include "runtime/net/transport/frame.h"
#include "runtime/net/transport/liveness.h"
#include "runtime/net/transport/tcp_input.h"
#include "runtime/net/transport/tcp_output.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"

#include <algorithm>
#include <array>
#include <deque>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using Clock = SteadyClock;

/// Of a visit, so that one peer does not keep others waiting.
constexpr uint64_t kMostReceived = 1 << 20;
/// A process that ends closes all its rails: so long after the first the rest is awaited.
constexpr std::chrono::seconds kEndTogether{1};

struct Connection {
  Connection(Rail given, std::chrono::milliseconds silence)
      : socket(std::move(given.socket)), name(std::move(given.name)), notInherited(socket.get()),
        out(socket.get()), in(socket.get()), liveness(socket.get(), silence) {
    fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
    setOption(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  }

  const bootstrap::Descriptor socket;
  const std::string name;
  const bootstrap::ClosedInChildren notInherited;
  TcpOutput out;     // the sending thread's
  TcpInput in;       // the receiving thread's
  Liveness liveness; // likewise
};

/// All frames of a direction have one sequence of numbers, and take effect in that order.
class TcpEndpoint final : public Endpoint {
public:
  TcpEndpoint(std::vector<Rail> given, const Regions &regions, std::chrono::milliseconds silence);

  Posted put(const Put &put) override { return post(headerOf(put, numSent), put.bytes); }
  Posted send(std::span<const std::byte> message) override {
    return post(headerOfMessage(message.size(), numSent), message);
  }
  bool flush() override;
  bool isDelivered() const override;
  bool receive(Sink &sink) override;
  bool isDown() const override { return down.load(std::memory_order_acquire); }
  std::string whyDown() const override { return why; }
  std::vector<int> descriptors() const override;
  void checkPeer() override;
  void abandon() override;

private:
  Posted post(const FrameHeader &header, std::span<const std::byte> bytes);
  size_t choose(uint64_t size);
  bool isBroken() const;

  uint64_t readAll();
  bool handle(Sink &sink);
  bool handle(TcpInput &in, Sink &sink);
  bool endFrame(const FrameHeader &header, Sink &sink);
  bool mayGoOn(bool isDrained);
  void fail(const Connection *where, const std::string &reason);

  const Regions regions;
  std::deque<Connection> rails;

  // The sending thread's.
  uint64_t numSent = 0;
  RailShare share;
  size_t shortRail = 0;

  // The receiving thread's.
  uint64_t numReceived = 0; // the frame that is due
  std::vector<std::byte> message;
  std::optional<Clock::time_point> firstEnd; // of a rail
  std::string why;                           // before `down`
  Atomic<bool> down{false};
};

TcpEndpoint::TcpEndpoint(std::vector<Rail> given, const Regions &regions,
                         std::chrono::milliseconds silence)
    : regions(regions), message(kMaxMessage) {
  for (Rail &rail : given)
    rails.emplace_back(std::move(rail), silence);
}

std::vector<int> TcpEndpoint::descriptors() const {
  std::vector<int> all;
  for (const Connection &rail : rails)
    all.push_back(rail.socket.get());
  return all;
}

// --- The sending thread.

/// A short frame goes by the rail that was last found to have the shortest queue: others may wait
/// for what it says, and it takes little of any.
Posted TcpEndpoint::post(const FrameHeader &header, std::span<const std::byte> bytes) {
  const uint64_t size = sizeof header + bytes.size();
  size_t rail = shortRail;
  if (isDown())
    return Posted::Down;
  bool hasRoom = false;
  // One rail, or a short frame, needs no choice.
  if (rails.size() == 1 || bytes.size() < kWorthACall)
    hasRoom = rails[rail].out.hasRoom(size);
  if (rails.size() > 1 && !hasRoom) {
    rail = choose(size);
    hasRoom = rail < rails.size();
  }
  // Looking for room may have flushed a rail and found it broken.
  if (isBroken())
    return Posted::Down;
  if (!hasRoom)
    return Posted::Full;
  ++numSent;
  rails[rail].out.take(header, bytes);
  share.count(rail, size, rails.size());
  return Posted::Yes;
}

/// For a frame of so many bytes; the number of rails if none has room.
size_t TcpEndpoint::choose(uint64_t size) {
  std::array<uint64_t, kMostRails> backlogs{};
  const auto all = std::span(backlogs).first(rails.size());
  for (size_t r = 0; r < rails.size(); ++r)
    all[r] = rails[r].out.hasRoom(size) ? rails[r].out.backlog() : RailShare::kNoRoom;
  const size_t rail = share.choose(all);
  // The next short frames go behind the shortest queue, this frame counted.
  if (rail < rails.size())
    all[rail] += size;
  shortRail = static_cast<size_t>(std::ranges::min_element(all) - all.begin());
  return rail;
}

bool TcpEndpoint::isBroken() const {
  return std::ranges::any_of(rails, [](const Connection &rail) { return rail.out.isBroken(); });
}

bool TcpEndpoint::flush() {
  bool all = true;
  for (Connection &rail : rails)
    all &= rail.out.flush();
  return all;
}

bool TcpEndpoint::isDelivered() const {
  return isDown() || std::ranges::all_of(rails, [](const Connection &rail) {
           return rail.out.isBroken() || rail.out.isDelivered();
         });
}

// --- The receiving thread.

bool TcpEndpoint::receive(Sink &sink) {
  for (uint64_t received = 0; received < kMostReceived;) {
    if (isDown())
      return false;
    const uint64_t got = readAll();
    // Nothing is left to read: perhaps nothing can come any more.
    if (got == 0) {
      mayGoOn(/*isDrained=*/true);
      return false;
    }
    received += got;
    if (!handle(sink))
      return false;
  }
  return true;
}

/// Of a rail whose next frame is not due nothing is read: TCP holds it back.
uint64_t TcpEndpoint::readAll() {
  uint64_t got = 0;
  for (Connection &rail : rails)
    if (!rail.in.hasHeader() && rail.in.whyEnded().empty())
      got += rail.in.read();
  return got;
}

/// All that has come and is due. False: the endpoint is down.
bool TcpEndpoint::handle(Sink &sink) {
  for (bool again = true; again;) {
    // A handled frame may make the frame of another rail due.
    const uint64_t before = numReceived;
    for (Connection &rail : rails)
      if (!handle(rail.in, sink))
        return false;
    again = rails.size() > 1 && numReceived != before;
  }
  return mayGoOn(/*isDrained=*/false);
}

bool TcpEndpoint::handle(TcpInput &in, Sink &sink) {
  for (;;) {
    // Between frames: begin the next one if it is due.
    if (!in.isUnderWay()) {
      if (!in.hasHeader())
        return true;
      const FrameHeader &header = in.header();
      if (header.number > numReceived)
        return true;
      if (std::string fault = faultOf(header, numReceived, regions); !fault.empty()) {
        fail(nullptr, "the peer has sent " + fault);
        return false;
      }
      std::byte *place =
          header.kind == FrameHeader::kMessage ? message.data() : placeOf(header, regions);
      in.begin(place, header.kind == FrameHeader::kPut && isOneWord(place, header.bytes));
    }
    // Bytes that have come are placed; read() takes the rest of a long put to its place.
    if (!in.finish())
      return true;
    ++numReceived;
    if (!endFrame(in.header(), sink))
      return false;
  }
}

bool TcpEndpoint::endFrame(const FrameHeader &header, Sink &sink) {
  // All bytes are in their place, so the word may be seen.
  storeWord(header, regions);
  if (header.kind != FrameHeader::kMessage || sink.message(std::span(message).first(header.bytes)))
    return true;
  fail(nullptr, "the peer has sent a message that makes no sense");
  return false;
}

/// Whether the frame that is due may still come: by a rail that has not ended, and whose next frame
/// is no other one. Else the endpoint is down. `isDrained`: nothing is there to be read. A rail
/// that the peer has closed is not named: the peer may have done so for one that is cut.
bool TcpEndpoint::mayGoOn(bool isDrained) {
  const Connection *ended = nullptr;
  const FrameHeader *early = nullptr;
  bool mayCome = false;
  // A rail has an early frame, may still bring the due one, or has ended.
  for (Connection &rail : rails)
    if (rail.in.hasHeader())
      early = &rail.in.header();
    else if (rail.in.whyEnded().empty())
      mayCome = true;
    else
      ended = &rail;
  if (ended && !firstEnd)
    firstEnd = Clock::now();
  const bool isLate = ended && isDrained && Clock::now() - *firstEnd >= kEndTogether;
  if (mayCome && !isLate)
    return true;
  if (ended)
    fail(ended->in.isClosed() ? nullptr : ended, ended->in.whyEnded());
  else
    fail(nullptr, "the peer has sent frame " + std::to_string(early->number) +
                      " in the place of frame " + std::to_string(numReceived));
  return false;
}

/// The peer has to learn of it by each rail, as it may see nothing wrong: it would go on to send,
/// and wait for what nobody hears.
void TcpEndpoint::fail(const Connection *where, const std::string &reason) {
  why = (where && !where->name.empty() ? "by " + where->name + ": " : "") + reason;
  for (const Connection &rail : rails)
    shutdown(rail.socket.get(), SHUT_RDWR);
  down.store(true, std::memory_order_release);
}

/// Its machine may be there, and get small packets: what does not get through must not keep the end
/// back.
void TcpEndpoint::checkPeer() {
  for (Connection &rail : rails)
    if (!isDown())
      if (const std::optional<std::string> gone = rail.liveness.whyGone()) {
        for (Connection &each : rails)
          resetConnection(each.socket.get());
        fail(&rail, *gone);
      }
}

/// A machine that answers gets it all: its process may only be stopped.
void TcpEndpoint::abandon() {
  if (!isDown() &&
      std::ranges::any_of(rails, [](const Connection &rail) { return rail.liveness.isSilent(); }))
    for (Connection &rail : rails)
      resetConnection(rail.socket.get());
}

} // namespace

std::unique_ptr<Endpoint> makeTcpEndpoint(std::vector<Rail> rails, const Regions &regions,
                                          std::chrono::milliseconds silence) {
  return std::make_unique<TcpEndpoint>(std::move(rails), regions, silence);
}

std::unique_ptr<Endpoint> makeTcpEndpoint(bootstrap::Descriptor socket, const Regions &regions,
                                          std::chrono::milliseconds silence) {
  std::vector<Rail> rails(1);
  rails.front().socket = std::move(socket);
  return makeTcpEndpoint(std::move(rails), regions, silence);
}

} // namespace occl::net
