// The loops of the fold, built once for each instruction set into a namespace of its own
// (OCCL_FOLD_VARIANT). Nothing but always-inlined functions may come from elsewhere.
#include "runtime/interpreter/fold.h"
#include "runtime/interpreter/fold_variants.h"

#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace occl::interpreter::OCCL_FOLD_VARIANT {
namespace {

/// Elements of accumulators that stay in the first-level cache while source after source is folded.
constexpr uint64_t kAccumulators = 1024;
/// Bytes of a destination that stay in cache until they are copied to the others.
constexpr uint64_t kBlockBytes = 8 << 10;

/// User buffers need not be aligned.
template <class T> struct __attribute__((packed)) Unaligned { T value; };

template <class Element>
void widen(typename Element::Accumulator *to, const char *from, uint64_t n) {
  auto *source = reinterpret_cast<const Unaligned<typename Element::Storage> *>(from);
  uint64_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<Element, Float16Element>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(
          to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(source + i))));
#endif
  for (; i < n; ++i)
    to[i] = Element::load(source[i].value);
}

template <class Element>
void narrow(char *to, const typename Element::Accumulator *from, uint64_t n) {
  auto *target = reinterpret_cast<Unaligned<typename Element::Storage> *>(to);
  uint64_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<Element, Float16Element>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(target + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i)
    target[i].value = Element::store(from[i]);
}

/// Any number of sources, any type: through accumulators.
template <class Element, class Operation>
void foldAny(char *destination, char *const *sources, unsigned numSources, uint64_t begin,
             uint64_t end, uint64_t divisor) {
  using T = typename Element::Accumulator;
  alignas(64) T sum[kAccumulators], next[kAccumulators];
  constexpr uint64_t size = sizeof(typename Element::Storage);
  for (; begin < end; begin += kAccumulators) {
    uint64_t n = end - begin < kAccumulators ? end - begin : kAccumulators;
    widen<Element>(sum, sources[0] + begin * size, n);
    for (unsigned s = 1; s < numSources; ++s) {
      widen<Element>(next, sources[s] + begin * size, n);
      for (uint64_t i = 0; i < n; ++i)
        sum[i] = Operation::apply(sum[i], next[i]);
    }
    if (divisor > 1)
      for (uint64_t i = 0; i < n; ++i)
        sum[i] = divide(sum[i], divisor);
    narrow<Element>(destination + begin * size, sum, n);
  }
}

/// A fixed number of sources in one pass. Destinations equal sources exactly or not at all, so no
/// iteration depends on another.
template <class Element, class Operation, unsigned N>
void foldFixed(char *destination, char *const *sources, uint64_t begin, uint64_t end) {
  using Word = Unaligned<typename Element::Storage>;
  auto *to = reinterpret_cast<Word *>(destination);
  const Word *from[N];
  for (unsigned s = 0; s < N; ++s)
    from[s] = reinterpret_cast<const Word *>(sources[s]);
#pragma GCC ivdep
  for (uint64_t i = begin; i < end; ++i) {
    auto sum = from[0][i].value;
#pragma GCC unroll 8
    for (unsigned s = 1; s < N; ++s)
      sum = Operation::apply(sum, from[s][i].value);
    to[i].value = sum;
  }
}

template <class Element, class Operation>
void foldBlock(char *destination, char *const *sources, unsigned numSources, uint64_t begin,
               uint64_t end, uint64_t divisor) {
  if constexpr (std::is_same_v<typename Element::Storage, typename Element::Accumulator>) {
    if (divisor <= 1) {
      switch (numSources) {
      case 2:
        return foldFixed<Element, Operation, 2>(destination, sources, begin, end);
      case 3:
        return foldFixed<Element, Operation, 3>(destination, sources, begin, end);
      case 4:
        return foldFixed<Element, Operation, 4>(destination, sources, begin, end);
      case 8:
        return foldFixed<Element, Operation, 8>(destination, sources, begin, end);
      }
    }
  }
  foldAny<Element, Operation>(destination, sources, numSources, begin, end, divisor);
}

template <class Element, class Operation>
void fold(char *const *pointers, unsigned numSources, unsigned numDestinations, uint64_t elements,
          uint64_t divisor) {
  constexpr uint64_t size = sizeof(typename Element::Storage);
  char *const *destinations = pointers + numSources;
  uint64_t step = numDestinations == 1 ? elements : kBlockBytes / size;
  for (uint64_t begin = 0; begin < elements; begin += step) {
    uint64_t end = elements - begin < step ? elements : begin + step;
    foldBlock<Element, Operation>(destinations[0], pointers, numSources, begin, end, divisor);
    for (unsigned d = 1; d < numDestinations; ++d)
      std::memcpy(destinations[d] + begin * size, destinations[0] + begin * size,
                  (end - begin) * size);
  }
}

} // namespace

FoldTable makeFoldTable() {
  FoldTable table;
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      table.functions[type][op] =
          dispatchFold(static_cast<DataType>(type), static_cast<ReduceOp>(op),
                       []<class Element, class Operation>() -> FoldFunction {
                         return fold<Element, Operation>;
                       });
  return table;
}

} // namespace occl::interpreter::OCCL_FOLD_VARIANT
