// A vote of a CUDA thread block.
#pragma once

#include <cstdint>

namespace occl::interpreter::cuda {

/// Whether `ok` of all threads of the block, each of which calls it. Barrier 2, which nobody else
/// uses.
__device__ inline bool allOfBlock(bool ok) {
  uint32_t all;
  asm volatile("{ .reg .pred in, out; setp.ne.u32 in, %1, 0; barrier.red.and.pred out, 2, in; "
               "selp.u32 %0, 1, 0, out; }"
               : "=r"(all)
               : "r"(static_cast<uint32_t>(ok))
               : "memory");
  return all != 0;
}

} // namespace occl::interpreter::cuda
