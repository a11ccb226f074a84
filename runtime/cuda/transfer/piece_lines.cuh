// The lines of a small transfer's pieces (pair_slots.h), as threads store and load them.
#pragma once

#include "runtime/exec/cuda/line_words.cuh"

#include <cstdint>

namespace occl::cuda {

/// A thread's lines of a piece, some at a time. A line is 16 bytes: two words of 4 bytes of data
/// and the flag.
template <uint32_t kAtOnce> class PieceLines {
public:
  /// lines: of the piece's slot. Thread `rank` of `size`.
  __device__ PieceLines(char *lines, uint32_t flag, uint32_t bytes, uint32_t rank, uint32_t size)
      : lines(lines), flag(flag), bytes(bytes), rank(rank), size(size) {}

  /// How many times there are, the same for all threads.
  __device__ uint32_t times() const {
    const uint32_t atOnce = kLineData * kAtOnce * size;
    return (bytes + atOnce - 1) / atOnce;
  }
  /// Data of a buffer of any alignment.
  __device__ void store(uint32_t time, const char *buffer) const {
    const bool isAligned = areWords(buffer);
    // All loads come before the first store, so that they are in flight together.
    uint64_t data[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t begin = beginOf(time, k);
      if (isAligned && begin < bytes)
        data[k] = *reinterpret_cast<const uint64_t *>(buffer + begin);
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t begin = beginOf(time, k);
      if (begin >= bytes)
        break;
      // Unless buffer and size are whole words, bytes are loaded one by one.
      const uint64_t word = isAligned ? data[k] : loadBytes(buffer + begin, bytes - begin);
      interpreter::cuda::storeOfLine(lines + 2 * begin, {static_cast<uint32_t>(word), flag,
                                                         static_cast<uint32_t>(word >> 32), flag});
    }
  }
  /// Whether this thread's have arrived, which it then keeps.
  __device__ bool look(uint32_t time) {
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (const uint32_t begin = beginOf(time, k); begin < bytes)
        seen[k] = interpreter::cuda::loadOfLine(lines + 2 * begin);
    bool haveArrived = true;
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (beginOf(time, k) < bytes)
        haveArrived &= seen[k].y == flag && seen[k].w == flag;
    return haveArrived;
  }
  /// What it keeps.
  __device__ void unpack(uint32_t time, char *buffer) const {
    const bool isAligned = areWords(buffer);
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      const uint32_t begin = beginOf(time, k);
      if (begin >= bytes)
        break;
      const uint64_t word = seen[k].x | static_cast<uint64_t>(seen[k].z) << 32;
      if (isAligned)
        *reinterpret_cast<uint64_t *>(buffer + begin) = word;
      else
        storeBytes(buffer + begin, bytes - begin, word);
    }
  }

private:
  static constexpr uint32_t kLineData = 8;

  __device__ uint32_t beginOf(uint32_t time, uint32_t k) const {
    return ((time * kAtOnce + k) * size + rank) * kLineData;
  }
  __device__ bool areWords(const char *buffer) const {
    return (reinterpret_cast<uintptr_t>(buffer) | bytes) % kLineData == 0;
  }
  // One byte after the other, so that what is aligned has registers.
  static __device__ uint64_t loadBytes(const char *from, uint32_t left) {
    uint64_t word = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < kLineData && i < left; ++i)
      word |= static_cast<uint64_t>(static_cast<uint8_t>(from[i])) << i * 8;
    return word;
  }
  static __device__ void storeBytes(char *to, uint32_t left, uint64_t word) {
#pragma unroll 1
    for (uint32_t i = 0; i < kLineData && i < left; ++i)
      to[i] = static_cast<char>(word >> i * 8);
  }

  char *const lines;
  const uint32_t flag, bytes, rank, size;
  uint4 seen[kAtOnce];
};

} // namespace occl::cuda
