// Marks for functions that host and device code share. They are inlined always: a function body
// compiled for one instruction set must never be linked into a caller built for another.
#pragma once

#ifdef __CUDACC__
#define OCCL_INLINE __host__ __device__ __forceinline__
#else
#define OCCL_INLINE inline __attribute__((always_inline))
#endif
