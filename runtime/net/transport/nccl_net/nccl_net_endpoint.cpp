// The endpoint over a network plugin of NCCL: packets in slots of registered memory.
#include "runtime/net/transport/nccl_net/nccl_net_endpoint.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace occl::net {
namespace {

/// Of a visit, so that one peer does not keep others waiting.
constexpr size_t kMostReceived = 2 * NcclNetComms::kSlots;
/// So long after the peer's end, with nothing coming, nothing of it is under way any more. A plugin
/// does not say: what a peer has to say at its end it has seen acknowledged before.
constexpr std::chrono::milliseconds kPatience{20};

} // namespace

// --- Connecting.

StatusOr<std::unique_ptr<NcclNetEndpoint>>
NcclNetEndpoint::make(std::shared_ptr<NcclNetContext> context, const NcclNetDevice &device,
                      const Regions &regions, std::chrono::milliseconds silence) {
  auto comms = NcclNetComms::listen(context, device);
  if (!comms.ok())
    return comms.status();
  return std::unique_ptr<NcclNetEndpoint>(
      new NcclNetEndpoint(std::move(context), std::move(*comms), regions, silence));
}

NcclNetEndpoint::NcclNetEndpoint(std::shared_ptr<NcclNetContext> given,
                                 std::unique_ptr<NcclNetComms> ofPeer, const Regions &regions,
                                 std::chrono::milliseconds silence)
    : regions(regions), silence(silence), context(std::move(given)), comms(std::move(ofPeer)),
      sender(*comms), receiver(*comms) {}

Status NcclNetEndpoint::connect(const NcclNetAddress &peer) {
  if (!comms->setPeer(peer))
    return {StatusCode::SystemError, "the peer moves " + std::to_string(peer.packetBytes) +
                                         " bytes at a time, fewer than are needed"};
  return {};
}

StatusOr<bool> NcclNetEndpoint::tryOut() {
  std::lock_guard lock(context->mutex);
  // Connecting goes on a step at each call, as the plugin does not wait.
  if (!isConnected) {
    const auto connected = comms->connect();
    if (!connected.ok() || !*connected)
      return connected;
    isConnected = true;
  }
  // Each side sends a packet without frames, and waits for that of the other.
  if (!trialIsSent)
    trialIsSent = sender.addHead(/*asks=*/false);
  progress();
  for (const std::string &why : {whyCannotSend, whyCannotReceive})
    if (!why.empty())
      return Status(StatusCode::SystemError, why);
  // The trial of the peer comes before anything else.
  const auto packet = receiver.front();
  if (!packet)
    return false;
  if (packet->fault.empty() && packet->frames.empty()) {
    receiver.pop();
    return true;
  }
  return Status(StatusCode::SystemError, "the peer has begun with something else than it should");
}

void NcclNetEndpoint::driveOn() {
  std::lock_guard lock(context->mutex);
  progress();
}

void NcclNetEndpoint::watch(bootstrap::Descriptor given) {
  socket.watch(std::move(given), silence);
}

// --- Both threads.

void NcclNetEndpoint::progress() {
  const uint64_t freed = sender.numFreed();
  // Receiving comes first, as it brings credit and questions.
  if (whyCannotReceive.empty()) {
    if (Status received = receiver.progress(); !received.ok())
      whyCannotReceive = received.message();
  }
  // A question is answered by the credit of any head.
  if (owesAnswer && sender.addHead(/*asks=*/false))
    owesAnswer = false;
  // A sender that has failed is not called again, but the receiver goes on.
  if (whyCannotSend.empty()) {
    if (Status sent = sender.progress(numConsumed); !sent.ok())
      stopSending(sent.message());
  }
  if (sender.numFreed() != freed)
    madeRoom.store(true, std::memory_order_relaxed);
}

/// No proof yet that the peer is gone: what it had sent before is still to be received.
void NcclNetEndpoint::stopSending(std::string reason) {
  if (whyCannotSend.empty())
    whyCannotSend = std::move(reason);
}

bool NcclNetEndpoint::isDown() const {
  return down.load(std::memory_order_acquire) || !isOfThisProcess();
}

std::string NcclNetEndpoint::whyDown() const {
  return isOfThisProcess() ? why : "this process was made by fork() from the one that connected";
}

// --- The sending thread.

Posted NcclNetEndpoint::put(const Put &put) { return post(put, put.bytes.size()); }

Posted NcclNetEndpoint::send(std::span<const std::byte> message) {
  return post(message, message.size());
}

template <class Frame> Posted NcclNetEndpoint::post(const Frame &frame, uint64_t bytes) {
  if (isDown())
    return Posted::Down;
  std::lock_guard lock(context->mutex);
  // Send the packed frames, then find out whether the peer can still make room.
  if (!sender.hasRoomFor(bytes)) {
    sender.seal();
    progress();
    if (auto ended = socket.whyEnded())
      stopSending(std::move(*ended));
  }
  if (!whyCannotSend.empty())
    return Posted::Down;
  if (!sender.hasRoomFor(bytes))
    return Posted::Full;
  sender.add(frame);
  if (sender.hasSealed()) // a large one: while the next is copied
    progress();
  return Posted::Yes;
}

bool NcclNetEndpoint::flush() {
  if (isDown())
    return true;
  std::lock_guard lock(context->mutex);
  sender.seal();
  progress();
  if (sender.isPosted())
    return true;
  // The plugin has not taken everything: only a peer that lives makes it do so.
  if (auto ended = socket.whyEnded())
    stopSending(std::move(*ended));
  return !whyCannotSend.empty();
}

/// A plugin says of what was sent that its memory may be used again, no more. The peer has it when
/// it says so.
bool NcclNetEndpoint::isDelivered() const {
  if (isDown())
    return true;
  auto &self = const_cast<NcclNetEndpoint &>(*this);
  std::lock_guard lock(context->mutex);
  // A plugin moves nothing unless it is called.
  self.progress();
  if (!whyCannotSend.empty() || !whyCannotReceive.empty())
    return true;
  if (sender.isIdle() && receiver.consumedByPeer() == sender.numFrames())
    return true;
  // Ask once for each number of frames, so that questions do not pile up.
  if (askedAt != sender.numFrames() && self.sender.addHead(/*asks=*/true)) {
    self.askedAt = sender.numFrames();
    self.progress();
  }
  return false;
}

// --- The receiving thread.

bool NcclNetEndpoint::receive(Sink &sink) {
  if (isDown())
    return false;
  size_t handled = 0;
  while (handled < kMostReceived) {
    const auto packet = next();
    if (!packet)
      break;
    if (std::string fault = handle(*packet, sink); !fault.empty()) {
      fail("the peer has sent " + fault);
      return false;
    }
    ++handled;
  }
  // Nothing has come, so the peer may have ended.
  if (handled == 0)
    lookForEnd();
  else
    patience.reset();
  return handled != 0;
}

std::optional<PacketReceiver::Packet> NcclNetEndpoint::next() {
  std::lock_guard lock(context->mutex);
  progress();
  return receiver.front();
}

/// What is wrong; empty if nothing is. Without the lock: who is told of a message may hold locks
/// with which others call put().
std::string NcclNetEndpoint::handle(const PacketReceiver::Packet &packet, Sink &sink) {
  if (!packet.fault.empty())
    return packet.fault;
  std::span<const std::byte> rest = packet.frames;
  // Each frame is checked before it is placed.
  uint64_t frames = 0;
  for (; !rest.empty(); ++frames) {
    FrameHeader header;
    if (rest.size() < sizeof header)
      return "a part of a frame";
    std::memcpy(&header, rest.data(), sizeof header);
    rest = rest.subspan(sizeof header);
    // Only this thread changes it.
    if (std::string fault = net::faultOf(header, numConsumed + frames, regions); !fault.empty())
      return fault;
    if (header.bytes > rest.size())
      return "a part of a frame";
    if (std::string fault = handleFrame(header, rest.data(), sink); !fault.empty())
      return fault;
    rest = rest.subspan(header.bytes);
  }
  // All frames are placed: the slot is free, and the peer gets its credit.
  std::lock_guard lock(context->mutex);
  if (packet.head.consumed > sender.numFrames())
    return "that it has consumed " + std::to_string(packet.head.consumed) + " frames";
  receiver.pop();
  numConsumed += frames;
  owesAnswer |= packet.head.asks != 0;
  return "";
}

std::string NcclNetEndpoint::handleFrame(const FrameHeader &header, const std::byte *bytes,
                                         Sink &sink) {
  if (header.kind == FrameHeader::kMessage)
    return sink.message({bytes, header.bytes}) ? "" : "a message that makes no sense";
  storeBytes(header, bytes, regions);
  storeWord(header, regions);
  return "";
}

/// The peer's end, or the plugin's failure, once nothing more comes.
void NcclNetEndpoint::lookForEnd() {
  std::optional<std::string> ended = socket.whyEnded();
  if (!ended) {
    std::lock_guard lock(context->mutex);
    ended = whyEnded();
  }
  if (!ended)
    return;
  // The rest of the peer's packets may still be under way.
  if (!patience)
    patience.emplace(kPatience);
  else if (patience->passed())
    fail(std::move(*ended));
}

std::optional<std::string> NcclNetEndpoint::whyEnded() const {
  for (const std::string &why : {whyCannotReceive, whyCannotSend})
    if (!why.empty())
      return why;
  return std::nullopt;
}

void NcclNetEndpoint::checkPeer() {
  if (isDown())
    return;
  if (auto gone = socket.whyGone())
    fail(std::move(*gone));
}

/// The peer sees it, too, however this side has come to know.
void NcclNetEndpoint::fail(std::string reason) {
  why = std::move(reason);
  down.store(true, std::memory_order_release);
  socket.end();
}

} // namespace occl::net
