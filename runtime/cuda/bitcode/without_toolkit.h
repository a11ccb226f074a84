// What occl_device.cuh and the file beside this one need of CUDA, for clang without the toolkit's
// headers; in assembly where the functions of LLVM have other names in other versions of it.
#pragma once

#define __CUDACC__ 1
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __host__ __attribute__((host))

#include <__clang_cuda_builtin_vars.h>

#include <cstdint>

/// Of the functions that others call. Into their kernels: a call that is left there would keep
/// ptxas from overlapping matrix instructions.
#define OCCL_BITCODE __device__ __attribute__((always_inline))

using uint4 = uint32_t __attribute__((ext_vector_type(4)));

__device__ inline void allThreadsMeet() { asm volatile("bar.sync 0;" ::: "memory"); }
#define __syncthreads() allThreadsMeet() // clang's own is a function of LLVM
__device__ inline void __syncwarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

__device__ inline uint32_t shuffleHalf(uint32_t value, uint32_t lane) {
  uint32_t given;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(given)
               : "r"(value), "r"(lane)
               : "memory");
  return given;
}
__device__ inline uint32_t laneOfWarp() {
  uint32_t lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ inline unsigned long long __shfl_sync(unsigned, unsigned long long value, int lane) {
  const uint64_t low = shuffleHalf(static_cast<uint32_t>(value), static_cast<uint32_t>(lane));
  return uint64_t{shuffleHalf(static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(lane))}
             << 32 |
         low;
}
__device__ inline unsigned long long __shfl_xor_sync(unsigned all, unsigned long long value,
                                                     int away) {
  return __shfl_sync(all, value, static_cast<int>(laneOfWarp()) ^ away);
}
/// Of the header's groups that have shared memory, which nothing here uses.
__device__ void atomicMin(unsigned long long *word, unsigned long long value);

namespace occl_bitcode {

/// A barrier of the block: of how many threads it is true.
__device__ inline uint32_t countThreads(bool isTrue) {
  uint32_t count;
  asm volatile("{\n\t.reg .pred isTrue;\n\tsetp.ne.u32 isTrue, %1, 0;\n\t"
               "bar.red.popc.u32 %0, 0, isTrue;\n\t}"
               : "=r"(count)
               : "r"(static_cast<uint32_t>(isTrue))
               : "memory");
  return count;
}

} // namespace occl_bitcode
