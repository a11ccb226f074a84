// Scales or copies an input, with vectors of 16 bytes where it is aligned for them.
#include "runtime/cuda/scaling/scale_kernel.h"

#include "runtime/exec/reduce/scale.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

namespace occl::cuda {

namespace {

using interpreter::ElementScale;

constexpr uint32_t kThreads = 512;
/// Loads of 16 bytes that a thread has in flight.
constexpr uint32_t kLoads = 4;

struct Arguments {
  const char *from;
  char *to;
  uint64_t elements;
  uint64_t factor;          // the bytes of the element, first ones first
  const char *deviceFactor; // read in its place; or null
  uint32_t divisor;
  bool isCopy; // elements stay what they are
  DataType type;
};

/// Of a copy.
template <class Storage> struct Unchanged {
  __device__ Storage of(Storage value) const { return value; }
};

/// Of any alignment.
template <class T> __device__ T loadBytes(const char *from) {
  struct Bytes {
    char values[sizeof(T)];
  } bytes;
#pragma unroll
  for (uint32_t i = 0; i < sizeof(T); ++i)
    bytes.values[i] = from[i];
  return __builtin_bit_cast(T, bytes);
}

template <class Element> __device__ ElementScale<Element> scaleOf(const Arguments &arguments) {
  using Storage = typename Element::Storage;
  const char *from = arguments.deviceFactor != nullptr
                         ? arguments.deviceFactor
                         : reinterpret_cast<const char *>(&arguments.factor);
  return {Element::load(loadBytes<Storage>(from)), arguments.divisor};
}

template <class Storage, class Scale> __device__ uint4 scaled(uint4 raw, const Scale &scale) {
  struct Packed {
    Storage values[sizeof(uint4) / sizeof(Storage)];
  } packed = __builtin_bit_cast(Packed, raw);
#pragma unroll
  for (Storage &value : packed.values)
    value = scale.of(value);
  return __builtin_bit_cast(uint4, packed);
}

/// Vectors [0, vectors).
template <class Storage, class Scale>
__device__ void scaleVectors(const Arguments &arguments, const Scale &scale, uint64_t vectors,
                             uint64_t thread, uint64_t numThreads) {
  const auto *from = reinterpret_cast<const uint4 *>(arguments.from);
  auto *to = reinterpret_cast<uint4 *>(arguments.to);
#pragma unroll 1
  for (uint64_t i = thread; i < vectors; i += kLoads * numThreads) {
    // All loads come first, so that they are in flight together.
    uint4 raw[kLoads];
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k)
      if (i + k * numThreads < vectors)
        raw[k] = from[i + k * numThreads];
#pragma unroll
    for (uint32_t k = 0; k < kLoads; ++k)
      if (i + k * numThreads < vectors)
        to[i + k * numThreads] = scaled<Storage>(raw[k], scale);
  }
}

template <class Storage, class Scale>
__device__ void scaleAll(const Arguments &arguments, const Scale &scale) {
  const uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const uint64_t numThreads = uint64_t(gridDim.x) * blockDim.x;
  constexpr uint64_t kPerVector = sizeof(uint4) / sizeof(Storage);
  const auto address = reinterpret_cast<uintptr_t>(arguments.from);
  // Vectors if the input is aligned, then elements: those that are left, or all.
  const uint64_t vectors = address % sizeof(uint4) == 0 ? arguments.elements / kPerVector : 0;
  scaleVectors<Storage>(arguments, scale, vectors, thread, numThreads);
  const bool isAligned = address % sizeof(Storage) == 0;
#pragma unroll 1
  for (uint64_t i = vectors * kPerVector + thread; i < arguments.elements; i += numThreads) {
    const char *from = arguments.from + i * sizeof(Storage);
    const Storage value =
        isAligned ? *reinterpret_cast<const Storage *>(from) : loadBytes<Storage>(from);
    reinterpret_cast<Storage *>(arguments.to)[i] = scale.of(value);
  }
}

struct Visitor {
  const Arguments &arguments;
  template <class Element, class> __device__ void operator()() const {
    using Storage = typename Element::Storage;
    if (arguments.isCopy)
      scaleAll<Storage>(arguments, Unchanged<Storage>());
    else
      scaleAll<Storage>(arguments, scaleOf<Element>(arguments));
  }
};

__global__ void __launch_bounds__(kThreads)
    scaleInput(const __grid_constant__ Arguments arguments) {
  interpreter::dispatchFold(arguments.type, ReduceOp::Sum, Visitor{arguments});
}

} // namespace

int launchScaling(const Scaling &scaling, uint32_t mostBlocks, void *stream) {
  const uint64_t bytes = scaling.elements * sizeOf(scaling.type);
  if (bytes == 0)
    return cudaSuccess;
  Arguments arguments = {scaling.from,
                         scaling.to,
                         scaling.elements,
                         0,
                         static_cast<const char *>(scaling.scale.factor.onDevice),
                         scaling.scale.divisor,
                         scaling.scale.isNone(),
                         scaling.type};
  // The factor is read here, since the caller's memory may change afterwards.
  if (scaling.scale.factor.onHost)
    std::memcpy(&arguments.factor, scaling.scale.factor.onHost, sizeOf(scaling.type));
  constexpr uint64_t kBytesOfBlock = uint64_t{kThreads} * kLoads * 16;
  // A thread block for each round of loads, as far as it may have them.
  const uint64_t blocks =
      std::clamp<uint64_t>((bytes + kBytesOfBlock - 1) / kBytesOfBlock, 1, mostBlocks);
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<uint32_t>(blocks);
  config.blockDim = kThreads;
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelEx(&config, scaleInput, arguments);
}

int loadScaling() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, scaleInput);
}

} // namespace occl::cuda
