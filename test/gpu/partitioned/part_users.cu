#include "test/gpu/partitioned/part_users.h"

#include "runtime/api/occl_device.cuh"
#include "test/gpu/partitioned/load_kernels.h"

#include <cuda_runtime.h>

namespace occl::gpu_test {

namespace {

using device::Block;
using device::Part;
using device::Thread;
using device::Warp;

constexpr uint32_t kBlocks = 6, kThreads = 128;

__device__ char byteOf(uint64_t key, uint64_t i) {
  return static_cast<char>(key * 131 + i * 7 + (i >> 8) * 13);
}

template <class Group>
__device__ void makePartition(Group group, Field field, uint64_t p, uint64_t key) {
  const uint64_t begin = p * field.bytes;
  for (uint64_t i = begin + group.rank(); i < begin + field.bytes; i += group.size())
    field.data[i] = byteOf(key, i);
}

template <class Group>
__global__ void produce(occlPartDevice_t handle, Field field, uint64_t key, uint32_t perBlock) {
  Part part(handle);
  const uint32_t groups = gridDim.x * perBlock;
  for (uint64_t p = blockIdx.x * perBlock + threadIdx.x / (blockDim.x / perBlock);
       p < field.partitions; p += groups) {
    const uint64_t mine = field.partitions - 1 - p;
    makePartition(Group(), field, mine, key);
    ready(Group(), part, mine);
  }
}

__global__ void fill(Field field, uint64_t key) {
  for (uint64_t p = blockIdx.x; p < field.partitions; p += gridDim.x)
    makePartition(Block(), field, p, key);
}

/// Two of these leave a multiprocessor room for 256 threads. As products do they have most of its
/// shared memory: kernels that want it divided otherwise wait until the multiprocessor is empty.
constexpr uint32_t kCrowd = 896, kCrowdShared = 100 << 10;

__global__ void __launch_bounds__(kCrowd, 2) crowd(uint32_t *begun, const uint32_t *mayEnd) {
  if (threadIdx.x == 0)
    atomicAdd_system(begun, 1);
  while (*static_cast<const volatile uint32_t *>(mayEnd) == 0)
    __nanosleep(1000);
}

__global__ void fillOne(Field field, uint64_t p, uint64_t key) {
  makePartition(Block(), field, p, key);
}

__device__ void check(Field field, uint64_t p, uint64_t key, uint64_t *wrong) {
  uint64_t different = 0;
  const uint64_t begin = p * field.bytes;
  for (uint64_t i = begin + threadIdx.x; i < begin + field.bytes; i += blockDim.x)
    different += field.data[i] != byteOf(key, i);
  if (different != 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(wrong), different);
}

__global__ void checkAll(Field field, uint64_t key, uint64_t *wrong) {
  for (uint64_t p = blockIdx.x; p < field.partitions; p += gridDim.x)
    check(field, p, key, wrong);
}

__device__ void consumePartition(Part &part, Field field, uint64_t p, uint64_t key,
                                 uint64_t nanoseconds, uint64_t *wrong) {
  if (wait(Block(), part, p, nanoseconds) == device::Wait::Arrived)
    check(field, p, key, wrong);
  else if (threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(wrong), 1ull << 40);
}

__global__ void consume(occlPartDevice_t handle, Field field, uint64_t key, uint64_t nanoseconds,
                        uint64_t *wrong) {
  Part part(handle);
  for (uint64_t p = blockIdx.x; p < field.partitions; p += gridDim.x)
    consumePartition(part, field, p, key, nanoseconds, wrong);
}

/// Of words, one behind the other.
struct Span {
  uint64_t begin, end;
};
__device__ Span wordsOf(Words field, uint64_t perPartition, uint64_t p) {
  const uint64_t begin = p * perPartition, end = begin + perPartition;
  return {begin < field.words ? begin : field.words, end < field.words ? end : field.words};
}

__global__ void produceWords(occlPartDevice_t handle, Words field, uint64_t perPartition,
                             uint64_t key, Span partitions, uint64_t stride) {
  Part part(handle);
  const uint64_t number = partitions.end - partitions.begin;
  for (uint64_t n = blockIdx.x; n < number; n += gridDim.x) {
    const uint64_t p = partitions.begin + n * stride % number;
    const Span words = wordsOf(field, perPartition, p);
    for (uint64_t i = words.begin + threadIdx.x; i < words.end; i += blockDim.x)
      field.data[i] = wordOf(key, i);
    ready(Block(), part, p);
  }
}

__global__ void makeWords(Words field, uint64_t key) {
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < field.words;
       i += gridDim.x * blockDim.x)
    field.data[i] = wordOf(key, i);
}

__global__ void takeWords(occlPartDevice_t handle, Words field, uint64_t perPartition,
                          uint32_t *seen, Span partitions, uint64_t nanoseconds,
                          uint64_t *missing) {
  Part part(handle);
  for (uint64_t q = partitions.begin + blockIdx.x; q < partitions.end; q += gridDim.x) {
    if (wait(Block(), part, q, nanoseconds) != device::Wait::Arrived) {
      if (threadIdx.x == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(missing), 1);
      continue;
    }
    const Span words = wordsOf(field, perPartition, q);
    for (uint64_t i = words.begin + threadIdx.x; i < words.end; i += blockDim.x)
      seen[i] = field.data[i];
  }
}

__global__ void exchange(occlPartDevice_t send, Field out, uint64_t outKey,
                         occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                         uint64_t *wrong) {
  Part sends(send), receives(receive);
  for (uint64_t p = 0; p < out.partitions; ++p) {
    makePartition(Block(), out, p, outKey);
    ready(Block(), sends, p);
  }
  for (uint64_t p = 0; p < in.partitions; ++p)
    consumePartition(receives, in, p, inKey, nanoseconds, wrong);
  if (flush(Block(), sends, nanoseconds) != device::Wait::Arrived && threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(wrong), 1ull << 50);
}

__global__ void sendBoth(occlPartDevice_t first, Field ofFirst, occlPartDevice_t second,
                         Field ofSecond, uint64_t key, uint64_t nanoseconds, uint64_t *wrong) {
  Part one(first), two(second);
  for (uint64_t p = 0; p < ofFirst.partitions; ++p) {
    makePartition(Block(), ofFirst, p, key);
    ready(Block(), one, p);
  }
  for (uint64_t p = 0; p < ofSecond.partitions; ++p) {
    makePartition(Block(), ofSecond, p, key);
    ready(Block(), two, p);
  }
  if (flush(Block(), two, nanoseconds) != device::Wait::Arrived && threadIdx.x == 0)
    atomicAdd(reinterpret_cast<unsigned long long *>(wrong), 1ull << 50);
}

__global__ void misuse(occlPartDevice_t handle, Misused how, uint32_t block) {
  if (blockIdx.x != block)
    return;
  Part part(handle);
  if (how == Misused::OutOfRange)
    ready(Block(), part, part.partitions());
  else
    ready(Block(), part, 0);
  if (how == Misused::Twice)
    ready(Block(), part, 0);
}

} // namespace

int launchProduce(void *stream, occlPartDevice_t part, Field field, uint64_t key, Marker marker) {
  const auto in = static_cast<cudaStream_t>(stream);
  if (marker == Marker::Thread)
    produce<Thread><<<kBlocks, 32, 0, in>>>(part, field, key, 32);
  else if (marker == Marker::Warp)
    produce<Warp><<<kBlocks, kThreads, 0, in>>>(part, field, key, kThreads / 32);
  else
    produce<Block><<<kBlocks, kThreads, 0, in>>>(part, field, key, 1);
  return cudaGetLastError();
}

int launchFill(void *stream, Field field, uint64_t key) {
  fill<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(field, key);
  return cudaGetLastError();
}

int launchConsume(void *stream, occlPartDevice_t part, Field field, uint64_t key,
                  uint64_t nanoseconds, uint64_t *wrong) {
  consume<<<2, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(part, field, key, nanoseconds,
                                                                 wrong);
  return cudaGetLastError();
}

int launchCheck(void *stream, Field field, uint64_t key, uint64_t *wrong) {
  checkAll<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(field, key, wrong);
  return cudaGetLastError();
}

int launchProduceWords(void *stream, occlPartDevice_t part, Words field, uint64_t key,
                       uint64_t first, uint64_t last, uint64_t stride) {
  produceWords<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      part, field, field.perPartition(), key, Span{first, last}, stride);
  return cudaGetLastError();
}

int launchMakeWords(void *stream, Words field, uint64_t key) {
  makeWords<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(field, key);
  return cudaGetLastError();
}

int launchTakeWords(void *stream, occlPartDevice_t part, Words field, uint32_t *seen,
                    uint64_t first, uint64_t last, uint64_t nanoseconds, uint64_t *missing) {
  takeWords<<<2, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      part, field, field.perPartition(), seen, Span{first, last}, nanoseconds, missing);
  return cudaGetLastError();
}

int launchExchange(void *stream, occlPartDevice_t send, Field out, uint64_t outKey,
                   occlPartDevice_t receive, Field in, uint64_t inKey, uint64_t nanoseconds,
                   uint64_t *wrong) {
  exchange<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(send, out, outKey, receive, in,
                                                                  inKey, nanoseconds, wrong);
  return cudaGetLastError();
}

int launchSendBoth(void *stream, occlPartDevice_t first, Field ofFirst, occlPartDevice_t second,
                   Field ofSecond, uint64_t key, uint64_t nanoseconds, uint64_t *wrong) {
  sendBoth<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(first, ofFirst, second, ofSecond,
                                                                  key, nanoseconds, wrong);
  return cudaGetLastError();
}

int launchMisuse(void *stream, occlPartDevice_t part, Misused how, uint32_t block) {
  misuse<<<block + 1, 32, 0, static_cast<cudaStream_t>(stream)>>>(part, how, block);
  return cudaGetLastError();
}

int launchFillOne(void *stream, Field field, uint64_t p, uint64_t key) {
  fillOne<<<1, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(field, p, key);
  return cudaGetLastError();
}

int launchCrowd(void *stream, uint32_t *begun, const uint32_t *mayEnd, uint32_t *blocks) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (const int set =
          cudaFuncSetAttribute(reinterpret_cast<const void *>(crowd),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, kCrowdShared);
      set != cudaSuccess)
    return set;
  *blocks = 2 * static_cast<uint32_t>(multiprocessors);
  crowd<<<*blocks, kCrowd, kCrowdShared, static_cast<cudaStream_t>(stream)>>>(begun, mayEnd);
  return cudaGetLastError();
}

int loadPartUsers() {
  return loadEach(
      {reinterpret_cast<const void *>(produce<Thread>),
       reinterpret_cast<const void *>(produce<Warp>),
       reinterpret_cast<const void *>(produce<Block>), reinterpret_cast<const void *>(fill),
       reinterpret_cast<const void *>(consume), reinterpret_cast<const void *>(checkAll),
       reinterpret_cast<const void *>(exchange), reinterpret_cast<const void *>(sendBoth),
       reinterpret_cast<const void *>(produceWords), reinterpret_cast<const void *>(makeWords),
       reinterpret_cast<const void *>(takeWords), reinterpret_cast<const void *>(crowd),
       reinterpret_cast<const void *>(fillOne), reinterpret_cast<const void *>(misuse)});
}

} // namespace occl::gpu_test
