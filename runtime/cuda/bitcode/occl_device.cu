// The functions that kernels have of partitioned requests (occl_device.cuh), in C, for languages
// that link LLVM bitcode: occl_device.bc, compiled by clang alone, without the CUDA toolkit.
// python/occl/triton/__init__.py says what each does. A request is what occlPdevicePointer gives;
// all threads of the thread block call together, with the same arguments.
//
// No shared memory: the compilers that link this place all of it themselves, and what an
// instruction needs aligned to 1,024 bytes would move. So the block tells its threads something by
// barriers that count.
#include "runtime/cuda/bitcode/without_toolkit.h"

#include "runtime/api/occl_device.cuh"

namespace {

using namespace occl::device;

/// All threads of a thread block of one dimension, of whole warps.
struct Program {
  OCCL_DEVICE_FUNCTION uint32_t rank() const { return threadIdx.x; }
  OCCL_DEVICE_FUNCTION uint32_t size() const { return blockDim.x; }
  OCCL_DEVICE_FUNCTION void sync() const { __syncthreads(); }

  /// The first thread's: five bits with each barrier, by so many threads of its warp.
  OCCL_DEVICE_FUNCTION uint64_t broadcast(uint64_t value) const {
    const uint64_t ofWarp = detail::Warp().broadcast(value);
    constexpr uint32_t kBits = 5;
    const uint32_t length = 64 - static_cast<uint32_t>(__builtin_clzll(ofWarp | 1));
    const uint32_t steps = byFirstWarp(ofWarp == 0 ? 0 : (length + kBits - 1) / kBits);
    uint64_t given = 0;
    for (uint32_t i = 0; i < steps; ++i)
      given |= uint64_t{byFirstWarp(static_cast<uint32_t>(ofWarp >> (i * kBits)) & 31)}
               << (i * kBits);
    return given;
  }

  /// Of all threads' values: first the length of the least, then its bits from the top.
  OCCL_DEVICE_FUNCTION uint64_t smallest(uint64_t value) const {
    const uint64_t mine = detail::Warp().smallest(value);
    if (!any(mine != ~uint64_t{0}))
      return ~uint64_t{0};
    const uint32_t length = mine == 0 ? 0 : 64 - static_cast<uint32_t>(__builtin_clzll(mine));
    const auto bits = static_cast<uint32_t>(smallestBelow(length, 7, true));
    return smallestBelow(mine, bits, length == bits);
  }

private:
  /// A number up to 31 of the first warp's.
  OCCL_DEVICE_FUNCTION uint32_t byFirstWarp(uint32_t number) const {
    return occl_bitcode::countThreads(rank() < number);
  }
  OCCL_DEVICE_FUNCTION bool any(bool mine) const { return occl_bitcode::countThreads(mine) != 0; }
  /// Of the values of so many bits that take part; one at least does.
  OCCL_DEVICE_FUNCTION uint64_t smallestBelow(uint64_t value, uint32_t bits, bool takesPart) const {
    uint64_t found = 0;
    for (uint32_t bit = bits; bit-- > 0;) {
      const bool isSet = (value >> bit & 1) != 0;
      if (any(takesPart && !isSet))
        takesPart = takesPart && !isSet;
      else
        found |= uint64_t{1} << bit;
    }
    return found;
  }
};

OCCL_DEVICE_FUNCTION Part partOf(int64_t request) {
  return Part(occlPartDevice_t{reinterpret_cast<void *>(request)});
}

/// Bulk copies (TMA) that this thread has issued are over, and seen by what follows.
OCCL_DEVICE_FUNCTION void endBulkStores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

/// Bulk copies that follow read what has arrived.
OCCL_DEVICE_FUNCTION int32_t beforeBulkLoads(Wait found) {
  asm volatile("fence.proxy.async;" ::: "memory");
  return static_cast<int32_t>(found);
}

} // namespace

extern "C" {

OCCL_BITCODE int32_t occl_pready_block(int64_t request, int64_t partition) {
  endBulkStores();
  Part part = partOf(request);
  ready(Program(), part, static_cast<uint64_t>(partition));
  return 0;
}

OCCL_BITCODE int32_t occl_pready_counted_block(int64_t request, int64_t partition, int64_t counter,
                                               int64_t times) {
  endBulkStores();
  Part part = partOf(request);
  readyCounted(Program(), part, static_cast<uint64_t>(partition),
               reinterpret_cast<uint64_t *>(counter), static_cast<uint64_t>(times));
  return 0;
}

OCCL_BITCODE int32_t occl_pwait_block(int64_t request, int64_t partition, int64_t nanoseconds) {
  Part part = partOf(request);
  return beforeBulkLoads(
      wait(Program(), part, static_cast<uint64_t>(partition), static_cast<uint64_t>(nanoseconds)));
}

OCCL_BITCODE int32_t occl_parrived_block(int64_t request, int64_t partition) {
  Part part = partOf(request);
  const Wait found = wait(Program(), part, static_cast<uint64_t>(partition), 0);
  // Looks send what marks have left, so that a loop of them ends.
  if (found == Wait::NotYet)
    detail::storeDeferred(Program(), *part.s->sends);
  return beforeBulkLoads(found);
}

OCCL_BITCODE int32_t occl_pflush_block(int64_t request, int64_t nanoseconds) {
  Part part = partOf(request);
  return static_cast<int32_t>(flush(Program(), part, static_cast<uint64_t>(nanoseconds)));
}

OCCL_BITCODE int32_t occl_pstart_block(int64_t request) {
  __syncthreads();
  if (threadIdx.x == 0)
    start(occlPartDevice_t{reinterpret_cast<void *>(request)});
  __syncthreads();
  return 0;
}
}
