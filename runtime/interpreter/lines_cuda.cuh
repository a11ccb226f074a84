// Lines of protocols LL and LL128 for the first warp of a CUDA thread block, all lanes together.
//
// Memory order. LL: a word of data and flag is one store and one load, which do not come apart.
// LL128: eight neighbouring lanes store a line by one instruction, 16 bytes each, and the memory
// system keeps the 128 bytes of it together, also on its way to a peer; the flag is loaded with
// acquire, the data after it. Neither needs a release, which would wait until all stores have
// arrived.
#pragma once

#include "runtime/interpreter/invocation.h"

#include <cstdint>

namespace occl::interpreter::cuda {

inline constexpr uint32_t kWarpLanes = 32;

__device__ inline uint64_t linesFor(const LineFormat &format, uint64_t bytes) {
  return bytes <= format.dataBytes ? 1 : (bytes + format.dataBytes - 1) / format.dataBytes;
}

/// Whether the lines that this lane looks at have the flag.
__device__ inline bool linesArrived(const LineFormat &format, const char *lines, uint64_t bytes,
                                    uint64_t flag, uint32_t lane) {
  bool inWords = format.bytes == kWordLineBytes;
  uint64_t numLines = linesFor(format, bytes);
  bool all = true;
  for (uint64_t line = lane; line < numLines; line += kWarpLanes) {
    const char *at = lines + line * format.bytes + (inWords ? 0 : format.dataBytes);
    uint64_t word;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    all &=
        inWords ? static_cast<uint32_t>(word >> 32) == static_cast<uint32_t>(flag) : word == flag;
  }
  return all;
}

/// To a staging area, which has room for whole words.
__device__ inline void unpackLines(const LineFormat &format, const char *lines, char *to,
                                   uint64_t bytes, uint32_t lane) {
  bool inWords = format.bytes == kWordLineBytes;
  uint32_t unit = inWords ? 4 : 8; // bytes of data in a word
  for (uint64_t offset = lane * unit; offset < bytes; offset += kWarpLanes * unit) {
    uint64_t line = offset / format.dataBytes;
    const char *at = lines + line * format.bytes + (offset - line * format.dataBytes);
    uint64_t word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
    if (inWords)
      *reinterpret_cast<uint32_t *>(to + offset) = static_cast<uint32_t>(word);
    else
      *reinterpret_cast<uint64_t *>(to + offset) = word;
  }
}

__device__ inline void packWords(const char *from, char *lines, uint64_t bytes, uint64_t flag,
                                 uint32_t lane) {
  uint64_t numWords = bytes <= 4 ? 1 : (bytes + 3) / 4;
  for (uint64_t i = lane; i < numWords; i += kWarpLanes) {
    uint64_t data = i * 4 < bytes ? *reinterpret_cast<const uint32_t *>(from + i * 4) : 0;
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(lines + i * kWordLineBytes),
                 "l"(flag << 32 | data)
                 : "memory");
  }
}

/// From a staging area.
__device__ inline void packLines(const LineFormat &format, const char *from, char *lines,
                                 uint64_t bytes, uint64_t flag, uint32_t lane) {
  if (format.bytes == kWordLineBytes)
    return packWords(from, lines, bytes, flag, lane);
  auto dataAt = [&](uint64_t offset) {
    return offset < bytes ? *reinterpret_cast<const uint64_t *>(from + offset) : uint64_t(0);
  };
  uint32_t vectorsPerLine = format.bytes / 16;
  uint64_t vectors = linesFor(format, bytes) * vectorsPerLine;
  for (uint64_t v = lane; v < vectors; v += kWarpLanes) {
    uint64_t line = v / vectorsPerLine, inLine = v - line * vectorsPerLine;
    uint64_t offset = line * format.dataBytes + inLine * 16;
    uint64_t first = dataAt(offset);
    uint64_t second = inLine + 1 == vectorsPerLine ? flag : dataAt(offset + 8);
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(lines + v * 16), "l"(first),
                 "l"(second)
                 : "memory");
  }
}

} // namespace occl::interpreter::cuda
