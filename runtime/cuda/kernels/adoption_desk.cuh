// Where the thread blocks of an invocation in a stream leave their steps, and one finds those of
// the others (runtime/cuda/tables/adoption.h). All functions are called by all lanes of a warp, of
// thread blocks that have a first warp for it.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/tables/adoption.h"
#include "runtime/cuda/tables/device_collective.h"

#include <cstdint>

namespace occl::cuda {

/// The word of an invocation, of which only its rank's kernels know.
class AdoptionDesk {
public:
  __device__ AdoptionDesk(const DeviceCollective &collective, uint64_t number)
      : number(number), word(collective.adoptions.word(number, collective.numBlocks)),
        left(collective.adoptions.left(number, collective.numBlocks)) {}

  /// Having left, `block` is not to be touched any more. What its thread block has stored and met
  /// at a barrier is seen by who sees that it has left.
  __device__ Parting part(uint32_t block, const interpreter::BlockContext &context) {
    uint32_t parting = 0;
    if (threadIdx.x == 0) {
      parting = static_cast<uint32_t>(tryParting());
      if (parting == static_cast<uint32_t>(Parting::Leave)) {
        left[block].context = context;
        releaseWord(&left[block].owner, number + 1);
      }
    }
    return static_cast<Parting>(__shfl_sync(~0u, parting, 0));
  }

  /// Whether thread block `block`, another one for each lane if need be, has left, and its steps
  /// are not finished.
  __device__ bool hasLeft(uint32_t block) const {
    return acquireWord(&left[block].owner) == number + 1;
  }
  /// Where one stands that has left.
  __device__ interpreter::BlockContext contextOf(uint32_t block) const {
    return left[block].context;
  }
  __device__ void save(uint32_t block, const interpreter::BlockContext &context) {
    if (threadIdx.x == 0)
      left[block].context = context;
    __syncwarp();
  }
  __device__ void finish(uint32_t block) {
    if (threadIdx.x == 0)
      storeWord(&left[block].owner, 0);
    ++finished;
  }
  /// Whether the adopter has finished all that left, and is none any more.
  __device__ bool end() {
    uint32_t isFree = 0;
    if (threadIdx.x == 0) {
      uint64_t last = adoptedWord(number, finished);
      isFree = swap(last, kFreeWord) == last;
    }
    return __shfl_sync(~0u, isFree, 0) != 0;
  }

private:
  __device__ Parting tryParting() {
    uint64_t seen = loadWord(word);
    for (;;) {
      PartingOffer offer = offerParting(seen, number);
      if (offer.parting == Parting::Stay)
        return offer.parting;
      uint64_t before = swap(seen, offer.next);
      if (before == seen)
        return offer.parting;
      seen = before;
    }
  }
  __device__ uint64_t swap(uint64_t expected, uint64_t next) {
    return atomicCAS(reinterpret_cast<unsigned long long *>(word), expected, next);
  }

  const uint64_t number;
  uint64_t *const word;
  LeftBlock *const left;
  uint32_t finished = 0; // of those that left
};

} // namespace occl::cuda
