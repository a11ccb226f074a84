// Two endpoints of one process with a queue in each direction.
#include "runtime/net/transport/testing/loop.h"

#include "runtime/net/transport/frame.h"
#include "runtime/sync/mutex.h"

#include <deque>
#include <mutex>
#include <vector>

namespace occl::net {
namespace {

struct Frame {
  FrameHeader header;
  std::vector<std::byte> bytes;
};

/// One direction.
struct Queue {
  Mutex mutex;
  std::deque<Frame> frames;
  uint64_t bytes = 0;
  bool senderIsGone = false, receiverIsGone = false;
};

class LoopEndpoint final : public Endpoint {
public:
  LoopEndpoint(std::shared_ptr<Queue> toPeer, std::shared_ptr<Queue> fromPeer,
               const Regions &regions, uint64_t capacity)
      : outgoing(std::move(toPeer)), incoming(std::move(fromPeer)), regions(regions),
        capacity(capacity) {}
  ~LoopEndpoint() override {
    std::scoped_lock lock(outgoing->mutex, incoming->mutex);
    outgoing->senderIsGone = incoming->receiverIsGone = true;
  }

  Posted put(const Put &put) override { return post(headerOf(put, numSent), put.bytes); }
  Posted send(std::span<const std::byte> message) override {
    return post(headerOfMessage(message.size(), numSent), message);
  }
  bool flush() override { return true; }
  bool isDelivered() const override {
    std::lock_guard lock(outgoing->mutex);
    return outgoing->frames.empty() || outgoing->receiverIsGone;
  }
  bool receive(Sink &sink) override;
  bool isDown() const override {
    std::lock_guard lock(incoming->mutex);
    return !fault.empty() || (incoming->senderIsGone && incoming->frames.empty());
  }
  std::string whyDown() const override {
    std::lock_guard lock(incoming->mutex);
    return fault.empty() ? "closed by the peer" : "the peer has sent " + fault;
  }

private:
  Posted post(const FrameHeader &header, std::span<const std::byte> bytes);

  const std::shared_ptr<Queue> outgoing, incoming;
  const Regions regions;
  const uint64_t capacity;
  uint64_t numSent = 0, numReceived = 0;
  std::string fault; // under the incoming queue's lock
};

Posted LoopEndpoint::post(const FrameHeader &header, std::span<const std::byte> bytes) {
  std::lock_guard lock(outgoing->mutex);
  if (outgoing->receiverIsGone)
    return Posted::Down;
  const uint64_t size = sizeof header + bytes.size();
  // A single frame has room, however long it is.
  if (!outgoing->frames.empty() && outgoing->bytes + size > capacity)
    return Posted::Full;
  outgoing->frames.push_back({header, {bytes.begin(), bytes.end()}});
  outgoing->bytes += size;
  ++numSent;
  return Posted::Yes;
}

bool LoopEndpoint::receive(Sink &sink) {
  Frame frame;
  {
    // Take the frame under the lock, and handle it without: the sink may lock other things.
    std::lock_guard lock(incoming->mutex);
    if (incoming->frames.empty() || !fault.empty())
      return false;
    frame = std::move(incoming->frames.front());
    incoming->frames.pop_front();
    incoming->bytes -= sizeof frame.header + frame.bytes.size();
  }
  std::string wrong = faultOf(frame.header, numReceived++, regions);
  if (!wrong.empty()) {
    // Nothing of it counts.
  } else if (frame.header.kind == FrameHeader::kMessage) {
    wrong = sink.message(frame.bytes) ? "" : "a message that makes no sense";
  } else {
    storeBytes(frame.header, frame.bytes.data(), regions);
    storeWord(frame.header, regions);
  }
  std::lock_guard lock(incoming->mutex);
  fault = std::move(wrong);
  return fault.empty() && !incoming->frames.empty();
}

} // namespace

std::pair<std::unique_ptr<Endpoint>, std::unique_ptr<Endpoint>>
makeLoop(const Regions &first, const Regions &second, uint64_t capacity) {
  auto there = std::make_shared<Queue>(), back = std::make_shared<Queue>();
  return {std::make_unique<LoopEndpoint>(there, back, first, capacity),
          std::make_unique<LoopEndpoint>(back, there, second, capacity)};
}

} // namespace occl::net
