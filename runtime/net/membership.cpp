// What ranks of several machines say while their communicator is divided or shrinks.
#include "runtime/net/network.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <utility>

namespace occl::net {

/// The rank writes what a division is about before the counter that makes it valid, and again only
/// when all have counted the division as done.
bool Network::sendDivision(Peer &peer) {
  const transport::SplitRecord &record = own->header().split;
  DivisionRecord now;
  // In the other order than they are stored: who has given up is known to have come before.
  now.done = record.done.load(std::memory_order_acquire);
  now.abandoned = record.abandoned.load(std::memory_order_acquire);
  now.published = record.published.load(std::memory_order_acquire);
  const std::array<uint64_t, 3> counters = {now.done, now.abandoned, now.published};
  if (counters == peer.divisionsSent)
    return true;
  now.abandonedFrom = record.abandonedFrom.load(std::memory_order_relaxed);
  now.colour = record.colour.load(std::memory_order_relaxed);
  now.key = record.key.load(std::memory_order_relaxed);
  now.segmentBytes = record.segmentBytes.load(std::memory_order_relaxed);
  now.offer = record.offer.load(std::memory_order_relaxed);
  if (!sendMessage(peer, {.kind = Message::Divide},
                   {reinterpret_cast<const char *>(&now), sizeof now}))
    return false;
  peer.divisionsSent = counters;
  return true;
}

bool Network::sendShrink(Peer &peer) {
  uint64_t version = 0;
  // The version tells whether the peer has this record already.
  const auto record = own->header().shrinkRecord.load(&version);
  if (!record || version == peer.shrinkSent)
    return true; // whoever is writing it wakes this thread then
  if (!sendMessage(peer, {.kind = Message::Shrink},
                   {reinterpret_cast<const char *>(&*record), sizeof *record}))
    return false;
  peer.shrinkSent = version;
  return true;
}

void Network::divided(Peer &peer, std::string_view text) {
  DivisionRecord said;
  std::memcpy(&said, text.data(), sizeof said);
  transport::SplitRecord &record = peer.remote.mirror.header().split;
  // The counters come last, as they make the fields valid.
  record.abandonedFrom.store(said.abandonedFrom, std::memory_order_relaxed);
  record.colour.store(said.colour, std::memory_order_relaxed);
  record.key.store(said.key, std::memory_order_relaxed);
  record.segmentBytes.store(said.segmentBytes, std::memory_order_relaxed);
  record.offer.store(said.offer, std::memory_order_relaxed);
  record.published.store(said.published, std::memory_order_release);
  record.abandoned.store(said.abandoned, std::memory_order_release);
  record.done.store(said.done, std::memory_order_release);
}

void Network::shrunk(Peer &peer, std::string_view text) {
  std::array<std::byte, sizeof(transport::ShrinkRecord)> bytes;
  std::memcpy(bytes.data(), text.data(), sizeof bytes);
  const auto said = std::bit_cast<transport::ShrinkRecord>(bytes);
  peer.remote.mirror.header().shrinkRecord.store(said);
  // The own voter looks at once.
  {
    std::lock_guard lock(mutex);
    nextVote = {};
  }
  wakeSender();
}

void Network::setVoter(std::function<std::chrono::nanoseconds()> given) {
  std::lock_guard lock(mutex);
  voter = std::move(given);
  nextVote = {};
}

/// With the lock.
void Network::vote() {
  // The voter may publish a record, which wakes this thread without the lock.
  if (voter && SteadyClock::now() >= nextVote)
    nextVote = SteadyClock::now() + voter();
}

} // namespace occl::net
