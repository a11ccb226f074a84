// The loops of the fold, built once for each instruction set into a namespace of its own
// (OCCL_FOLD_VARIANT). Nothing but always-inlined functions may come from elsewhere. Vectors are
// written out, since compilers vectorise neither all conversions nor all selections.
#include "runtime/exec/reduce/fold.h"
#include "runtime/exec/reduce/fold_variants.h"

#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace occl::interpreter::OCCL_FOLD_VARIANT {
namespace {

/// Bytes of a destination that stay in cache until they are copied to the others.
constexpr uint64_t kBlockBytes = 8 << 10;

/// As wide as the registers: compilers split wider vectors badly.
#if defined(__AVX512BW__)
constexpr uint64_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr uint64_t kVectorBytes = 32;
#else
constexpr uint64_t kVectorBytes = 16;
#endif
template <class T> struct VectorOf { typedef T Type __attribute__((vector_size(kVectorBytes))); };
template <class T> using Vector = typename VectorOf<T>::Type;
using Words = Vector<uint32_t>;
typedef uint16_t Halves __attribute__((vector_size(kVectorBytes / 2)));
typedef uint8_t Quarters __attribute__((vector_size(kVectorBytes / 4)));

#ifdef __AVX512BW__
/// With a mask, since GCC 12 takes what the forms without one leave open for an error.
constexpr __mmask16 kAll = 0xffff;
#endif

OCCL_INLINE Vector<float> toFloats(Halves halves, Float16Element) {
#if defined(__AVX512BW__)
  return __builtin_bit_cast(Vector<float>,
                            _mm512_maskz_cvtph_ps(kAll, __builtin_bit_cast(__m256i, halves)));
#elif defined(__F16C__)
  return __builtin_bit_cast(Vector<float>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, halves)));
#else
  return detail::floatFromHalf<Vector<float>, Words>(__builtin_convertvector(halves, Words));
#endif
}
OCCL_INLINE Halves fromFloats(Vector<float> value, Float16Element) {
#if defined(__AVX512BW__)
  return __builtin_bit_cast(Halves, _mm512_maskz_cvtps_ph(kAll, __builtin_bit_cast(__m512, value),
                                                          _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  return __builtin_bit_cast(
      Halves, _mm256_cvtps_ph(__builtin_bit_cast(__m256, value), _MM_FROUND_TO_NEAREST_INT));
#else
  return __builtin_convertvector(detail::halfFromFloat<Vector<float>, Words>(value), Halves);
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

template <class Stored> OCCL_INLINE Stored loadFrom(const char *from) {
  Stored stored;
  std::memcpy(&stored, from, sizeof stored);
  return stored;
}
template <class Stored> OCCL_INLINE void storeTo(char *to, Stored stored) {
  std::memcpy(to, &stored, sizeof stored);
}

/// What is folded at a time: kBytes of elements at any address, as accumulators. All rows of a type
/// and operation give an element the same bits, wherever in a row it lies.
template <class Element, class Operation> struct Row {
  using Accumulator = typename Element::Accumulator;
  static constexpr bool kIsPlain = std::is_same_v<typename Element::Storage, Accumulator>;
  using Stored = std::conditional_t<
      kIsPlain, Vector<Accumulator>,
      std::conditional_t<sizeof(typename Element::Storage) == 2, Halves, Quarters>>;
  static constexpr uint64_t kBytes = sizeof(Stored);
  Vector<Accumulator> values;

  OCCL_INLINE explicit Row(const char *from) {
    if constexpr (kIsPlain)
      values = loadFrom<Stored>(from);
    else
      values = toFloats(loadFrom<Stored>(from), Element());
  }
  OCCL_INLINE void apply(const Row &other) { values = Operation::apply(values, other.values); }
  OCCL_INLINE void divideBy(uint64_t divisor) { values /= static_cast<Accumulator>(divisor); }
  OCCL_INLINE void multiplyBy(Accumulator factor) { values *= factor; }
  OCCL_INLINE void store(char *to) const {
    if constexpr (kIsPlain)
      storeTo(to, values);
    else
      storeTo(to, fromFloats(values, Element()));
  }
};

/// The upper halves of floats: those at even and at odd places apart, so that nothing changes its
/// place in the vector.
template <class Operation> struct Row<Bfloat16Element, Operation> {
  static constexpr uint64_t kBytes = kVectorBytes;
  Vector<float> even, odd;

  OCCL_INLINE explicit Row(const char *from) {
    Words both = loadFrom<Words>(from);
    even = __builtin_bit_cast(Vector<float>, both << 16);
    odd = __builtin_bit_cast(Vector<float>, both & 0xffff0000);
  }
  OCCL_INLINE void apply(const Row &other) {
    even = Operation::apply(even, other.even);
    odd = Operation::apply(odd, other.odd);
  }
  OCCL_INLINE void divideBy(uint64_t divisor) {
    even /= static_cast<float>(divisor);
    odd /= static_cast<float>(divisor);
  }
  OCCL_INLINE void multiplyBy(float factor) {
    even *= factor;
    odd *= factor;
  }
  OCCL_INLINE void store(char *to) const {
    storeTo(to, detail::bfloatFromFloat<Vector<float>, Words>(even) |
                    detail::bfloatFromFloat<Vector<float>, Words>(odd) << 16);
  }
};

/// The larger, or smaller, of floats of 16 bits, compared as integers: negative ones have their
/// magnitude inverted. Of two zeros +0 is the larger one.
template <class Element, bool kLargest> struct OrderedRow {
  using Keys = Vector<int16_t>;
  static constexpr uint64_t kBytes = kVectorBytes;
  static constexpr int16_t kInfinity = std::is_same_v<Element, Float16Element> ? 0x7c00 : 0x7f80;
  Keys keys, largestMagnitude;

  static OCCL_INLINE Keys inverted(Keys bits) { return bits ^ ((bits >> 15) & 0x7fff); }

  OCCL_INLINE explicit OrderedRow(const char *from) {
    Keys bits = loadFrom<Keys>(from);
    keys = inverted(bits);
    largestMagnitude = bits & 0x7fff;
  }
  OCCL_INLINE void apply(const OrderedRow &other) {
    keys = (kLargest ? keys > other.keys : keys < other.keys) ? keys : other.keys;
    largestMagnitude =
        largestMagnitude > other.largestMagnitude ? largestMagnitude : other.largestMagnitude;
  }
  OCCL_INLINE void store(char *to) const {
    // A magnitude beyond infinity is a NaN.
    storeTo(to, largestMagnitude > kInfinity ? largestMagnitude : inverted(keys));
  }
};
template <> struct Row<Float16Element, Minimum> : OrderedRow<Float16Element, false> {
  using OrderedRow::OrderedRow;
};
template <> struct Row<Float16Element, Maximum> : OrderedRow<Float16Element, true> {
  using OrderedRow::OrderedRow;
};
template <> struct Row<Bfloat16Element, Minimum> : OrderedRow<Bfloat16Element, false> {
  using OrderedRow::OrderedRow;
};
template <> struct Row<Bfloat16Element, Maximum> : OrderedRow<Bfloat16Element, true> {
  using OrderedRow::OrderedRow;
};

/// Integers one by one: no processor divides vectors of them.
template <class Element>
void averageElements(char *to, char *const *sources, unsigned numSources, uint64_t begin,
                     uint64_t end, uint64_t divisor) {
  using Integer = typename Element::Storage;
  for (; begin < end; begin += sizeof(Integer)) {
    Integer sum = loadFrom<Integer>(sources[0] + begin);
    for (unsigned s = 1; s < numSources; ++s)
      sum = Sum::apply(sum, loadFrom<Integer>(sources[s] + begin));
    storeTo(to + begin, divide(sum, divisor));
  }
}

/// A row of a source: divided, if kDivides.
template <class Row, bool kDivides> OCCL_INLINE Row rowOf(const char *from, uint64_t divisor) {
  Row row(from);
  if constexpr (kDivides)
    row.divideBy(divisor);
  return row;
}

/// kRows rows from `begin` on, of N sources, or of numSources if N is 0. All sources are read
/// before anything is stored.
template <class Row, unsigned N, unsigned kRows, bool kDivides>
OCCL_INLINE void foldRows(char *to, char *const *sources, unsigned numSources, uint64_t begin,
                          uint64_t divisor) {
  constexpr auto load = rowOf<Row, kDivides>;
  constexpr uint64_t kNext = (kRows - 1) * Row::kBytes;
  numSources = N == 0 ? numSources : N;
  // Both rows are folded side by side, and all sources read before the first store.
  Row first = load(sources[0] + begin, divisor), second = load(sources[0] + begin + kNext, divisor);
#pragma GCC unroll 8
  for (unsigned s = 1; s < numSources; ++s) {
    first.apply(load(sources[s] + begin, divisor));
    if constexpr (kRows == 2)
      second.apply(load(sources[s] + begin + kNext, divisor));
  }
  first.store(to + begin);
  if constexpr (kRows == 2)
    second.store(to + begin + kNext);
}

/// What is less than a row, from `begin` on: from copies that are padded.
template <class Row, bool kDivides>
void foldEnd(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t bytes,
             uint64_t divisor) {
  // The padding is folded, too, but not copied back.
  char padded[Row::kBytes] = {}, other[Row::kBytes] = {};
  std::memcpy(padded, sources[0] + begin, bytes);
  Row row = rowOf<Row, kDivides>(padded, divisor);
  for (unsigned s = 1; s < numSources; ++s) {
    std::memcpy(other, sources[s] + begin, bytes);
    row.apply(rowOf<Row, kDivides>(other, divisor));
  }
  row.store(padded);
  std::memcpy(to + begin, padded, bytes);
}

template <class Row, unsigned N, bool kDivides>
void foldAllRows(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t end,
                 uint64_t divisor) {
  for (; end - begin >= 2 * Row::kBytes; begin += 2 * Row::kBytes)
    foldRows<Row, N, 2, kDivides>(to, sources, numSources, begin, divisor);
  if (end - begin >= Row::kBytes) {
    foldRows<Row, N, 1, kDivides>(to, sources, numSources, begin, divisor);
    begin += Row::kBytes;
  }
  if (begin != end)
    foldEnd<Row, kDivides>(to, sources, numSources, begin, end - begin, divisor);
}

/// The bytes [begin, end) in one pass over N sources, or over numSources if N is 0. The destination
/// may be one of the sources.
template <class Element, class Operation, unsigned N>
void foldRange(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t end,
               uint64_t divisor) {
  using Folded = Row<Element, Operation>;
  if constexpr (std::is_same_v<Operation, Sum>) {
    if (divisor > 1) {
      if constexpr (std::is_integral_v<typename Element::Accumulator>)
        return averageElements<Element>(to, sources, numSources, begin, end, divisor);
      else
        return foldAllRows<Folded, 0, true>(to, sources, numSources, begin, end, divisor);
    }
  }
  foldAllRows<Folded, N, false>(to, sources, numSources, begin, end, divisor);
}

template <class Element, class Operation>
void foldBlock(char *to, char *const *sources, unsigned numSources, uint64_t begin, uint64_t end,
               uint64_t divisor) {
  // The usual numbers of sources have loops that are unrolled.
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
  // With several destinations a block is copied while it is in the cache.
  uint64_t step = numDestinations == 1 ? bytes : kBlockBytes;
  for (uint64_t begin = 0; begin < bytes; begin += step) {
    uint64_t end = bytes - begin < step ? bytes : begin + step;
    foldBlock<Element, Operation>(destinations[0], pointers, numSources, begin, end, divisor);
    for (unsigned d = 1; d < numDestinations; ++d)
      std::memcpy(destinations[d] + begin, destinations[0] + begin, end - begin);
  }
}

/// Row after row, in place too.
template <class Element>
void multiply(char *to, const char *from, uint64_t elements, const void *factor) {
  using Scaled = Row<Element, Sum>;
  // The factor is converted once.
  const auto by =
      Element::load(loadFrom<typename Element::Storage>(static_cast<const char *>(factor)));
  uint64_t left = elements * sizeof(typename Element::Storage);
  for (; left >= Scaled::kBytes; left -= Scaled::kBytes) {
    Scaled row(from);
    row.multiplyBy(by);
    row.store(to);
    from += Scaled::kBytes;
    to += Scaled::kBytes;
  }
  if (left == 0)
    return;
  // The rest goes through a padded row.
  char padded[Scaled::kBytes] = {};
  std::memcpy(padded, from, left);
  Scaled row(padded);
  row.multiplyBy(by);
  row.store(padded);
  std::memcpy(to, padded, left);
}

} // namespace

FoldTable makeFoldTable() {
  FoldTable table;
  for (unsigned type = 0; type < kNumDataTypes; ++type) {
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      table.functions[type][op] =
          dispatchFold(static_cast<DataType>(type), static_cast<ReduceOp>(op),
                       []<class Element, class Operation>() -> FoldFunction {
                         return fold<Element, Operation>;
                       });
    table.multiply[type] =
        dispatchFold(static_cast<DataType>(type), ReduceOp::Sum,
                     []<class Element, class>() -> MultiplyFunction { return multiply<Element>; });
  }
  return table;
}

} // namespace occl::interpreter::OCCL_FOLD_VARIANT
