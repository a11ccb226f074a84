#include "test/gpu/partitioned/memory_users.h"

#include "runtime/api/occl_device.cuh"
#include "runtime/api/occl_device_launch.hpp"
#include "test/gpu/partitioned/load_kernels.h"

#include <cuda_runtime.h>

namespace occl::gpu_test {

namespace {

using device::Block;
using device::Part;
using device::Wait;
using device::Waits;

constexpr uint32_t kThreads = 128;
constexpr uint64_t kWords = kBulkBytes / sizeof(uint32_t); // of a partition
constexpr uint32_t kPieceBytes = kBulkBytes / kThreads, kPieceWords = kPieceBytes / 4;
static_assert(kPieceBytes % 16 == 0);

__device__ uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// What this thread has stored to shared memory, to global memory; ends when it is visible to all
/// that is ordered behind this thread, bulk copies or not.
__device__ void storeInBulk(void *to, const void *from, uint32_t bytes) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(sharedAddress(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;\n"
               "cp.async.bulk.wait_group 0;\n"
               "fence.proxy.async;" ::
                   : "memory");
}

/// By one thread, which has learned that the data are there; the barrier counts the bytes.
__device__ void loadInBulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier) {
  asm volatile("fence.proxy.async;" ::: "memory");
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
               "[%3];" ::"r"(sharedAddress(to)),
               "l"(from), "r"(bytes), "r"(sharedAddress(barrier))
               : "memory");
}

__device__ void awaitBarrier(const uint64_t *barrier, uint32_t parity) {
  uint32_t isOver = 0;
  while (isOver == 0)
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(isOver)
                 : "r"(sharedAddress(barrier)), "r"(parity)
                 : "memory");
}

__device__ void count(uint64_t *wrong, uint64_t number) {
  if (number != 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(wrong), number);
}

__global__ void bulkExchange(occlPartDevice_t send, Field out, uint64_t outKey,
                             occlPartDevice_t receive, Field in, uint64_t inKey,
                             uint64_t nanoseconds, uint64_t *wrong) {
  __shared__ alignas(128) uint32_t words[kWords];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(sharedAddress(&barrier))
                 : "memory");
  __syncthreads();
  Part sends(send), receives(receive);
  const uint32_t first = threadIdx.x * kPieceWords;
  for (uint64_t p = 0; p < out.partitions; ++p) {
    for (uint32_t i = first; i < first + kPieceWords; ++i)
      words[i] = wordOf(outKey, p * kWords + i);
    storeInBulk(out.data + p * kBulkBytes + threadIdx.x * kPieceBytes, &words[first], kPieceBytes);
    ready(Block(), sends, p); // begins with a barrier
  }
  __syncthreads();
  for (uint64_t p = 0; p < in.partitions; ++p) {
    if (wait(Block(), receives, p, nanoseconds) != Wait::Arrived) {
      if (threadIdx.x == 0)
        count(wrong, uint64_t{1} << 40);
      return;
    }
    if (threadIdx.x == 0)
      loadInBulk(words, in.data + p * kBulkBytes, kBulkBytes, &barrier);
    awaitBarrier(&barrier, p & 1);
    uint64_t different = 0;
    for (uint32_t i = threadIdx.x; i < kWords; i += kThreads)
      different += words[i] != wordOf(inKey, p * kWords + i);
    count(wrong, different);
    __syncthreads(); // all have read it
  }
}

__global__ void checkReadOnly(const uint32_t *__restrict__ words, uint64_t number, uint64_t key,
                              uint64_t *wrong) {
  uint64_t different = 0;
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < number; i += gridDim.x * blockDim.x)
    different += __ldg(words + i) != wordOf(key, i);
  count(wrong, different);
}

__global__ void waitForAll(occlPartDevice_t receive, uint64_t *wrong) {
  Part part(receive);
  for (uint64_t p = blockIdx.x; p < part.partitions(); p += gridDim.x)
    if (wait(Block(), part, p, ~uint64_t{0}) != Wait::Arrived && threadIdx.x == 0)
      count(wrong, 1);
}

} // namespace

int launchBulkExchange(void *stream, occlPartDevice_t send, Field out, uint64_t outKey,
                       occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                       uint64_t *wrong) {
  bulkExchange<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      send, out, outKey, receive, in, inKey, nanoseconds, wrong);
  return cudaGetLastError();
}

int launchCheckReadOnly(void *stream, Field in, uint64_t key, uint64_t *wrong) {
  checkReadOnly<<<8, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const uint32_t *>(in.data), in.partitions * in.bytes / sizeof(uint32_t), key,
      wrong);
  return cudaGetLastError();
}

std::string checkWaiting(occlPart_t part, uint32_t blocks) {
  return device::checkLaunch(part, Waits::Unbounded, waitForAll, blocks, kThreads);
}

int loadMemoryUsers() {
  return loadEach({reinterpret_cast<const void *>(bulkExchange),
                   reinterpret_cast<const void *>(checkReadOnly),
                   reinterpret_cast<const void *>(waitForAll)});
}

} // namespace occl::gpu_test
