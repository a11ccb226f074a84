// Packs frames into packets for a plugin, and unpacks those that come.
#include "runtime/net/transport/nccl_net/packets.h"

#include <algorithm>
#include <cstring>

namespace occl::net {

// --- Sending.

uint64_t PacketSender::mostFrameBytes() const {
  return comms.packetBytes() - sizeof(PacketHead) - sizeof(FrameHeader);
}

bool PacketSender::hasRoomFor(uint64_t bytes) const {
  // The frame fits into the packet that is being filled.
  if (used != 0 && used + sizeof(FrameHeader) + bytes <= comms.packetBytes())
    return true;
  // Else it needs packets of its own, beside the one that is sealed for it.
  const uint64_t most = mostFrameBytes(), needed = std::max<uint64_t>(1, (bytes + most - 1) / most);
  return needed + (used != 0) <= kSlots - (sealed - done);
}

void PacketSender::add(const Put &put) {
  const uint64_t size = put.bytes.size();
  uint64_t at = 0;
  do {
    Put part = put;
    part.offset = put.offset + at;
    part.bytes = put.bytes.subspan(at, std::min(mostFrameBytes(), size - at));
    at += part.bytes.size();
    part.hasWord = put.hasWord && at == size;
    addFrame(headerOf(part, 0), part.bytes);
  } while (at < size);
}

void PacketSender::add(std::span<const std::byte> message) {
  addFrame(headerOfMessage(message.size(), 0), message);
}

void PacketSender::addFrame(FrameHeader header, std::span<const std::byte> bytes) {
  header.number = frames++;
  // A frame lies in one packet.
  if (used + sizeof header + bytes.size() > comms.packetBytes())
    seal();
  // The first frame leaves room for the head.
  if (used == 0) {
    heads[sealed % kSlots] = {.number = sealed};
    used = sizeof(PacketHead);
  }
  std::byte *place = comms.sendSlot(sealed).data() + used;
  std::memcpy(place, &header, sizeof header);
  if (!bytes.empty())
    std::memcpy(place + sizeof header, bytes.data(), bytes.size());
  used += sizeof header + bytes.size();
}

bool PacketSender::addHead(bool asks) {
  if (used == 0 && posted != sealed) { // one that goes anyway
    heads[(sealed - 1) % kSlots].asks |= asks;
    return true;
  }
  if (used == 0) {
    if (sealed - done == kSlots)
      return false;
    heads[sealed % kSlots] = {.number = sealed};
    used = sizeof(PacketHead);
  }
  heads[sealed % kSlots].asks |= asks;
  seal();
  return true;
}

void PacketSender::seal() {
  if (used == 0)
    return;
  heads[sealed % kSlots].bytes = static_cast<uint32_t>(used - sizeof(PacketHead));
  ++sealed;
  used = 0;
}

Status PacketSender::progress(uint64_t consumed) {
  for (; posted != sealed; ++posted) {
    // The head is written when the packet goes, so that it has the latest credit.
    PacketHead &head = heads[posted % kSlots];
    head.consumed = consumed;
    std::memcpy(comms.sendSlot(posted).data(), &head, sizeof head);
    const auto taken = comms.send(posted, sizeof head + head.bytes);
    if (!taken.ok())
      return taken.status();
    // The plugin takes nothing at the moment.
    if (!*taken)
      break;
  }
  // Packets free their slots in order.
  for (; done != posted; ++done) {
    const auto sent = comms.isSent(done);
    if (!sent.ok())
      return sent.status();
    if (!*sent)
      break;
  }
  return {};
}

// --- Receiving.

Status PacketReceiver::progress() {
  // Post a request for each slot that is free.
  for (; posted - handled < kSlots; ++posted) {
    const auto taken = comms.receive(posted);
    if (!taken.ok())
      return taken.status();
    if (!*taken)
      break;
  }
  // Packets are taken in order: a later one waits for those before it.
  for (; come != posted; ++come) {
    const auto received = comms.received(come);
    if (!received.ok())
      return received.status();
    if (!*received)
      break;
    sizes[come % kSlots] = **received;
    // Credit counts at once, although the packet is handled later.
    if (const Packet it = packet(come); it.fault.empty())
      consumed = std::max(consumed, it.head.consumed);
  }
  return {};
}

PacketReceiver::Packet PacketReceiver::packet(uint64_t number) const {
  const uint64_t size = sizes[number % kSlots];
  Packet it;
  // Another process has sent it: its sizes are checked before they are used.
  if (size < sizeof it.head || size > comms.packetBytes()) {
    it.fault = "a packet of " + std::to_string(size) + " bytes";
    return it;
  }
  const std::span<const std::byte> bytes = comms.receiveSlot(number).first(size);
  std::memcpy(&it.head, bytes.data(), sizeof it.head);
  it.frames = bytes.subspan(sizeof it.head);
  if (it.head.number != number)
    it.fault = "packet " + std::to_string(it.head.number) + " in the place of packet " +
               std::to_string(number);
  else if (it.head.bytes != it.frames.size())
    it.fault = std::to_string(it.frames.size()) + " bytes of frames in place of " +
               std::to_string(it.head.bytes);
  return it;
}

std::optional<PacketReceiver::Packet> PacketReceiver::front() const {
  return handled != come ? std::optional(packet(handled)) : std::nullopt;
}

} // namespace occl::net
