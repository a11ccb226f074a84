// How in-stream kernels end: the invocation counts as over, and a host thread that waits for it
// learns of it.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/in_stream.h"

#include <cstdint>

namespace occl::cuda {

/// Thread block `block` has nothing more to do, and has counted the invocation. One thread, which
/// has met all that did it. Buffers are memory of the device, and whatever the host has look at
/// them next reads them there: so a fence for the device is enough. It also puts the count before
/// the word, for a host that asks whether the invocation is over.
__device__ inline void tellHost(const EndWords &ended, uint32_t block) {
  if (ended.words == nullptr)
    return;
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  storeWord(ended.words + block, ended.ticket);
}

/// The invocation is over on thread block `block`: the next one may follow. Of captured ones that
/// is known in other kernels only when this one has ended. One thread.
__device__ inline void countInvocation(const InStreamArguments &arguments, uint64_t number,
                                       uint32_t block) {
  uint64_t *next = arguments.collective.ordinals + block;
  if (arguments.number == kAnyNumber)
    storeWord(next, number + 1);
  else
    releaseWord(next, number + 1);
  tellHost(arguments.ended, block);
}

} // namespace occl::cuda
