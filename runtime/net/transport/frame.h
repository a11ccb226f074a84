// What endpoints send to each other: a header, then the bytes of a put or of a message.
#pragma once

#include "runtime/net/transport/transport.h"

#include <cstdint>
#include <optional>
#include <string>

namespace occl::net {

/// As it is on the wire, little endian.
struct FrameHeader {
  enum Kind : uint32_t { kPut = 1, kMessage = 2 };

  uint32_t kind = 0;
  uint32_t bytes = 0; // behind the header
  uint32_t region = 0;
  uint32_t hasWord = 0;
  uint64_t offset = 0;
  uint64_t wordOffset = 0;
  uint64_t word = 0;
  uint64_t number = 0; // of the frame in its direction, from 0 on
};
static_assert(sizeof(FrameHeader) == 48);

FrameHeader headerOf(const Put &put, uint64_t number);
FrameHeader headerOfMessage(uint64_t bytes, uint64_t number);

/// What is wrong with a frame that a peer has sent as the `number`-th; empty if nothing is.
std::string faultOf(const FrameHeader &header, uint64_t number, const Regions &regions);
/// Where the bytes of a put without fault go.
std::byte *placeOf(const FrameHeader &header, const Regions &regions);
/// Bytes that nobody may see a part of.
bool isOneWord(const std::byte *place, uint64_t bytes);
void storeWordAt(std::byte *place, const std::byte *bytes);
/// All bytes of a put without fault, to their place.
void storeBytes(const FrameHeader &header, const std::byte *bytes, const Regions &regions);
/// After its bytes are there.
void storeWord(const FrameHeader &header, const Regions &regions);

} // namespace occl::net
