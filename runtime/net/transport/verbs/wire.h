// What endpoints over RDMA send each other: a head, then what belongs to it.
#pragma once

#include "runtime/net/transport/frame.h"

#include <cstdint>

namespace occl::net {

/// Of each request that is received. Little endian.
struct VerbsHead {
  /// Of a frame, whose bytes follow; with isPlaced those of a put, which were written to their
  /// place before. Kind 0: there is none, and extents follow.
  FrameHeader frame;
  uint64_t consumed = 0;     // frames of the other direction, since the begin
  uint32_t knownExtents = 0; // of the other side
  uint16_t isPlaced = 0;
  uint16_t numExtents = 0;
};
static_assert(sizeof(VerbsHead) == 64);

/// Part of a region that its owner has registered: whoever receives this may write there.
struct VerbsExtent {
  uint64_t offset = 0; // in the region, a multiple of kExtentBytes
  uint64_t bytes = 0;  // kExtentBytes, or less at the region's end
  uint64_t address = 0;
  uint32_t region = 0;
  uint32_t key = 0;
};
static_assert(sizeof(VerbsExtent) == 32);

/// What a request has to have behind this head: only the bytes of a put may be elsewhere.
inline uint64_t bytesBehind(const VerbsHead &head) {
  if (head.frame.kind == 0)
    return head.numExtents * sizeof(VerbsExtent);
  return head.frame.kind == FrameHeader::kPut && head.isPlaced ? 0 : head.frame.bytes;
}

inline constexpr uint64_t kExtentBytes = 2 << 20;
/// Bytes behind a head.
inline constexpr uint64_t kFrameBytes = 8 << 10;
static_assert(kFrameBytes >= kMaxMessage);
/// Frames that a receiver has room for. After half of them it says how many it has consumed.
inline constexpr uint32_t kFrames = 64;
/// And heads without a frame: of the trial, three of credit, and one with extents, which is not
/// followed by another one before the peer knows them.
inline constexpr uint32_t kControls = 8;

} // namespace occl::net
