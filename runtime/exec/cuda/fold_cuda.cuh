// The loops of the fold for a CUDA thread block: all its threads call these functions together,
// with the same arguments. 16 bytes a thread and access where all operands are aligned so, else an
// element, else its bytes.
//
// Peers' memory is read by plain loads: what is read was published before an acquire that all
// threads have passed, and acquiring drops what the first-level cache knew. The loads never go
// through the read-only path, which would not notice.
#pragma once

#include "runtime/exec/reduce/fold.h"
#include "runtime/exec/step/ready.h"

#include <cstdint>
#include <type_traits>

namespace occl::interpreter::cuda {

/// What lies in shared memory: accesses need not find out where it is. A conversion there and back
/// says so; __builtin_assume would too, but with it nvcc 13.0 leaves out stores.
template <class T> __device__ T *inShared(T *address) {
  return static_cast<T *>(__cvta_shared_to_generic(__cvta_generic_to_shared(address)));
}

/// The operands of a fold: sources, then destinations; each destination is disjoint from or equal
/// to each source.
struct FoldOperands {
  const ReadyWord *words; // their addresses; in shared memory
  uint32_t numSources;
  uint32_t numDestinations;
  /// The bits in which any address differs from a multiple of 16.
  uint32_t misalignment;
  /// The team: which of how many threads this one is.
  uint32_t thread;
  uint32_t numThreads;

  template <class T> __device__ T *at(uint32_t operand) const {
    return reinterpret_cast<T *>(inShared(words)[operand].address);
  }
  template <class T> __device__ const T *source(uint32_t i) const { return at<T>(i); }
  template <class T> __device__ T *destination(uint32_t i) const { return at<T>(numSources + i); }
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

/// Addresses are looked up some at a time, since a store might change what is looked up after it.
template <class Raw>
__device__ void storeAll(const FoldOperands &operands, uint64_t index, Raw value) {
  constexpr uint32_t kAtOnce = 4;
#pragma unroll 1
  for (uint32_t first = 0; first < operands.numDestinations; first += kAtOnce) {
    // Addresses first; the last one again where there are fewer.
    Raw *to[kAtOnce];
#pragma unroll
    for (uint32_t d = 0; d < kAtOnce; ++d) {
      uint32_t last = operands.numDestinations - 1;
      to[d] = operands.destination<Raw>(first + d < last ? first + d : last);
    }
#pragma unroll
    for (uint32_t d = 0; d < kAtOnce; ++d)
      if (first + d < operands.numDestinations)
        to[d][index] = value;
  }
}

/// Loads that a thread has in flight: enough to cover the latency of a peer's memory. With twice as
/// many the links carry less.
inline constexpr uint32_t kLoadsInFlight = 4;

/// N sources, all loaded before the first is used. Then one destination after the other gets all
/// that was loaded; each warp begins with another one, so that all peers are stored to at once.
template <class Element, class Operation, uint32_t N>
__device__ void foldVectors(const FoldOperands &operands, uint64_t vectors, uint64_t divisor) {
  constexpr uint32_t kUnroll = N >= kLoadsInFlight ? 1 : kLoadsInFlight / N;
  const uint32_t firstDestination =
      operands.numDestinations == 1 ? 0 : operands.thread / warpSize % operands.numDestinations;
  // The addresses of sources stay in registers.
  const uint4 *sources[N];
#pragma unroll
  for (uint32_t s = 0; s < N; ++s)
    sources[s] = operands.source<uint4>(s);
#pragma unroll 1
  for (uint64_t i = operands.thread; i < vectors; i += kUnroll * operands.numThreads) {
    // All loads of a round are on their way before the first value is used.
    uint4 raw[kUnroll][N];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u)
#pragma unroll
      for (uint32_t s = 0; s < N; ++s)
        if (i + u * operands.numThreads < vectors)
          raw[u][s] = sources[s][i + u * operands.numThreads];
#pragma unroll
    for (uint32_t u = 0; u < kUnroll; ++u) {
      Lanes<Element> lanes(raw[u][0]);
#pragma unroll
      for (uint32_t s = 1; s < N; ++s)
        lanes.template apply<Operation>(Lanes<Element>(raw[u][s]));
      raw[u][0] = lanes.pack(divisor);
    }
    // Each destination gets all values; warps take destinations in different turns.
#pragma unroll 1
    for (uint32_t turn = 0; turn < operands.numDestinations; ++turn) {
      uint32_t d = firstDestination + turn;
      d -= d < operands.numDestinations ? 0 : operands.numDestinations;
      uint4 *to = operands.destination<uint4>(d) + i;
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; ++u)
        if (i + u * operands.numThreads < vectors)
          to[u * operands.numThreads] = raw[u][0];
    }
  }
}

/// Any number of sources, so many of which are loaded before the first is used. Vectors of 16
/// bytes, or elements; those of [begin, end).
template <class Element, class Operation, class Raw, uint32_t kAtOnce>
__device__ void foldRows(const FoldOperands &operands, uint64_t begin, uint64_t end,
                         uint64_t divisor) {
#pragma unroll 1
  for (uint64_t i = begin + operands.thread; i < end; i += operands.numThreads) {
    // The first sources are loaded together, the others when they are used.
    Raw raw[kAtOnce];
#pragma unroll
    for (uint32_t s = 0; s < kAtOnce; ++s)
      if (s < operands.numSources)
        raw[s] = operands.source<Raw>(s)[i];
    Lanes<Element, Raw> lanes(raw[0]);
#pragma unroll
    for (uint32_t s = 1; s < kAtOnce; ++s)
      if (s < operands.numSources)
        lanes.template apply<Operation>(Lanes<Element, Raw>(raw[s]));
#pragma unroll 1
    for (uint32_t s = kAtOnce; s < operands.numSources; ++s)
      lanes.template apply<Operation>(Lanes<Element, Raw>(operands.source<Raw>(s)[i]));
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

/// Element by element where not even these are aligned.
template <class Element, class Operation>
__device__ void foldBytes(const FoldOperands &operands, uint64_t elements, uint64_t divisor) {
  using Storage = typename Element::Storage;
  auto load = [&](uint32_t s, uint64_t i) {
    return Element::load(loadBytes<Storage>(operands.source<char>(s) + i * sizeof(Storage)));
  };
#pragma unroll 1
  for (uint64_t i = operands.thread; i < elements; i += operands.numThreads) {
    auto sum = load(0, i);
#pragma unroll 1
    for (uint32_t s = 1; s < operands.numSources; ++s)
      sum = Operation::apply(sum, load(s, i));
    // An average is divided once, behind the last source.
    Storage result = Element::store(divisor > 1 ? divide(sum, divisor) : sum);
#pragma unroll 1
    for (uint32_t d = 0; d < operands.numDestinations; ++d)
      storeBytes(operands.destination<char>(d) + i * sizeof(Storage), result);
  }
}

/// Sources of any number that are loaded before the first is used.
inline constexpr uint32_t kSourcesAtOnce = 4;

/// kFixed: with loops for the usual numbers of sources, which take registers and code.
template <class Element, class Operation, bool kFixed>
__device__ __forceinline__ void fold(const FoldOperands &operands, uint64_t elements,
                                     uint64_t divisor) {
  using Storage = typename Element::Storage;
  constexpr uint32_t kLanes = Lanes<Element>::kCount;
  // Elements at odd addresses are folded by their bytes.
  if (operands.misalignment % sizeof(Storage) != 0)
    return foldBytes<Element, Operation>(operands, elements, divisor);
  // Vectors where all operands are aligned, then the elements that are left.
  uint64_t vectors = operands.misalignment == 0 ? elements / kLanes : 0;
  if (kFixed && operands.numSources == 2)
    foldVectors<Element, Operation, 2>(operands, vectors, divisor);
  else if (kFixed && operands.numSources == 4)
    foldVectors<Element, Operation, 4>(operands, vectors, divisor);
  else if (kFixed && operands.numSources == 8)
    foldVectors<Element, Operation, 8>(operands, vectors, divisor);
  else
    foldRows<Element, Operation, uint4, kSourcesAtOnce>(operands, 0, vectors, divisor);
  foldRows<Element, Operation, Storage, kSourcesAtOnce>(operands, vectors * kLanes, elements,
                                                        divisor);
}

/// The same bytes in every destination: elements are not looked at. What stays where it is, in
/// place, costs nothing.
__device__ __noinline__ inline void copy(FoldOperands operands, uint64_t bytes) {
  if (operands.numDestinations == 1 && operands.destination<char>(0) == operands.source<char>(0))
    return;
  uint64_t copied = 0;
  if (operands.misalignment == 0) {
    foldVectors<Plain<uint32_t>, Sum, 1>(operands, bytes / 16, 1);
    copied = bytes / 16 * 16;
  } else if (operands.misalignment % 4 == 0) {
    foldRows<Plain<uint32_t>, Sum, uint32_t, 1>(operands, 0, bytes / 4, 1);
    copied = bytes / 4 * 4;
  }
  foldRows<Plain<uint8_t>, Sum, uint8_t, 1>(operands, copied, bytes, 1);
}

/// One type and operation, known when the kernel is compiled.
template <class Element, class Operation> struct FixedFold {
  /// A call and no inlining: the interpreter's own state then costs the loops no registers.
  __device__ __noinline__ static void run(DataType, ReduceOp, FoldOperands operands,
                                          uint64_t elements, uint64_t divisor) {
    fold<Element, Operation, true>(operands, elements, divisor);
  }

  /// What a warp may fold in line, without a call.
  __device__ static bool isSimple(const FoldPiece &piece, uint64_t) {
    return piece.misalignment % sizeof(typename Element::Storage) == 0;
  }
  __device__ __forceinline__ static void runSimple(const FoldOperands &operands, uint64_t elements,
                                                   uint64_t, uint64_t divisor) {
    constexpr uint32_t kLanes = Lanes<Element>::kCount;
    uint64_t vectors = operands.misalignment == 0 ? elements / kLanes : 0;
    if (operands.numSources == 1 && divisor <= 1)
      foldVectors<Element, Operation, 1>(operands, vectors, 1);
    else
      foldRows<Element, Operation, uint4, 8>(operands, 0, vectors, divisor);
    if (vectors * kLanes != elements)
      foldRows<Element, Operation, typename Element::Storage, 4>(operands, vectors * kLanes,
                                                                 elements, divisor);
  }
};

/// Any type and operation.
struct AnyFold {
  struct Visitor {
    const FoldOperands &operands;
    uint64_t elements, divisor;
    template <class Element, class Operation> __device__ void operator()() const {
      // Others take registers and code for what is seldom called.
      constexpr bool kIsUsual =
          std::is_same_v<Element, Float16Element> || std::is_same_v<Element, Bfloat16Element>;
      fold<Element, Operation, kIsUsual && std::is_same_v<Operation, Sum>>(operands, elements,
                                                                           divisor);
    }
  };
  /// One call for all of them: ptxas gives each function that a kernel calls room of its own on the
  /// stack, and CUDA takes stacks for all threads that a device can have.
  __device__ __forceinline__ static void run(DataType type, ReduceOp op,
                                             const FoldOperands &operands, uint64_t elements,
                                             uint64_t divisor) {
    dispatchFold(type, op, Visitor{operands, elements, divisor});
  }

  /// Copies of whole vectors.
  __device__ static bool isSimple(const FoldPiece &piece, uint64_t elementBytes) {
    return piece.numSources == 1 && piece.divisor <= 1 && piece.misalignment == 0 &&
           piece.elements * elementBytes % 16 == 0;
  }
  __device__ __forceinline__ static void runSimple(const FoldOperands &operands, uint64_t elements,
                                                   uint64_t elementBytes, uint64_t) {
    foldVectors<Plain<uint32_t>, Sum, 1>(operands, elements * elementBytes / 16, 1);
  }
};

} // namespace occl::interpreter::cuda
