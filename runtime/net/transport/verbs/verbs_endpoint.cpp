// The endpoint over RDMA: frames, writes into registered extents, and credit.
#include "runtime/net/transport/verbs/verbs_endpoint.h"

#include "runtime/sync/thread.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace occl::net {
namespace {

constexpr uint64_t kStagingBytes = 1 << 20;
/// Of it puts leave so much for heads without a frame.
constexpr uint64_t kSpareStaging = 8 << 10;
/// Extents that a head brings along.
constexpr size_t kMostExtents = 16;
static_assert(kControls * (sizeof(VerbsHead) + kMostExtents * sizeof(VerbsExtent)) <=
              kSpareStaging);
constexpr uint64_t kBufferBytes = sizeof(VerbsHead) + kFrameBytes;
constexpr uint32_t kReceives = kFrames + kControls;
/// Requests of frames: with a write each, and as many whose end was not noticed yet.
constexpr size_t kFrameRequests = 4 * kFrames;
/// Bytes that are worth a request of their own, which saves the receiver copying them.
constexpr uint64_t kWorthWriting = 4 << 10;
/// Of a visit, so that one peer does not keep others waiting.
constexpr size_t kMostReceived = 2 * kFrames;
static_assert((kMaxPut / kFrameBytes + 2) * 2 <= kFrames, "a put fits");

} // namespace

// --- Connecting.

StatusOr<std::unique_ptr<VerbsEndpoint>> VerbsEndpoint::make(const RdmaPort &port,
                                                             const Regions &regions,
                                                             std::chrono::milliseconds silence) {
  auto pair = QueuePair::make(port, kFrameRequests + kControls, kReceives);
  if (!pair.ok())
    return pair.status();
  // One mapping has the staging memory, and behind it a buffer for each request to receive.
  auto memory = bootstrap::Mapping::anonymous(kStagingBytes + kReceives * kBufferBytes);
  if (!memory.ok())
    return memory.status();
  std::unique_ptr<VerbsEndpoint> made(
      new VerbsEndpoint(std::move(*pair), std::move(*memory), regions, silence));
  if (!made->registered.ok())
    return made->registered.status();
  // The peer counts on these requests as soon as it has connected.
  for (uint64_t i = 0; i < kReceives; ++i)
    if (!made->postReceive(i))
      return Status(StatusCode::SystemError, port.text() + " takes no requests to receive");
  return made;
}

VerbsEndpoint::VerbsEndpoint(std::unique_ptr<QueuePair> given, bootstrap::Mapping mapped,
                             const Regions &regions, std::chrono::milliseconds silence)
    : regions(regions), silence(silence), pair(std::move(given)), memory(std::move(mapped)),
      registered(Registration::make(pair->domain(), memory.get(), IBV_ACCESS_LOCAL_WRITE)),
      staging(memory.get().first(kStagingBytes)), peerExtents(regions),
      buffers(memory.get().subspan(kStagingBytes)), ownExtents(pair->domain(), regions) {}

VerbsEndpoint::~VerbsEndpoint() { pair->close(); }

Status VerbsEndpoint::connect(const QueuePairAddress &peer) { return pair->connect(peer, silence); }

void VerbsEndpoint::sendTrial() { sendControl(/*isTrial=*/true); }

StatusOr<bool> VerbsEndpoint::isTriedOut() {
  // No message may come before the trial, as nobody is there to take it.
  std::array<ibv_wc, 1> completion;
  while (pair->receives.poll(completion).value_or(0) != 0)
    if (std::string fault = handle(completion[0], nullptr); !fault.empty())
      return Status(StatusCode::SystemError, fault);
  return wasTriedOut;
}

void VerbsEndpoint::watch(bootstrap::Descriptor given) { socket.watch(std::move(given), silence); }

std::vector<int> VerbsEndpoint::descriptors() const {
  return {socket.descriptor(), pair->receives.descriptor(), pair->sends.descriptor()};
}

// --- The sending thread, and sendControl().

Posted VerbsEndpoint::put(const Put &put) {
  std::lock_guard lock(sending);
  cut(put);
  return post();
}

Posted VerbsEndpoint::send(std::span<const std::byte> message) {
  std::lock_guard lock(sending);
  pieces.clear();
  pieces.push_back({.header = headerOfMessage(message.size(), 0), .bytes = message});
  return post();
}

/// Into what the device writes and what goes in frames.
void VerbsEndpoint::cut(const Put &put) {
  pieces.clear();
  // Places whose frames were consumed are free for the device again.
  placesToCopy.consumed(numConsumed.load(std::memory_order_acquire));
  const uint64_t size = put.bytes.size();
  for (uint64_t at = 0; at < size || pieces.empty();) {
    const uint64_t offset = put.offset + at, rest = size - at;
    const VerbsExtent *extent = peerExtents.find(put.region, offset);
    const uint64_t writable =
        extent ? std::min(rest, extent->bytes - (offset - extent->offset)) : 0;
    // The device must not write where an older frame is still to be copied.
    const bool isWritten =
        writable >= kWorthWriting && !placesToCopy.overlap(put.region, offset, writable);
    Put part = put;
    part.offset = offset;
    part.bytes = put.bytes.subspan(at, isWritten ? writable : std::min(rest, kFrameBytes));
    at += part.bytes.size();
    // The word comes with the last piece.
    part.hasWord = put.hasWord && at == size;
    pieces.push_back(
        {.header = headerOf(part, 0), .bytes = part.bytes, .extent = isWritten ? extent : nullptr});
  }
}

/// All pieces, or nothing.
Posted VerbsEndpoint::post() {
  for (const bool isFirst : {true, false}) {
    reap();
    if (cannotSend || isDown())
      return Posted::Down;
    if (stage()) {
      postPieces();
      return cannotSend ? Posted::Down : Posted::Yes;
    }
    if (isFirst)
      pair->sends.arm(); // then looks once more
  }
  // Only a peer that lives makes room.
  if (auto ended = socket.whyEnded())
    stopSending(std::move(*ended));
  return cannotSend ? Posted::Down : Posted::Full;
}

bool VerbsEndpoint::hasRoomFor(size_t numFrames, size_t numNew) const {
  // The peer has buffers for so many frames, and the queue has so many requests.
  return numSent.load(std::memory_order_relaxed) + numFrames -
                 numConsumed.load(std::memory_order_acquire) <=
             kFrames &&
         numRequests + numNew <= kFrameRequests;
}

/// Copies the pieces to where they are sent from. False: there is no room for all.
bool VerbsEndpoint::stage() {
  if (!hasRoomFor(pieces.size(), 2 * pieces.size()))
    return false;
  // Take memory for all pieces, or give back the part that was taken.
  const uint64_t before = staging.position();
  for (Piece &piece : pieces) {
    const uint64_t inFrame = piece.extent ? 0 : piece.bytes.size();
    if (piece.extent)
      piece.data = staging.take(piece.bytes.size(), kSpareStaging);
    piece.head = staging.take(sizeof(VerbsHead) + inFrame, kSpareStaging);
    if (piece.head.empty() || (piece.extent && piece.data.empty())) {
      staging.takeBack(before);
      return false;
    }
    piece.stagingEnd = staging.position();
  }
  // Nothing can fail from here on: number the frames, and fill them.
  for (Piece &piece : pieces) {
    piece.header.number = numSent.fetch_add(1, std::memory_order_relaxed);
    fillHead(piece.head, piece.header, piece.extent != nullptr, 0);
    if (!piece.extent && piece.header.kind == FrameHeader::kPut)
      placesToCopy.add(piece.header.number, piece.header.region, piece.header.offset,
                       piece.header.bytes);
    std::ranges::copy(piece.bytes,
                      piece.extent ? piece.data.begin() : piece.head.begin() + sizeof(VerbsHead));
  }
  return true;
}

void VerbsEndpoint::fillHead(std::span<std::byte> place, const FrameHeader &header, bool isPlaced,
                             size_t numExtents) {
  VerbsHead head;
  head.frame = header;
  // Each head brings the peer its credit and the number of its extents that are known here.
  head.consumed = numReceived.load(std::memory_order_acquire);
  head.knownExtents = numPeerExtents;
  head.isPlaced = isPlaced;
  head.numExtents = static_cast<uint16_t>(numExtents);
  numTold.store(head.consumed, std::memory_order_relaxed);
  std::memcpy(place.data(), &head, sizeof head);
}

/// In one list: of each piece the write, if there is one, then what the peer receives.
void VerbsEndpoint::postPieces() {
  // The tables have their size before requests point into them.
  requests.assign(2 * pieces.size(), {});
  ranges.resize(requests.size());
  size_t count = 0;
  const auto add = [&](ibv_wr_opcode opcode, std::span<std::byte> bytes) -> ibv_send_wr & {
    ranges[count] = {reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(bytes.size()),
                     registered->localKey()};
    ibv_send_wr &request = requests[count];
    request.sg_list = &ranges[count];
    request.num_sge = 1;
    request.opcode = opcode;
    if (count != 0)
      requests[count - 1].next = &request;
    ++count;
    return request;
  };
  for (const Piece &piece : pieces) {
    // The write precedes the frame that says that its bytes are there.
    if (piece.extent) {
      ibv_send_wr &write = add(IBV_WR_RDMA_WRITE, piece.data);
      write.wr.rdma.remote_addr =
          piece.extent->address + (piece.header.offset - piece.extent->offset);
      write.wr.rdma.rkey = piece.extent->key;
      numBytesWritten.fetch_add(piece.data.size(), std::memory_order_relaxed);
    }
    ibv_send_wr &send = add(IBV_WR_SEND, piece.head);
    // A report of the frame covers the write before it, which has no report of its own.
    send.send_flags = IBV_SEND_SIGNALED;
    if (piece.head.size() <= pair->maxInline)
      send.send_flags |= IBV_SEND_INLINE;
    sent.push_back({piece.stagingEnd, piece.extent ? size_t{2} : size_t{1}});
  }
  numRequests += count;
  if (!pair->post(requests.front()))
    stopSending("its device takes no requests");
}

/// What has been carried out.
void VerbsEndpoint::reap() {
  std::array<ibv_wc, 16> completions;
  // Reports come in the order of the requests.
  while (!cannotSend) {
    const auto found = pair->sends.poll(completions);
    if (!found)
      stopSending("its completion queue has failed");
    for (const ibv_wc &completion : std::span(completions).first(found.value_or(0))) {
      if (completion.status != IBV_WC_SUCCESS)
        // After an error the pair carries out nothing any more.
        return stopSending((*Ibverbs::load())->wc_status_str(completion.status));
      staging.freeUntil(sent.front().stagingEnd);
      numRequests -= sent.front().numRequests;
      sent.pop_front();
    }
    if (found.value_or(0) < completions.size())
      return;
  }
}

/// No proof yet that the peer is gone: what it had sent before is still to be received.
void VerbsEndpoint::stopSending(std::string reason) {
  if (!std::exchange(cannotSend, true))
    whyCannotSend = std::move(reason);
}

bool VerbsEndpoint::isDelivered() const {
  std::lock_guard lock(sending);
  const_cast<VerbsEndpoint *>(this)->reap();
  // A request is reported once the peer's device has acknowledged it.
  return sent.empty() || cannotSend || isDown();
}

// --- The receiving thread.

/// The peer sends no more than there is room for, so it has to know how much was consumed.
bool VerbsEndpoint::owesControl() const {
  const uint64_t untold =
      numReceived.load(std::memory_order_relaxed) - numTold.load(std::memory_order_relaxed);
  return untold >= kFrames / 2 || (ownExtents.hasNew() && ownExtents.numTold() == numKnownToPeer);
}

void VerbsEndpoint::tellPeer() {
  if (owesControl())
    sendControl(/*isTrial=*/false);
}

/// A head without a frame: how much was consumed, and new extents. If there is no room for it
/// receive() is called when there is.
void VerbsEndpoint::sendControl(bool isTrial) {
  std::lock_guard lock(sending);
  for (const bool isFirst : {true, false}) {
    reap();
    if (cannotSend || !(isTrial || owesControl())) // a frame has told it meanwhile
      return;
    // Heads without a frame have requests and staging memory that puts leave to them.
    if (numRequests < kFrameRequests + kControls)
      if (const auto place =
              staging.take(sizeof(VerbsHead) + kMostExtents * sizeof(VerbsExtent), 0);
          !place.empty())
        return postControl(place);
    if (isFirst)
      pair->sends.arm(); // then looks once more
  }
}

void VerbsEndpoint::postControl(std::span<std::byte> place) {
  // Only heads of this kind have extents behind them.
  const std::vector<VerbsExtent> extents = ownExtents.takeNew(kMostExtents);
  const auto bytes = std::as_bytes(std::span(extents));
  fillHead(place, {}, false, extents.size());
  std::ranges::copy(bytes, place.begin() + sizeof(VerbsHead));
  pieces.clear();
  pieces.push_back({.header = {},
                    .bytes = {},
                    .head = place.first(sizeof(VerbsHead) + bytes.size()),
                    .stagingEnd = staging.position()});
  postPieces();
}

bool VerbsEndpoint::receive(Sink &sink) {
  if (isDown())
    return false;
  std::optional<std::string> ended; // before what is polled from then on
  std::array<ibv_wc, 16> completions;
  for (size_t handled = 0; handled < kMostReceived;) {
    const auto found = pair->receives.poll(completions);
    if (!found)
      ended = "its completion queue has failed";
    for (const ibv_wc &completion : std::span(completions).first(found.value_or(0)))
      if (std::string fault = handle(completion, &sink); !fault.empty()) {
        fail(std::move(fault));
        return false;
      }
    handled += found.value_or(0);
    tellPeer();
    if (found.value_or(0) != 0)
      continue;
    // The end was seen before a look that found nothing, so nothing of the peer is left.
    if (ended) {
      fail(std::move(*ended));
      return false;
    }
    ended = whyEnded();
    if (!ended && !watchForMore())
      return false;
  }
  return true;
}

/// The peer's end, or what keeps this side from sending.
std::optional<std::string> VerbsEndpoint::whyEnded() {
  if (auto why = socket.whyEnded())
    return why;
  std::lock_guard lock(sending);
  return cannotSend ? std::optional(pair->port.text() + ": " + whyCannotSend) : std::nullopt;
}

/// There was nothing. Whether to look once more before the descriptors tell.
bool VerbsEndpoint::watchForMore() {
  bool hasSent = false;
  {
    std::lock_guard lock(sending);
    hasSent = pair->sends.isArmed() && pair->sends.takeEvents();
  }
  madeRoom |= hasSent;
  // A taken event disarms its queue, which is armed again before the thread may sleep.
  pair->receives.takeEvents();
  if (pair->receives.isArmed())
    return hasSent; // what the peer is owed may go now
  pair->receives.arm();
  return true;
}

/// What is wrong; empty if nothing is.
std::string VerbsEndpoint::handle(const ibv_wc &completion, Sink *sink) {
  if (completion.status != IBV_WC_SUCCESS)
    return whyRequestsFail((*Ibverbs::load())->wc_status_str(completion.status));
  // The buffer belongs to the receiving thread until it is posted again.
  const std::byte *buffer = &buffers[completion.wr_id * kBufferBytes];
  VerbsHead head;
  if (completion.byte_len < sizeof head)
    return "the peer has sent " + std::to_string(completion.byte_len) + " bytes in place of a head";
  std::memcpy(&head, buffer, sizeof head);
  const uint64_t before = numConsumed.load(std::memory_order_relaxed);
  // Counters only grow, and never beyond the frames that were sent.
  if (head.consumed < before || head.consumed > numSent.load(std::memory_order_relaxed))
    return "the peer says that it has consumed " + std::to_string(head.consumed) + " frames";
  // These words count in every head.
  numKnownToPeer = head.knownExtents;
  madeRoom |= head.consumed != before;
  numConsumed.store(head.consumed, std::memory_order_release);
  // The length must be that of the frame, or of the extents, that the head announces.
  const uint64_t bytes = completion.byte_len - sizeof head, expected = bytesBehind(head);
  if (bytes != expected)
    return "the peer has sent " + std::to_string(bytes) + " bytes in place of " +
           std::to_string(expected);
  std::string fault = head.frame.kind == 0 ? handleExtents(head, buffer + sizeof head)
                                           : handleFrame(head, buffer + sizeof head, sink);
  if (!fault.empty())
    return fault;
  // The peer is told of room that there is.
  if (!postReceive(completion.wr_id))
    return "its device takes no requests to receive";
  if (head.frame.kind != 0)
    numReceived.fetch_add(1, std::memory_order_release);
  return "";
}

std::string VerbsEndpoint::handleFrame(const VerbsHead &head, const std::byte *bytes, Sink *sink) {
  const FrameHeader &header = head.frame;
  const uint64_t number = numReceived.load(std::memory_order_relaxed);
  if (std::string fault = faultOf(header, number, regions); !fault.empty())
    return "the peer has sent " + fault;
  if (header.kind == FrameHeader::kMessage) {
    if (!sink || !sink->message({bytes, header.bytes}))
      return "the peer has sent a message that makes no sense";
  } else if (!head.isPlaced && header.bytes != 0) {
    storeBytes(header, bytes, regions);
    ownExtents.count(header.region, header.offset, header.bytes);
  }
  storeWord(header, regions);
  return "";
}

std::string VerbsEndpoint::handleExtents(const VerbsHead &head, const std::byte *bytes) {
  // The first head without a frame is the peer's trial.
  wasTriedOut = true;
  std::lock_guard lock(sending);
  for (uint32_t i = 0; i < head.numExtents; ++i) {
    VerbsExtent extent;
    std::memcpy(&extent, bytes + i * sizeof extent, sizeof extent);
    if (!peerExtents.add(extent))
      return "the peer has sent an extent that makes no sense";
  }
  numPeerExtents += head.numExtents;
  return "";
}

bool VerbsEndpoint::postReceive(uint64_t index) {
  ibv_sge memory = {reinterpret_cast<uint64_t>(&buffers[index * kBufferBytes]), kBufferBytes,
                    registered->localKey()};
  ibv_recv_wr request{};
  request.wr_id = index;
  request.sg_list = &memory;
  request.num_sge = 1;
  return pair->post(request);
}

/// If requests to receive fail, then because one to send has, or the peer's end.
std::string VerbsEndpoint::whyRequestsFail(const std::string &ofReceive) {
  {
    std::lock_guard lock(sending);
    reap();
  }
  return whyEnded().value_or(pair->port.text() + ": " + ofReceive);
}

void VerbsEndpoint::checkPeer() {
  if (isDown())
    return;
  if (auto gone = socket.whyGone())
    fail(std::move(*gone));
  else if (pair->hasFailed())
    fail(pair->port.text() + " has failed");
}

/// The peer sees it, too, however this side has come to know; and has no access any more.
void VerbsEndpoint::fail(std::string reason) {
  why = std::move(reason);
  down.store(true, std::memory_order_release);
  // In its error state the pair refuses whatever the peer still sends.
  pair->stop();
  socket.end();
}

} // namespace occl::net
