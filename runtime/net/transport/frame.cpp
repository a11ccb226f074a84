// Headers of frames, the checks of what has come, and how it is stored.
#include "runtime/net/transport/frame.h"

#include "runtime/sync/atomic.h"

#include <bit>
#include <cstring>

namespace occl::net {

static_assert(std::endian::native == std::endian::little);

FrameHeader headerOf(const Put &put, uint64_t number) {
  FrameHeader header;
  header.kind = FrameHeader::kPut;
  header.bytes = static_cast<uint32_t>(put.bytes.size());
  header.region = put.region;
  header.hasWord = put.hasWord;
  header.offset = put.offset;
  header.wordOffset = put.wordOffset;
  header.word = put.word;
  header.number = number;
  return header;
}

FrameHeader headerOfMessage(uint64_t bytes, uint64_t number) {
  FrameHeader header;
  header.kind = FrameHeader::kMessage;
  header.bytes = static_cast<uint32_t>(bytes);
  header.number = number;
  return header;
}

std::string faultOf(const FrameHeader &header, uint64_t number, const Regions &regions) {
  // The number shows a frame that was lost or came twice.
  if (header.number != number)
    return "frame " + std::to_string(header.number) + " in the place of frame " +
           std::to_string(number);
  if (header.kind == FrameHeader::kMessage)
    return header.bytes <= kMaxMessage ? ""
                                       : "a message of " + std::to_string(header.bytes) + " bytes";
  if (header.kind != FrameHeader::kPut)
    return "a frame of kind " + std::to_string(header.kind);
  // A put must lie within its region; the comparisons cannot overflow.
  if (header.region >= kNumRegions)
    return "a put into region " + std::to_string(header.region);
  const uint64_t size = regions[header.region].size();
  if (header.bytes > kMaxPut || header.offset > size || header.bytes > size - header.offset)
    return "a put of " + std::to_string(header.bytes) + " bytes at offset " +
           std::to_string(header.offset) + " of a region of " + std::to_string(size);
  if (header.hasWord > 1 || (header.hasWord == 1 && (header.wordOffset % sizeof(uint64_t) != 0 ||
                                                     size < sizeof(uint64_t) ||
                                                     header.wordOffset > size - sizeof(uint64_t))))
    return "a word at offset " + std::to_string(header.wordOffset) + " of a region of " +
           std::to_string(size);
  return "";
}

std::byte *placeOf(const FrameHeader &header, const Regions &regions) {
  return regions[header.region].data() + header.offset;
}

bool isOneWord(const std::byte *place, uint64_t bytes) {
  return bytes == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(place) % sizeof(uint64_t) == 0;
}

void storeWordAt(std::byte *place, const std::byte *bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  storeShared(reinterpret_cast<uint64_t *>(place), word, std::memory_order_relaxed);
}

void storeBytes(const FrameHeader &header, const std::byte *bytes, const Regions &regions) {
  if (header.bytes == 0)
    return;
  std::byte *place = placeOf(header, regions);
  if (isOneWord(place, header.bytes))
    storeWordAt(place, bytes);
  else
    std::memcpy(place, bytes, header.bytes);
}

void storeWord(const FrameHeader &header, const Regions &regions) {
  if (header.kind != FrameHeader::kPut || header.hasWord == 0)
    return;
  auto *word = reinterpret_cast<uint64_t *>(regions[header.region].data() + header.wordOffset);
  // Another connection may store a word here meanwhile: the largest one stays.
  for (uint64_t there = loadShared(word, std::memory_order_relaxed);
       there < header.word && !exchangeShared(word, there, header.word);) {
  }
}

} // namespace occl::net
