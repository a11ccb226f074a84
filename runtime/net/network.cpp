// Both sides of a network: the sending thread's puts, and the handling of messages of peers.
#include "runtime/net/network.h"

#include "runtime/memory/arena.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace occl::net {

using transport::AnnounceCell;

Network::Peer::Peer(Network &network, Remote given)
    : network(network), remote(std::move(given)), owner(remote.mirror.announceTable()) {}

Network::Network(std::vector<Remote> remotes, uint32_t numRanks, Doorbell &ownBell)
    : indexOf(numRanks, -1), ownBell(ownBell) {
  for (Remote &remote : remotes) {
    indexOf[remote.rank] = static_cast<int32_t>(peers.size());
    peers.emplace_back(*this, std::move(remote));
  }
}

Network::~Network() { stop(); }

Regions regionsFor(const transport::Segment &mirror, std::byte *own, uint32_t peer,
                   bool isOnDevice) {
  // The own segment may not be formatted yet, but it has the layout of its mirrors.
  const auto inOwn = [&](const void *ofMirror) {
    return own + (static_cast<const std::byte *>(ofMirror) -
                  reinterpret_cast<const std::byte *>(&mirror.header()));
  };
  // Peers put their blocks into their mirrors here, and heads into the own segment.
  Regions regions;
  regions[kMirrorRegion] = {mirror.arena(), mirror.arenaBytes()};
  regions[kHeadsRegion] = {inOwn(mirror.sharedArena()), mirror.arenaBytes()};
  regions[kRingsRegion] = mirror.tailsAndRings();
  regions[kRingHeadRegion] = {inOwn(&mirror.ringTo(peer).head->bytes), sizeof(uint64_t)};
  if (isOnDevice)
    regions[kHeapRegion] = {inOwn(mirror.heap().data()), mirror.heap().size()};
  return regions;
}

void Network::attach(const transport::Segment &segment, Owner ofSegment) {
  std::lock_guard lock(mutex);
  own = segment;
  owner = std::move(ofSegment);
  for (Peer &peer : peers)
    peer.rings.emplace(own->ringTo(peer.remote.rank), own->tailsAndRings().data(),
                       peer.remote.mirror.ringTo(own->header().rank));
}

bool Network::isUp(uint32_t rank) const {
  return !peers[static_cast<size_t>(indexOf[rank])].remote.endpoint->isDown();
}

std::string Network::describeDown(uint32_t rank) const {
  const Remote &remote = peers[static_cast<size_t>(indexOf[rank])].remote;
  return "the process of rank " + std::to_string(rank) + " is gone (its connection to " +
         remote.address + ": " + remote.endpoint->whyDown() + ")";
}

Status Network::barrier(const Deadline &deadline) {
  std::unique_lock lock(mutex);
  // The sending thread tells each peer how often this rank has entered.
  const uint32_t entered = ++barriers;
  wakeSender();
  for (const Peer &peer : peers) {
    const auto settled = [&] {
      // A peer may be ahead, and one that is down is not waited for.
      return peer.barriersEntered >= entered || peer.remote.endpoint->isDown() ||
             lacksMemory.load(std::memory_order_acquire);
    };
    if (!changed.wait_for(lock, deadline.remaining(), settled))
      return {StatusCode::Timeout,
              "rank " + std::to_string(peer.remote.rank) + " did not reach the barrier in time"};
    // A barrier that a peer entered before it went down counts.
    if (peer.barriersEntered < entered && peer.remote.endpoint->isDown())
      return {StatusCode::PeerFailed, describeDown(peer.remote.rank)};
    if (peer.barriersEntered < entered)
      return outOfMemory();
  }
  return {};
}

void Network::open(Call call) {
  auto opened = std::make_unique<OpenCall>();
  opened->peers.resize(peers.size());
  opened->sent.resize(call.crossing->outgoing().size());
  opened->received.resize(call.crossing->incoming().size());
  opened->call = std::move(call);
  {
    std::lock_guard lock(mutex);
    // Of this rank and a peer, whoever is the second to come here or to published() compares.
    for (const Peer &peer : peers) {
      const auto cell = peer.cells.find(opened->call.id);
      const auto *record =
          cell == peer.cells.end() ? nullptr : cell->second->find(opened->call.ordinal);
      if (record)
        compare(*opened, peer, record->read().traits);
    }
    calls.push_back(std::move(opened));
  }
  reportMismatch();
  wakeSender();
}

void Network::compare(const OpenCall &mine, const Peer &peer,
                      const transport::CollectiveTraits &theirs) {
  if (theirs != mine.call.traits) {
    if (!disagreement) // the first one is told, as the others may come of it
      disagreement = {mine.call, peer.remote.rank, theirs};
    mayDisagree.store(true, std::memory_order_release);
  }
}

/// Without the lock: it leads to the communicator.
void Network::reportMismatch() {
  if (!mayDisagree.load(std::memory_order_acquire))
    return; // whoever receives does not wait for whoever sends
  std::optional<Disagreement> found;
  {
    std::lock_guard lock(mutex);
    found = std::exchange(disagreement, std::nullopt);
  }
  if (found)
    onMismatch(found->mine, found->peer, found->theirs);
}

void Network::setDeviceWords(DeviceWords *words) {
  {
    std::lock_guard lock(mutex);
    deviceWords = words;
    hasDeviceWords.store(words != nullptr, std::memory_order_relaxed);
  }
  wakeSender();
}

// --- The sending thread.

bool Network::send() {
  std::lock_guard lock(mutex);
  vote();
  bool all = true;
  // A peer whose connection is full does not keep the others waiting.
  for (size_t i = 0; i < peers.size(); ++i) {
    Peer &peer = peers[i];
    bool sent = sendTo(i) & peer.remote.endpoint->flush();
    // Room that came before this was known woke nobody.
    if (!sent && !peer.isFull.exchange(true, std::memory_order_seq_cst))
      sent = sendTo(i) & peer.remote.endpoint->flush();
    if (sent)
      peer.isFull.store(false, std::memory_order_seq_cst);
    all &= sent;
  }
  dropFinished();
  return all;
}

bool Network::sendTo(size_t index) {
  Peer &peer = peers[index];
  Endpoint &endpoint = *peer.remote.endpoint;
  if (deviceWords && !deviceWords->sendCard(peer.remote.rank, endpoint))
    return false;
  // Barriers need no segment, so they are sent before the own one is attached, too.
  for (; peer.barriersSent != barriers; ++peer.barriersSent)
    if (!sendMessage(peer, {.kind = Message::Barrier}))
      return false;
  if (!own)
    return true;
  // Before what is sent is looked at: it leaves behind all of that.
  using Header = transport::SegmentHeader;
  const bool hasLeft = own->header().state.load(std::memory_order_acquire) == Header::Left;
  // A communicator that has failed moves no data any more; each peer gets the cause once.
  if (Status failure = owner.failure(); !failure.ok()) {
    if (!peer.failureIsSent &&
        !sendMessage(peer, {.kind = Message::Failed, .code = static_cast<uint32_t>(failure.code())},
                     failure.message()))
      return false;
    peer.failureIsSent = true;
  } else {
    for (const auto &open : calls)
      if (!sendCall(index, *open))
        return false;
    if (deviceWords && !deviceWords->send(peer.remote.rank, endpoint))
      return false;
    if (!sendRings(peer) || !sendDivision(peer))
      return false;
  }
  // Also after a failure: ranks that are left find each other by it.
  if (!sendReports(peer) || !sendShrink(peer))
    return false;
  if (peer.leftIsSent || !hasLeft)
    return true;
  return peer.leftIsSent = sendMessage(peer, {.kind = Message::Left});
}

bool Network::sendMessage(Peer &peer, const Message &message, std::string_view text) {
  return peer.remote.endpoint->send(encode(message, text)) != Posted::Full;
}

/// In this order: see docs/decisions/hosts/net.md.
bool Network::sendCall(size_t index, OpenCall &open) {
  Peer &peer = peers[index];
  OfPeer &state = open.peers[index];
  const Call &call = open.call;
  // The peer clears the block's words on this message, so it comes before all puts.
  if (!state.isPublished) {
    const uint32_t rank = call.crossing->binding().program().rank;
    const Message message = {.kind = Message::Publish,
                             .id = call.id,
                             .ordinal = call.ordinal,
                             .arenaOffset = call.arenaOffset,
                             .controlBytes = call.crossing->binding().controlBytes(rank),
                             .headBytes = call.crossing->binding().headBytes(rank),
                             .planHash = call.traits.planHash,
                             .count = call.traits.count,
                             .dataType = call.traits.dataType,
                             .op = call.traits.op,
                             .collective = call.traits.kind,
                             .root = call.traits.root,
                             .priority = call.urgency.priority,
                             .turn = call.urgency.turn};
    if (!sendMessage(peer, message))
      return false;
    state.isPublished = true;
  }
  if (state.finishedIsSent)
    return true;
  // It is read before tails and heads: all stores before `done` are sent before Finished.
  const bool isDone = call.cell->done.load(std::memory_order_acquire) > call.ordinal;
  // A peer that has finished needs no slices of this rank.
  const Flows outgoing = call.crossing->outgoingTo(peer.remote.rank);
  for (size_t i = outgoing.first; i < outgoing.end && !state.hasFinished; ++i)
    if (!sendSlices(peer, open, i, open.sent[i]))
      return false;
  // Heads go on until this rank has finished: the peer's block stays in use so long.
  if (!sendHeads(peer, open))
    return false;
  if (!isDone)
    return true;
  // Finished follows the last put of the invocation.
  return state.finishedIsSent = sendMessage(
             peer, {.kind = Message::Finished, .id = call.id, .ordinal = call.ordinal + 1});
}

bool Network::sendSlices(Peer &peer, const OpenCall &open, size_t index, FlowProgress &progress) {
  const Crossing &crossing = *open.call.crossing;
  const Outgoing &flow = crossing.outgoing()[index];
  const std::byte *block = own->arena() + open.call.arenaOffset;
  // Acquire, as the slots below the tail are read after it.
  const uint64_t tail = loadShared(reinterpret_cast<const uint64_t *>(block + flow.tailOffset),
                                   std::memory_order_acquire);
  return putSlices(*peer.remote.endpoint, crossing, flow,
                   {block, kMirrorRegion, open.call.arenaOffset, 0}, tail, progress);
}

bool Network::sendHeads(Peer &peer, OpenCall &open) {
  const Flows incoming = open.call.crossing->incomingFrom(peer.remote.rank);
  if (incoming.first == incoming.end)
    return true;
  // Heads are stored only where the peer has said that its block is.
  const auto cell = peer.cells.find(open.call.id);
  const auto *record = cell == peer.cells.end() ? nullptr : cell->second->find(open.call.ordinal);
  const transport::Announcement said = record ? record->read() : transport::Announcement();
  if (!record || said.traits != open.call.traits)
    return true;
  // What does not fit by the plan is an error of whoever binds it.
  const uint64_t size = peer.remote.mirror.arenaBytes(),
                 bytes = open.call.crossing->binding().arenaBytes(peer.remote.rank);
  if (bytes > size || said.arenaOffset > size - bytes)
    return true;
  for (size_t i = incoming.first; i < incoming.end; ++i)
    if (!sendHead(peer, said.arenaOffset + open.call.crossing->incoming()[i].headOffset,
                  open.received[i]))
      return false;
  return true;
}

/// `offset`: where it lies among the heads of the peer.
bool Network::sendHead(Peer &peer, uint64_t offset, FlowProgress &progress) {
  const uint64_t head =
      loadShared(reinterpret_cast<const uint64_t *>(peer.remote.mirror.sharedArena() + offset),
                 std::memory_order_acquire);
  if (head <= progress.done)
    return true;
  Put put;
  put.region = kHeadsRegion;
  put.hasWord = true;
  put.wordOffset = offset;
  put.word = head;
  if (peer.remote.endpoint->put(put) == Posted::Full)
    return false;
  progress.done = head;
  return true;
}

bool Network::sendRings(Peer &peer) {
  // A wrong head fails the communicator before data are written over that nobody has read.
  const RingCrossing::Sent sent = peer.rings->send(*peer.remote.endpoint);
  if (sent == RingCrossing::Sent::Damaged)
    owner.fail({StatusCode::InternalError,
                "rank " + std::to_string(peer.remote.rank) +
                    " says that it has read transfers that rank " +
                    std::to_string(own->header().rank) +
                    " has not sent yet: something has overwritten its memory; look at what that "
                    "process did before"});
  return sent != RingCrossing::Sent::Full;
}

/// What all peers know of that are there, and have finished.
void Network::dropFinished() {
  std::erase_if(calls, [&](const std::unique_ptr<OpenCall> &open) {
    for (size_t i = 0; i < peers.size(); ++i) {
      // Both sides have said that they are done, or the peer is down and says nothing any more.
      const OfPeer &state = open->peers[i];
      if (!(state.finishedIsSent && state.hasFinished) && !peers[i].remote.endpoint->isDown())
        return false;
    }
    return true;
  });
}

std::chrono::nanoseconds Network::pause() {
  using namespace std::chrono_literals;
  // Executors that finish an invocation ring nobody; the next one or this tells the peers.
  constexpr std::chrono::nanoseconds kWhileOpen = 1ms, kWhileIdle = 50ms;
  std::lock_guard lock(mutex);
  std::chrono::nanoseconds least = isAnythingOpen() ? kWhileOpen : kWhileIdle;
  if (deviceWords)
    least = std::min(least, deviceWords->pause());
  if (voter)
    least = std::clamp<std::chrono::nanoseconds>(nextVote - SteadyClock::now(), 0ns, least);
  return least;
}

bool Network::hasOpen() {
  std::lock_guard lock(mutex);
  return isAnythingOpen();
}

/// With the lock.
bool Network::isAnythingOpen() const {
  return !calls.empty() ||
         std::ranges::any_of(peers, [](const Peer &peer) { return peer.question.has_value(); });
}

bool Network::isDelivered() const {
  return std::ranges::all_of(peers,
                             [](const Peer &peer) { return peer.remote.endpoint->isDelivered(); });
}

// --- The receiving thread.

bool Network::receive(size_t index) {
  Peer &peer = peers[index];
  if (peer.wasDown)
    return false;
  const bool more = peer.remote.endpoint->receive(peer);
  // Room that came with received frames makes no descriptor writable.
  if (peer.remote.endpoint->hasMadeRoom() && peer.isFull.load(std::memory_order_seq_cst))
    wakeSender();
  if (peer.remote.endpoint->isDown()) {
    peer.wasDown = true;
    std::lock_guard lock(mutex); // whoever waits looks before or after this
    changed.notify_all();
  }
  reportMismatch();
  // Executors wait for what has come, and for the news that a peer is gone.
  if (more || peer.wasDown || !peer.remote.endpoint->mustBePolled())
    ownBell.ring();
  return more;
}

bool Network::Peer::message(std::span<const std::byte> bytes) {
  const auto read = decode(bytes);
  if (!read)
    return false;
  const Message &message = read->message;
  switch (message.kind) {
  case Message::Publish:
    return network.published(*this, message);
  case Message::Finished:
    return network.finished(*this, message);
  case Message::Failed: {
    std::function<void(const Status &)> fail;
    // A copy is called without the lock, as it leads to the communicator.
    {
      std::lock_guard lock(network.mutex);
      fail = network.owner.fail;
    }
    if (fail)
      fail({static_cast<StatusCode>(message.code), read->text});
    return true;
  }
  case Message::Divide:
    divided(*this, read->text);
    return true;
  case Message::Shrink:
    network.shrunk(*this, read->text);
    return true;
  case Message::Ask:
    network.asked(*this, message);
    return true;
  case Message::Waits:
    return network.answered(*this, *read);
  case Message::Left:
    remote.mirror.header().state.store(transport::SegmentHeader::Left, std::memory_order_release);
    return true;
  default:
    // decode() lets no other kind through, so this is Barrier.
    std::lock_guard lock(network.mutex);
    ++barriersEntered;
    network.changed.notify_all();
    return true;
  }
}

/// With the lock.
AnnounceCell *Network::cellOf(Peer &peer, uint64_t id) {
  AnnounceCell *&cell = peer.cells[id];
  if (!cell) {
    cell = peer.owner.take(id);
    if (cell)
      cell->beginAt(0);
  }
  return cell;
}

bool Network::published(Peer &peer, const Message &message) {
  const transport::Segment &mirror = peer.remote.mirror;
  const uint64_t size = mirror.arenaBytes(), offset = message.arenaOffset;
  // The peer's numbers are checked before memory is cleared by them.
  if (offset % transport::Arena::kAlignment != 0 || offset > size ||
      message.controlBytes > size - offset || message.headBytes > size - offset)
    return false;
  std::lock_guard lock(mutex);
  AnnounceCell *cell = cellOf(peer, message.id);
  if (!cell)
    return false;
  // Words are cleared before the record is visible: executors that see it read tails and heads.
  std::memset(mirror.arena() + offset, 0, message.controlBytes);
  std::memset(mirror.sharedArena() + offset, 0, message.headBytes);
  cell->publish(message.ordinal, offset, message.traits(), {}, {message.priority, message.turn});
  // The other half of the comparison in open().
  for (const auto &open : calls)
    if (open->call.id == message.id && open->call.ordinal == message.ordinal)
      compare(*open, peer, message.traits());
  return true;
}

bool Network::finished(Peer &peer, const Message &message) {
  std::lock_guard lock(mutex);
  AnnounceCell *cell = cellOf(peer, message.id);
  if (!cell)
    return false;
  // The sending thread stops to send slices to this peer before this rank may use the block again.
  const auto index = static_cast<size_t>(indexOf[peer.remote.rank]);
  for (const auto &open : calls)
    if (open->call.id == message.id && open->call.ordinal < message.ordinal)
      open->peers[index].hasFinished = true;
  // Now this rank may use the memory of these invocations again.
  cell->done.store(message.ordinal, std::memory_order_release);
  return true;
}

} // namespace occl::net
