// How in-stream kernels end: the invocation counts as over.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/in_stream.h"

#include <cstdint>

namespace occl::cuda {

/// The invocation is over on thread block `block`: the next one may follow. Of captured ones that
/// is known in other kernels only when this one has ended. One thread, which has met those of its
/// warp since they have stored something.
__device__ inline void countInvocation(const InStreamArguments &arguments, uint64_t number,
                                       uint32_t block) {
  uint64_t *next = arguments.collective.ordinals + block;
  if (arguments.number == kAnyNumber)
    storeWord(next, number + 1);
  else
    releaseWord(next, number + 1);
}

} // namespace occl::cuda
