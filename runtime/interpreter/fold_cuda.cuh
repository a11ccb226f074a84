// The loops of the fold for a CUDA thread block: all its threads call these functions together,
// with the same arguments. 16 bytes a thread and access where all operands are aligned so, else an
// element, else its bytes.
//
// Peers' memory is read by plain loads: what is read was published before an acquire that all
// threads have passed, and acquiring drops what the first-level cache knew. The loads never go
// through the read-only path, which would not notice.
#pragma once

#include "runtime/interpreter/fold.h"

#include <cstdint>

namespace occl::interpreter::cuda {

/// The operands of a fold: sources, then destinations; each destination is disjoint from or equal
/// to each source.
struct FoldOperands {
  char *const *pointers;
  uint32_t numSources;
  uint32_t numDestinations;
  /// The team: which of how many threads this one is.
  uint32_t thread;
  uint32_t numThreads;

  __device__ char *const *destinations() const { return pointers + numSources; }

  /// The bits in which any address differs from a multiple of 16.
  __device__ uint32_t misalignment() const {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < numSources + numDestinations; ++i)
      bits |= static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointers[i]));
    return bits & 15;
  }
};

/// The elements in 16 bytes, or those in a word, as they are folded.
template <class Element, class Raw = uint4> struct Lanes {
  using Storage = typename Element::Storage;
  static constexpr uint32_t kCount = sizeof(Raw) / sizeof(Storage);
  struct Packed {
    Storage values[kCount];
  };
  typename Element::Accumulator values[kCount];

  __device__ explicit Lanes(Raw raw) {
    Packed packed = __builtin_bit_cast(Packed, raw);
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      values[i] = Element::load(packed.values[i]);
  }
  template <class Operation> __device__ void apply(const Lanes &other) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      values[i] = Operation::apply(values[i], other.values[i]);
  }
  __device__ Raw pack(uint64_t divisor) const {
    Packed packed;
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i)
      packed.values[i] = Element::store(divisor > 1 ? divide(values[i], divisor) : values[i]);
    return __builtin_bit_cast(Raw, packed);
  }
};

__device__ inline void storeAll(const FoldOperands &operands, uint64_t index, uint4 value) {
#pragma unroll 1
  for (uint32_t d = 0; d < operands.numDestinations; ++d)
    reinterpret_cast<uint4 *>(operands.destinations()[d])[index] = value;
}

/// Vectors that a thread has in flight: enough to cover the latency of a peer's memory.
constexpr uint32_t vectorsInFlight(uint32_t numSources) {
  return numSources >= 4 ? 1 : 4 / numSources;
}

/// N sources, all loaded before the first is used.
template <class Element, class Operation, uint32_t N>
__device__ void foldVectors(const FoldOperands &operands, uint64_t vectors, uint64_t divisor) {
  constexpr uint32_t kUnroll = vectorsInFlight(N);
  const uint4 *sources[N];
#pragma unroll
  for (uint32_t s = 0; s < N; ++s)
    sources[s] = reinterpret_cast<const uint4 *>(operands.pointers[s]);
#pragma unroll 1
  for (uint64_t i = operands.thread; i < vectors; i += kUnroll * operands.numThreads) {
    uint4 raw[kUnroll][N];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u)
#pragma unroll
      for (uint32_t s = 0; s < N; ++s)
        if (i + u * operands.numThreads < vectors)
          raw[u][s] = sources[s][i + u * operands.numThreads];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      if (i + u * operands.numThreads >= vectors)
        break;
      Lanes<Element> lanes(raw[u][0]);
#pragma unroll
      for (uint32_t s = 1; s < N; ++s)
        lanes.template apply<Operation>(Lanes<Element>(raw[u][s]));
      storeAll(operands, i + u * operands.numThreads, lanes.pack(divisor));
    }
  }
}

/// Any number of sources.
template <class Element, class Operation>
__device__ void foldVectors(const FoldOperands &operands, uint64_t vectors, uint64_t divisor) {
#pragma unroll 1
  for (uint64_t i = operands.thread; i < vectors; i += operands.numThreads) {
    Lanes<Element> lanes(reinterpret_cast<const uint4 *>(operands.pointers[0])[i]);
#pragma unroll 1
    for (uint32_t s = 1; s < operands.numSources; ++s)
      lanes.template apply<Operation>(
          Lanes<Element>(reinterpret_cast<const uint4 *>(operands.pointers[s])[i]));
    storeAll(operands, i, lanes.pack(divisor));
  }
}

/// Of any alignment.
template <class T> __device__ T loadBytes(const char *from) {
  struct Bytes {
    char values[sizeof(T)];
  } bytes;
  for (uint32_t i = 0; i < sizeof(T); ++i)
    bytes.values[i] = from[i];
  return __builtin_bit_cast(T, bytes);
}

template <class T> __device__ void storeBytes(char *to, T value) {
  struct Bytes {
    char values[sizeof(T)];
  } bytes = __builtin_bit_cast(Bytes, value);
  for (uint32_t i = 0; i < sizeof(T); ++i)
    to[i] = bytes.values[i];
}

/// Element by element, from element `begin` on. kAligned: all operands are to an element.
template <class Element, class Operation, bool kAligned>
__device__ void foldElements(const FoldOperands &operands, uint64_t begin, uint64_t end,
                             uint64_t divisor) {
  using Storage = typename Element::Storage;
  auto load = [](const char *from, uint64_t i) {
    if constexpr (kAligned)
      return Element::load(reinterpret_cast<const Storage *>(from)[i]);
    else
      return Element::load(loadBytes<Storage>(from + i * sizeof(Storage)));
  };
#pragma unroll 1
  for (uint64_t i = begin + operands.thread; i < end; i += operands.numThreads) {
    auto sum = load(operands.pointers[0], i);
#pragma unroll 1
    for (uint32_t s = 1; s < operands.numSources; ++s)
      sum = Operation::apply(sum, load(operands.pointers[s], i));
    Storage result = Element::store(divisor > 1 ? divide(sum, divisor) : sum);
#pragma unroll 1
    for (uint32_t d = 0; d < operands.numDestinations; ++d) {
      char *to = operands.destinations()[d];
      if constexpr (kAligned)
        reinterpret_cast<Storage *>(to)[i] = result;
      else
        storeBytes(to + i * sizeof(Storage), result);
    }
  }
}

/// A call and no inlining: the interpreter's own state then costs the loops no registers. kFixed:
/// with loops for the usual numbers of sources, which take registers and code.
template <class Element, class Operation, bool kFixed>
__device__ __noinline__ void fold(FoldOperands operands, uint64_t elements, uint64_t divisor) {
  constexpr uint32_t kLanes = Lanes<Element>::kCount;
  uint32_t misalignment = operands.misalignment();
  if (misalignment % sizeof(typename Element::Storage) != 0)
    return foldElements<Element, Operation, false>(operands, 0, elements, divisor);
  uint64_t vectors = misalignment == 0 ? elements / kLanes : 0;
  if (kFixed && operands.numSources == 2)
    foldVectors<Element, Operation, 2>(operands, vectors, divisor);
  else if (kFixed && operands.numSources == 4)
    foldVectors<Element, Operation, 4>(operands, vectors, divisor);
  else if (kFixed && operands.numSources == 8)
    foldVectors<Element, Operation, 8>(operands, vectors, divisor);
  else
    foldVectors<Element, Operation>(operands, vectors, divisor);
  foldElements<Element, Operation, true>(operands, vectors * kLanes, elements, divisor);
}

/// The same bytes in every destination: elements are not looked at.
__device__ __noinline__ inline void copy(FoldOperands operands, uint64_t bytes) {
  uint32_t misalignment = operands.misalignment();
  uint64_t copied = 0;
  if (misalignment == 0) {
    foldVectors<Plain<uint32_t>, Sum, 1>(operands, bytes / 16, 1);
    copied = bytes / 16 * 16;
  } else if (misalignment % 4 == 0) {
    foldElements<Plain<uint32_t>, Sum, true>(operands, 0, bytes / 4, 1);
    copied = bytes / 4 * 4;
  }
  foldElements<Plain<uint8_t>, Sum, true>(operands, copied, bytes, 1);
}

/// One type and operation, known when the kernel is compiled.
template <class Element, class Operation> struct FixedFold {
  __device__ static void run(DataType, ReduceOp, const FoldOperands &operands, uint64_t elements,
                             uint64_t divisor) {
    fold<Element, Operation, true>(operands, elements, divisor);
  }
};

/// Any type and operation.
struct AnyFold {
  struct Visitor {
    const FoldOperands &operands;
    uint64_t elements, divisor;
    template <class Element, class Operation> __device__ void operator()() const {
      fold<Element, Operation, false>(operands, elements, divisor);
    }
  };
  __device__ static void run(DataType type, ReduceOp op, const FoldOperands &operands,
                             uint64_t elements, uint64_t divisor) {
    dispatchFold(type, op, Visitor{operands, elements, divisor});
  }
};

} // namespace occl::interpreter::cuda
