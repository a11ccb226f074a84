// The part of a network that asks ranks of other islands what they wait for, and answers them:
// docs/decisions/hosts/net-transfers.md#reports.
#include "runtime/net/network.h"

#include "runtime/base/tick_clock.h"
#include "runtime/sync/atomic.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>

namespace occl::net {

namespace {

using namespace std::chrono_literals;
using transport::WaitEdge;

/// Less than a rank of this machine is waited for, as the way takes time, too.
constexpr auto kUntilAnswer = 40ms;

WaitRecord recordOf(const WaitEdge &edge, const TickScale &scale, Ticks now) {
  WaitRecord record;
  record.collective = edge.collective;
  record.ordinal = edge.ordinal;
  record.block = edge.block;
  record.instruction = edge.instruction;
  record.reason = static_cast<uint32_t>(edge.reason);
  record.peer = edge.peer;
  record.thing = edge.thing;
  record.nanoseconds = edge.since == 0 ? 0 : scale.nanoseconds(elapsed(edge.since, now));
  return record;
}

Ticks ticksIn(uint64_t nanoseconds, const TickScale &scale) {
  // The scale has no inverse, so it comes from many ticks, which keeps it precise.
  constexpr Ticks kMany = 1u << 30;
  // A peer may say any number, also one whose ticks 64 bits do not hold.
  constexpr double kMost = 0x1p63;
  return static_cast<Ticks>(std::min(static_cast<double>(nanoseconds) /
                                         static_cast<double>(scale.nanoseconds(kMany)) * kMany,
                                     kMost));
}

WaitEdge edgeOf(const WaitRecord &record, const TickScale &scale, Ticks now) {
  // Clocks of machines differ, so the age crosses, and becomes a time again here.
  const Ticks age = ticksIn(record.nanoseconds, scale);
  return {record.collective,
          record.ordinal,
          record.block,
          record.instruction,
          static_cast<transport::WaitReason>(record.reason),
          record.peer,
          record.thing,
          record.nanoseconds == 0 || age >= now ? 0 : now - age};
}

} // namespace

// --- The sending thread, with the lock.

/// Asks what somebody of this rank asks the mirror, and answers.
bool Network::sendReports(Peer &peer) {
  const transport::Segment &mirror = peer.remote.mirror;
  const uint32_t asked = mirror.words().reportsAsked.load(std::memory_order_acquire);
  if (asked != peer.asksSent) {
    if (!sendMessage(peer, {.kind = Message::Ask, .ordinal = asked}))
      return false;
    peer.asksSent = asked;
    mirror.header().waitEdges.clear(); // an old answer is none
  }
  // Answer once the watchdog has published its waits, or the time for that is over.
  if (!peer.question ||
      !(own->header().hasAnswered(peer.question->ownNumber) || peer.question->until.passed()))
    return true;
  if (!sendWaits(peer, peer.question->number))
    return false;
  peer.question.reset();
  return true;
}

bool Network::sendWaits(Peer &peer, uint64_t number) {
  const TickScale scale;
  const Ticks now = ticks();
  std::string text;
  const auto edges = own->header().waitEdges.read().edges;
  for (size_t i = 0; i < std::min(edges.size(), kMostWaits); ++i) {
    const WaitRecord record = recordOf(edges[i], scale, now);
    text.append(reinterpret_cast<const char *>(&record), sizeof record);
  }
  return sendMessage(peer, {.kind = Message::Waits, .ordinal = number}, text);
}

// --- The receiving thread.

void Network::asked(Peer &peer, const Message &message) {
  {
    std::lock_guard lock(mutex);
    if (!own)
      return;
    peer.question = {message.ordinal, own->words().askForReport(), Deadline(kUntilAnswer)};
  }
  wakeSender();
}

bool Network::answered(Peer &peer, const MessageWithText &answer) {
  const TickScale scale;
  const Ticks now = ticks();
  std::vector<WaitEdge> edges;
  // Another process has sent these, so reasons and ranks are checked before they are used.
  for (size_t at = 0; at < answer.text.size(); at += sizeof(WaitRecord)) {
    WaitRecord record;
    std::memcpy(&record, answer.text.data() + at, sizeof record);
    if (record.reason >= transport::kNumWaitReasons || record.peer >= indexOf.size())
      return false;
    edges.push_back(edgeOf(record, scale, now));
  }
  std::lock_guard lock(mutex); // as the sending thread writes there, too
  transport::SegmentHeader &header = peer.remote.mirror.header();
  if (static_cast<uint32_t>(answer.message.ordinal) != peer.asksSent)
    return true; // of a question before the last
  header.waitEdges.publish(edges);
  header.reportsAnswered.store(peer.asksSent, std::memory_order_release);
  return true;
}

} // namespace occl::net
