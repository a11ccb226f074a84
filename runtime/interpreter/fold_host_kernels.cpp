// The loops of the fold, built once for each instruction set into a namespace of its own
// (OCCL_FOLD_VARIANT). Nothing but always-inlined functions may come from elsewhere. Vectors are
// written out, since compilers vectorise neither all conversions nor all selections.
#include "runtime/interpreter/fold.h"
#include "runtime/interpreter/fold_variants.h"

#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace occl::interpreter::OCCL_FOLD_VARIANT {
namespace {

/// Bytes of a destination that stay in cache until they are copied to the others.
constexpr uint64_t kBlockBytes = 8 << 10;

/// As wide as the widest instruction set; a narrower one takes several instructions.
constexpr uint64_t kVectorBytes = 32;
template <class T> struct VectorOf { typedef T Type __attribute__((vector_size(kVectorBytes))); };
template <class T> using Vector = typename VectorOf<T>::Type;
using Words = Vector<uint32_t>;
typedef uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));
typedef uint8_t Quarters __attribute__((vector_size(kVectorBytes / 4)));

OCCL_INLINE Words widen(Halves halves) {
#ifdef __AVX2__
  return __builtin_bit_cast(Words, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, halves)));
#else
  return __builtin_convertvector(halves, Words);
#endif
}

/// Of words below 2^16.
OCCL_INLINE Halves narrow(Words words) {
#ifdef __AVX2__
  __m256i whole = __builtin_bit_cast(__m256i, words);
  __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(whole, whole), 0x08);
  return __builtin_bit_cast(Halves, _mm256_castsi256_si128(packed));
#else
  return __builtin_convertvector(words, Halves);
#endif
}

OCCL_INLINE Vector<float> toFloats(Halves halves, Bfloat16Element) {
  return __builtin_bit_cast(Vector<float>, widen(halves) << 16);
}
OCCL_INLINE Halves fromFloats(Vector<float> value, Bfloat16Element) {
  return narrow(detail::bfloatFromFloat<Vector<float>, Words>(value));
}

OCCL_INLINE Vector<float> toFloats(Halves halves, Float16Element) {
#ifdef __F16C__
  return __builtin_bit_cast(Vector<float>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, halves)));
#else
  return detail::floatFromHalf<Vector<float>, Words>(widen(halves));
#endif
}
OCCL_INLINE Halves fromFloats(Vector<float> value, Float16Element) {
#ifdef __F16C__
  return __builtin_bit_cast(
      Halves, _mm256_cvtps_ph(__builtin_bit_cast(__m256, value), _MM_FROUND_TO_NEAREST_INT));
#else
  return narrow(detail::halfFromFloat<Vector<float>, Words>(value));
#endif
}

/// Of the 8-bit formats.
template <class Element> OCCL_INLINE Vector<float> toFloats(Quarters quarters, Element) {
  return detail::floatFromFloat8<typename Element::Storage, Vector<float>, Words>(
      __builtin_convertvector(quarters, Words));
}
template <class Element> OCCL_INLINE Quarters fromFloats(Vector<float> value, Element) {
  Words bits = detail::float8FromFloat<typename Element::Storage, Vector<float>, Words>(value);
  return __builtin_convertvector(bits, Quarters);
}

/// Accumulators of kVectorBytes, from elements at any address.
template <class Element> OCCL_INLINE auto load(const char *from) {
  using Storage = typename Element::Storage;
  if constexpr (std::is_same_v<Storage, typename Element::Accumulator>) {
    Vector<Storage> result;
    std::memcpy(&result, from, sizeof(result));
    return result;
  } else {
    std::conditional_t<sizeof(Storage) == 2, Halves, Quarters> stored;
    std::memcpy(&stored, from, sizeof(stored));
    return toFloats(stored, Element());
  }
}

template <class Element>
OCCL_INLINE void store(char *to, Vector<typename Element::Accumulator> value) {
  if constexpr (std::is_same_v<typename Element::Storage, typename Element::Accumulator>) {
    std::memcpy(to, &value, sizeof(value));
  } else {
    auto stored = fromFloats(value, Element());
    std::memcpy(to, &stored, sizeof(stored));
  }
}

/// One element, where a whole vector would be too much.
template <class Element, class Operation>
OCCL_INLINE void foldElement(char *to, char *const *sources, unsigned numSources, uint64_t offset,
                             uint64_t divisor) {
  typename Element::Storage stored;
  std::memcpy(&stored, sources[0] + offset, sizeof(stored));
  auto sum = Element::load(stored);
  for (unsigned s = 1; s < numSources; ++s) {
    std::memcpy(&stored, sources[s] + offset, sizeof(stored));
    sum = Operation::apply(sum, Element::load(stored));
  }
  stored = Element::store(divisor > 1 ? divide(sum, divisor) : sum);
  std::memcpy(to + offset, &stored, sizeof(stored));
}

/// The bytes [begin, end) in one pass over N sources, or over numSources if N is 0. Every vector is
/// read from all sources before it is stored, so the destination may be one of them.
template <class Element, class Operation, unsigned N>
void foldRange(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t end,
               uint64_t divisor) {
  using T = typename Element::Accumulator;
  constexpr uint64_t size = sizeof(typename Element::Storage);
  constexpr uint64_t width = kVectorBytes / sizeof(T) * size;
  numSources = N == 0 ? numSources : N;
  // No processor divides vectors of integers.
  uint64_t vectorEnd = std::is_integral_v<T> && divisor > 1 ? begin : end;
  for (; begin + 2 * width <= vectorEnd; begin += 2 * width) {
    auto low = load<Element>(sources[0] + begin), high = load<Element>(sources[0] + begin + width);
#pragma GCC unroll 8
    for (unsigned s = 1; s < numSources; ++s) {
      low = Operation::apply(low, load<Element>(sources[s] + begin));
      high = Operation::apply(high, load<Element>(sources[s] + begin + width));
    }
    if (divisor > 1) {
      low /= static_cast<T>(divisor);
      high /= static_cast<T>(divisor);
    }
    store<Element>(to + begin, low);
    store<Element>(to + begin + width, high);
  }
  for (; begin < end; begin += size)
    foldElement<Element, Operation>(to, sources, numSources, begin, divisor);
}

template <class Element, class Operation>
void foldBlock(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t end,
               uint64_t divisor) {
  switch (numSources) {
  case 2:
    return foldRange<Element, Operation, 2>(to, sources, 2, begin, end, divisor);
  case 3:
    return foldRange<Element, Operation, 3>(to, sources, 3, begin, end, divisor);
  case 4:
    return foldRange<Element, Operation, 4>(to, sources, 4, begin, end, divisor);
  case 8:
    return foldRange<Element, Operation, 8>(to, sources, 8, begin, end, divisor);
  default:
    return foldRange<Element, Operation, 0>(to, sources, numSources, begin, end, divisor);
  }
}

template <class Element, class Operation>
void fold(char *const *pointers, unsigned numSources, unsigned numDestinations, uint64_t elements,
          uint64_t divisor) {
  char *const *destinations = pointers + numSources;
  uint64_t bytes = elements * sizeof(typename Element::Storage);
  uint64_t step = numDestinations == 1 ? bytes : kBlockBytes;
  for (uint64_t begin = 0; begin < bytes; begin += step) {
    uint64_t end = bytes - begin < step ? bytes : begin + step;
    foldBlock<Element, Operation>(destinations[0], pointers, numSources, begin, end, divisor);
    for (unsigned d = 1; d < numDestinations; ++d)
      std::memcpy(destinations[d] + begin, destinations[0] + begin, end - begin);
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
