// How the slice's kernels bound every wait, and how they report.
#pragma once

#include "bench/gpu/kernels/block_report.h"

#include <cstdint>

namespace occl::bench {

/// Bounds a wait: all threads that wait together call it after each poll that found something
/// missing.
class Patience {
public:
  __device__ explicit Patience(uint64_t cycles) : cycles(cycles) {}
  __device__ void progressed() { polls = 0; }
  /// `any`: whether any of the threads says so, for all of them.
  template <class Any> __device__ bool isExhausted(const Any &any) {
    if (polls++ == 0)
      start = clock64();
    if (polls % 256 != 0)
      return false;
    return any(static_cast<uint64_t>(clock64()) - start > cycles);
  }

private:
  uint64_t cycles, start = 0;
  uint32_t polls = 0;
};

/// Of several reports of failure the first stays.
__device__ inline void report(BlockReport &to, const BlockReport &outcome) {
  static_assert(BlockReport::Absent < BlockReport::Finished &&
                BlockReport::Finished < BlockReport::GaveUp);
  if (atomicMax(&to.status, outcome.status) != BlockReport::GaveUp)
    to = outcome;
}

} // namespace occl::bench
