// What occl_device.cuh is made of, and not for programs: the groups of threads that call together,
// and their copies. Without CUDA host code, for groups of one thread.
#ifndef OCCL_DEVICE_GROUPS_CUH
#define OCCL_DEVICE_GROUPS_CUH

#include "occl_device_words.cuh"

#include <cstdint>
#ifndef __CUDACC__
#include <cstring>
#endif

namespace occl::device::detail {

// --- groups ---

/// A thread for itself.
struct Thread {
  OCCL_DEVICE_FUNCTION uint32_t rank() const { return 0; }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return 1; }
  OCCL_DEVICE_FUNCTION void sync() const {}
  /// The first thread's.
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const { return value; }
  /// Of all threads' values. What a thread has seen before, all have afterwards.
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const { return value; }
};

#ifdef __CUDACC__
struct Warp {
  OCCL_DEVICE_FUNCTION uint32_t rank() const {
    uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return 32; }
  OCCL_DEVICE_FUNCTION void sync() const { __syncwarp(); }
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const {
    const uint64_t given = __shfl_sync(~0u, static_cast<unsigned long long>(value), 0);
    __syncwarp(); // what the first lane has seen
    return given;
  }
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const {
    auto least = static_cast<unsigned long long>(value);
    for (int away = 16; away > 0; away /= 2) {
      const unsigned long long other = __shfl_xor_sync(~0u, least, away);
      least = other < least ? other : least;
    }
    __syncwarp();
    return least;
  }
};

struct Block {
  OCCL_DEVICE_FUNCTION uint32_t rank() const {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return blockDim.x * blockDim.y * blockDim.z; }
  OCCL_DEVICE_FUNCTION void sync() const { __syncthreads(); }
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const {
    __shared__ uint64_t first;
    if (rank() == 0)
      first = value;
    __syncthreads();
    const uint64_t given = first;
    __syncthreads();
    return given;
  }
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const {
    __shared__ unsigned long long least;
    if (rank() == 0)
      least = ~0ull;
    __syncthreads();
    if (value != ~0ull)
      atomicMin(&least, static_cast<unsigned long long>(value));
    __syncthreads();
    const uint64_t found = least;
    __syncthreads();
    return found;
  }
};
#endif

// --- copies ---

#ifdef __CUDACC__
/// Words from byte `done` on, as long as there are whole ones; the first byte behind them. Bytes: a
/// type for numbers of bytes, of which small copies take a small one.
template <class Word, class Group, class Bytes>
__device__ Bytes copyWords(Group group, char *to, const char *from, Bytes done, Bytes bytes) {
  constexpr uint32_t kAtOnce = 8;
  const Bytes number = (bytes - done) / sizeof(Word), step = group.size();
  auto *into = reinterpret_cast<Word *>(to + done);
  const auto *of = reinterpret_cast<const Word *>(from + done);
  for (Bytes i = group.rank(); i < number; i += kAtOnce * step) {
    // Load several words before the first is stored, so that the loads overlap.
    Word loaded[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * step < number)
        loaded[k] = of[i + k * step];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k)
      if (i + k * step < number)
        into[i + k * step] = loaded[k];
  }
  return done + number * sizeof(Word);
}
/// By all of the group; buffers are aligned to anything.
template <class Group, class Bytes>
__device__ void copy(Group group, char *to, const char *from, Bytes bytes) {
  const auto ends = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  Bytes done = 0;
  if (ends % sizeof(uint4) == 0)
    done = copyWords<uint4>(group, to, from, done, bytes);
  if (ends % sizeof(uint32_t) == 0)
    done = copyWords<uint32_t>(group, to, from, done, bytes);
  copyWords<uint8_t>(group, to, from, done, bytes);
}
#else
inline void copy(Thread, char *to, const char *from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

} // namespace occl::device::detail

#endif // OCCL_DEVICE_GROUPS_CUH
