// Marks for functions that host and device code share. They are inlined always: a function body
// compiled for one instruction set must never be linked into a caller built for another.
//
// OCCL_CALLS_ARGUMENT stands before a template that calls what its argument supplies: whether that
// is host or device code decides on which side the template may be used, and nvcc is not to ask for
// both.
#pragma once

#ifdef __CUDACC__
#define OCCL_INLINE __host__ __device__ __forceinline__
#define OCCL_CALLS_ARGUMENT _Pragma("nv_exec_check_disable")
#else
#define OCCL_INLINE inline __attribute__((always_inline))
#define OCCL_CALLS_ARGUMENT
#endif
