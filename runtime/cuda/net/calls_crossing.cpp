// A sending thread looks at the words that kernels store in mirrors of the peers' arenas, and puts
// what has changed: begins and signatures first, then data, signals and credit.
#include "runtime/cuda/net/calls_crossing.h"

#include "runtime/net/network.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

namespace occl::cuda {

namespace {

/// Of calls in streams.
constexpr uint32_t kSlot = 0;

constexpr uint64_t kCountBits = (1ull << kWordShift) - 1;

/// How many a word of call `number` counts; 0: it is of another call.
uint64_t countOf(uint64_t word, uint64_t number) {
  return word >> kWordShift == number + 1 ? word & kCountBits : 0;
}

} // namespace

CallsCrossing::CallsCrossing(const HostArenas &arenas, const std::vector<bool> &isRemote,
                             uint64_t firstCall)
    : arenas(arenas), puts(arenas), peers(arenas.numRanks()) {
  for (uint32_t r = 0; r < arenas.numRanks(); ++r)
    peers[r].number = isRemote[r] ? firstCall : ~0ull;
}

void CallsCrossing::enter(uint32_t place, uint64_t firstCall,
                          std::shared_ptr<const net::Crossing> crossing) {
  std::lock_guard lock(mutex);
  shapes[place].push_back({firstCall, std::move(crossing)});
}

/// What the kernel has said of it in its own record; null: nothing yet.
std::shared_ptr<const net::Crossing> CallsCrossing::crossingOf(uint64_t number) {
  const RankRecord *own = recordIn(arenas.of(arenas.rank()), kSlot, arenas.rank());
  const uint64_t said = acquireFrom(&own->signatures[DeviceCollective::turnOf(number)]);
  if (!isSignatureOf(said, number))
    return nullptr;
  // The low 16 bits are the place of the shape; damaged words are refused.
  const auto place = static_cast<uint16_t>(said);
  if (place >= kMaxShapes)
    return nullptr;
  std::lock_guard lock(mutex);
  // Drop older shapes of the place that no rank's call needs any more.
  std::vector<Shape> &versions = shapes[place];
  const uint64_t least = std::ranges::min(peers, {}, &OfPeer::number).number;
  while (versions.size() > 1 && versions[1].firstCall <= least)
    versions.erase(versions.begin());
  // The last shape that was entered at this call or before it.
  const auto later = std::ranges::find_if(
      versions, [number](const Shape &shape) { return shape.firstCall > number; });
  return later == versions.begin() ? nullptr : std::prev(later)->crossing;
}

bool CallsCrossing::open(OfPeer &state) {
  state.crossing = crossingOf(state.number);
  if (!state.crossing)
    return false;
  state.sent.assign(state.crossing->outgoing().size(), {});
  state.received.assign(state.crossing->incoming().size(), {});
  state.isAnnounced = false;
  return state.isOpen = true;
}

/// With where this rank's memory for calls is.
bool CallsCrossing::putBegun(uint32_t peer, uint64_t begun) {
  const RankRecord *record = recordIn(arenas.of(peer), kSlot, arenas.rank());
  return puts.wordBehind(std::as_bytes(std::span(&record->where, 1)), &record->begun, begun);
}

/// A rank without work waits for that before it goes ahead.
bool CallsCrossing::tellWhere(uint32_t peer, OfPeer &state) {
  const RankRecord *record = recordIn(arenas.of(peer), kSlot, arenas.rank());
  if (state.whereIsSent || acquireFrom(&record->where) == 0)
    return true;
  return state.whereIsSent = putBegun(peer, state.number);
}

bool CallsCrossing::tellBegin(uint32_t peer, OfPeer &state) {
  const RankRecord *record = recordIn(arenas.of(peer), kSlot, arenas.rank());
  const uint64_t *signature = &record->signatures[DeviceCollective::turnOf(state.number)];
  const uint64_t said = acquireFrom(signature);
  // If there is room for the first alone, both are put again.
  if (!isSignatureOf(said, state.number) || !puts.word(signature, said) ||
      !putBegun(peer, state.number + 1))
    return false;
  return state.isAnnounced = state.whereIsSent = true;
}

/// In the peer's arena; 0: it has not said where, or it would not fit.
uint64_t CallsCrossing::blockOf(uint32_t peer, const OfPeer &state) const {
  const uint64_t where = acquireFrom(&recordIn(arenas.of(arenas.rank()), kSlot, peer)->where);
  // The peer says where its memory is, which must lie in its arena.
  const uint64_t bytes = blockOffset + state.crossing->binding().arenaBytes(peer);
  return where == 0 || bytes > arenas.bytes() || where - 1 > arenas.bytes() - bytes
             ? 0
             : where - 1 + blockOffset;
}

bool CallsCrossing::sendFlows(uint32_t peer, OfPeer &state, net::Endpoint &endpoint) {
  const uint64_t block = blockOf(peer, state);
  if (block == 0)
    return true;
  const std::byte *memory = arenas.at(peer, block);
  const net::Crossing &crossing = *state.crossing;
  const uint64_t base = (state.number + 1) << kWordShift;
  const auto wordAt = [&](uint64_t offset) {
    return reinterpret_cast<const uint64_t *>(memory + offset);
  };
  const auto countAt = [&](uint64_t offset) {
    return countOf(acquireFrom(wordAt(offset)), state.number);
  };
  // Data and signals.
  const net::Flows outgoing = crossing.outgoingTo(peer), incoming = crossing.incomingFrom(peer);
  for (size_t i = outgoing.first; i < outgoing.end; ++i) {
    const net::Outgoing &flow = crossing.outgoing()[i];
    const uint64_t before = state.sent[i].done;
    const bool all =
        net::putSlices(endpoint, crossing, flow, {memory, net::kHeapRegion, block, base},
                       countAt(flow.tailOffset), state.sent[i]);
    puts.noteMoved(state.sent[i].done != before);
    if (!all)
      return false;
  }
  // Credit.
  for (size_t i = incoming.first; i < incoming.end; ++i) {
    const net::Incoming &flow = crossing.incoming()[i];
    const uint64_t head = countAt(flow.headOffset);
    if (head <= state.received[i].done)
      continue;
    if (!puts.word(wordAt(flow.headOffset), base + head))
      return false;
    state.received[i].done = head;
  }
  return true;
}

bool CallsCrossing::send(uint32_t peer, net::Endpoint &endpoint) {
  OfPeer &state = peers[peer];
  const RankRecord *record = recordIn(arenas.of(peer), kSlot, arenas.rank());
  puts.begin(peer, endpoint);
  if (!tellWhere(peer, state))
    return false;
  for (;;) {
    // Before what is looked at: it has been stored behind all of the call before.
    const uint64_t begun = acquireFrom(&record->begun);
    if (begun < state.number + 1)
      return true;
    // What the kernel says of the call may be seen after that.
    if (!state.isOpen && !open(state))
      return false;
    if (!state.isAnnounced && !tellBegin(peer, state))
      return false;
    if (!sendFlows(peer, state, endpoint))
      return false;
    if (begun < state.number + 2)
      return true;
    state.isOpen = false;
    ++state.number;
  }
}

} // namespace occl::cuda
