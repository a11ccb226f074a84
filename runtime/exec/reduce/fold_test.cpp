#include "runtime/exec/conformance/reference.h"
#include "runtime/exec/reduce/fold_variants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

namespace occl::interpreter {
namespace {

using conformance::encode;
using conformance::exactInput;
using conformance::expectedOutput;
using conformance::Numbers;

constexpr DataType kTypes[] = {DataType::Uint8,   DataType::Int32,      DataType::Int64,
                               DataType::Float16, DataType::Bfloat16,   DataType::Float32,
                               DataType::Float64, DataType::Float8E4m3, DataType::Float8E5m2,
                               DataType::Int8,    DataType::Uint32,     DataType::Uint64};
static_assert(std::size(kTypes) == kNumDataTypes);
constexpr DataType kFloatTypes[] = {DataType::Float16, DataType::Bfloat16,   DataType::Float32,
                                    DataType::Float64, DataType::Float8E4m3, DataType::Float8E5m2};
constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max,
                             ReduceOp::Avg};

class Fold : public testing::TestWithParam<FoldTable (*)()> {
protected:
  void SetUp() override {
#ifdef __x86_64__
    if (GetParam() == avx2::makeFoldTable && !__builtin_cpu_supports("avx2"))
      GTEST_SKIP() << "this processor has no AVX2";
    if (GetParam() == avx512::makeFoldTable &&
        !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")))
      GTEST_SKIP() << "this processor has no AVX-512";
#endif
    table = GetParam()();
  }

  /// Folds `sources` into `numDestinations` buffers, all `shift` bytes off alignment, the first of
  /// them the source `alias` itself if there is such; returns the destinations' bytes.
  std::vector<std::string> fold(const std::vector<Numbers> &sources, DataType type, ReduceOp op,
                                unsigned numDestinations, unsigned shift, size_t alias = ~0u) {
    std::vector<std::string> buffers;
    for (const Numbers &source : sources) {
      std::vector<char> bytes = encode(source, type);
      buffers.push_back(std::string(shift, 'x') + std::string(bytes.begin(), bytes.end()));
    }
    size_t bytes = buffers[0].size();
    for (unsigned d = 0; d < numDestinations; ++d)
      buffers.push_back(std::string(bytes, 'd'));
    std::vector<char *> pointers;
    for (std::string &buffer : buffers)
      pointers.push_back(buffer.data() + shift);
    if (alias < sources.size())
      pointers[sources.size()] = pointers[alias];
    table.functions[unsigned(type)][unsigned(op)](pointers.data(), unsigned(sources.size()),
                                                  numDestinations, (bytes - shift) / sizeOf(type),
                                                  op == ReduceOp::Avg ? sources.size() : 1);
    std::vector<std::string> results;
    for (unsigned d = 0; d < numDestinations; ++d)
      results.emplace_back(pointers[sources.size() + d], bytes - shift);
    return results;
  }

  static std::string expected(const std::vector<Numbers> &sources, DataType type, ReduceOp op,
                              uint64_t elements) {
    std::vector<char> bytes =
        encode(expectedOutput("allreduce", sources, 0, 0, elements, type, op), type);
    return {bytes.begin(), bytes.end()};
  }

  static std::vector<Numbers> inputs(unsigned n, uint64_t elements, DataType type, ReduceOp op) {
    std::vector<Numbers> sources;
    for (unsigned s = 0; s < n; ++s) {
      sources.push_back(exactInput(elements, type, op, 1000 * elements + s));
      if (op == ReduceOp::Avg && isFloat(type)) // each is divided before it is added
        sources.back() = conformance::multiplied(sources.back(), n, type);
    }
    return sources;
  }

  FoldTable table;
};

TEST_P(Fold, AgreesWithPlainLoops) {
  for (DataType type : kTypes)
    for (ReduceOp op : kOps)
      for (unsigned n : {1, 2, 3, 4, 5, 7, 8, 9, 16})
        for (uint64_t elements : {1, 7, 64, 1023, 1025, 3000}) {
          if (op == ReduceOp::Avg && type == DataType::Float8E5m2 && n == 9)
            continue; // it has no multiples of 9
          auto sources = inputs(n, elements, type, op);
          ASSERT_EQ(fold(sources, type, op, 1, 0)[0], expected(sources, type, op, elements))
              << nameOf(type) << ' ' << nameOf(op) << ", " << n << " sources of " << elements;
        }
}

TEST_P(Fold, StoresTheSameInEveryDestinationAtAnyAlignment) {
  for (DataType type : kTypes)
    for (unsigned shift : {1, 2, 3, 8}) {
      auto sources = inputs(3, 20011, type, ReduceOp::Sum);
      for (const std::string &result : fold(sources, type, ReduceOp::Sum, 3, shift))
        ASSERT_EQ(result, expected(sources, type, ReduceOp::Sum, 20011)) << nameOf(type);
    }
}

TEST_P(Fold, MayStoreInPlaceOfAnySource) {
  for (DataType type : kTypes)
    for (unsigned n : {2, 3, 5, 8})
      for (unsigned alias = 0; alias < n; ++alias) {
        auto sources = inputs(n, 5000, type, ReduceOp::Avg);
        for (const std::string &result : fold(sources, type, ReduceOp::Avg, 2, 0, alias))
          ASSERT_EQ(result, expected(sources, type, ReduceOp::Avg, 5000))
              << nameOf(type) << ", source " << alias << " of " << n;
      }
}

TEST_P(Fold, RoundsSumsOfSmallFloatsOnce) {
  // 2048 + 1 + 1: rounding after each addition would stay at 2048 in float16.
  for (auto [type, big] : {std::pair(DataType::Float16, 2048.0),
                           {DataType::Bfloat16, 256.0},
                           {DataType::Float8E4m3, 16.0},
                           {DataType::Float8E5m2, 8.0}}) {
    std::vector<Numbers> sources = {{{big}, {}}, {{1}, {}}, {{1}, {}}};
    std::vector<char> bytes = encode({{big + 2}, {}}, type);
    EXPECT_EQ(fold(sources, type, ReduceOp::Sum, 1, 0)[0], std::string(bytes.begin(), bytes.end()));
  }
}

TEST_P(Fold, PropagatesNotANumberFromEverySource) {
  for (DataType type : kFloatTypes)
    for (ReduceOp op : {ReduceOp::Min, ReduceOp::Max})
      for (unsigned n : {2, 3, 5, 8})
        for (unsigned at = 0; at < n; ++at) {
          auto sources = inputs(n, 100, type, op);
          sources[at].floats[37] = NAN;
          std::string result = fold(sources, type, op, 1, 0)[0];
          Numbers numbers = conformance::decode(result.data(), 100, type);
          for (unsigned i = 0; i < 100; ++i)
            ASSERT_EQ(std::isnan(numbers.floats[i]), i == 37) << nameOf(type) << " source " << at;
        }
}

TEST_P(Fold, LargeSumsOfEightBitFloatsEndAtTheLargestNumber) {
  for (auto [type, largest] :
       {std::pair(DataType::Float8E4m3, 448.0), {DataType::Float8E5m2, 57344.0}}) {
    std::vector<Numbers> sources(3, Numbers{{largest, -largest, largest}, {}});
    sources[1].floats[2] = -largest; // the float between cannot overflow
    std::string result = fold(sources, type, ReduceOp::Sum, 1, 0)[0];
    EXPECT_EQ(conformance::decode(result.data(), 3, type).floats,
              (std::vector<double>{largest, -largest, largest}));
  }
}

TEST_P(Fold, WrapsIntegersAround) {
  std::vector<Numbers> sources = {{{}, {0x7fffffff}}, {{}, {1}}};
  int32_t value;
  std::memcpy(&value, fold(sources, DataType::Int32, ReduceOp::Sum, 1, 0)[0].data(), 4);
  EXPECT_EQ(value, INT32_MIN);
  sources = {{{}, {200}}, {{}, {100}}};
  EXPECT_EQ(fold(sources, DataType::Uint8, ReduceOp::Sum, 1, 0)[0][0], 44);
  EXPECT_EQ(fold(sources, DataType::Int8, ReduceOp::Sum, 1, 0)[0][0], 44);
  EXPECT_EQ(fold(sources, DataType::Int8, ReduceOp::Max, 1, 0)[0][0], 100); // 200 is -56
  sources = {{{}, {-1}}, {{}, {2}}}; // the largest of the unsigned
  for (DataType type : {DataType::Uint32, DataType::Uint64}) {
    const std::string largest(sizeOf(type), '\xff');
    EXPECT_EQ(fold(sources, type, ReduceOp::Sum, 1, 0)[0],
              '\1' + std::string(sizeOf(type) - 1, '\0'));
    EXPECT_EQ(fold(sources, type, ReduceOp::Max, 1, 0)[0], largest);
  }
}

TEST_P(Fold, TruncatesTheAverageOfIntegers) {
  std::vector<Numbers> sources = {{{}, {-4}}, {{}, {-3}}};
  int32_t value;
  std::memcpy(&value, fold(sources, DataType::Int32, ReduceOp::Avg, 1, 0)[0].data(), 4);
  EXPECT_EQ(value, -3);
  EXPECT_EQ(fold(sources, DataType::Int8, ReduceOp::Avg, 1, 0)[0][0], -3);
  // More ranks than an 8-bit integer counts: 300 of them have -1 each, 300 wraps to 44.
  sources.assign(300, {{}, {-1}});
  EXPECT_EQ(fold(sources, DataType::Int8, ReduceOp::Avg, 1, 0)[0][0], 0);
  uint64_t half;
  sources = {{{}, {-2}}, {{}, {0}}};
  std::memcpy(&half, fold(sources, DataType::Uint64, ReduceOp::Avg, 1, 0)[0].data(), 8);
  EXPECT_EQ(half, ~0ull / 2);
}

/// Elements of any bits, as far as the type has room for them.
std::vector<char> anyBits(DataType type, uint64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> bytes(elements * sizeOf(type));
  for (char &byte : bytes)
    byte = static_cast<char>(random());
  return bytes;
}

/// NaN or equal; zeros of both signs are.
bool isSame(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

/// Two floats of any bits: what is computed in double and rounded once. Sums and products of two
/// floats of 32 bits are not, so they are left to where they are exact; nor is the sum of two
/// 8-bit floats that has no place in the type, which ends at the largest.
TEST_P(Fold, AnyBitsOfSmallFloats) {
  for (DataType type :
       {DataType::Float16, DataType::Bfloat16, DataType::Float8E4m3, DataType::Float8E5m2})
    for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max}) {
      constexpr uint64_t kElements = 100003;
      std::vector<Numbers> sources;
      for (uint64_t seed : {1, 2}) {
        // What the reference gives as bits: it has no infinity of float8_e5m2.
        std::vector<char> bits = anyBits(type, kElements, seed);
        bits = encode(conformance::decode(bits.data(), kElements, type), type);
        sources.push_back(conformance::decode(bits.data(), kElements, type));
      }
      const std::string result = fold(sources, type, op, 1, 1)[0];
      const Numbers got = conformance::decode(result.data(), kElements, type);
      const std::string want = expected(sources, type, op, kElements);
      const Numbers wanted = conformance::decode(want.data(), kElements, type);
      for (uint64_t i = 0; i < kElements; ++i)
        ASSERT_TRUE(isSame(got.floats[i], wanted.floats[i]))
            << nameOf(type) << ' ' << nameOf(op) << " of " << sources[0].floats[i] << " and "
            << sources[1].floats[i] << ": " << got.floats[i] << ", not " << wanted.floats[i];
    }
}

/// Each element times a factor: any bits of floats, rounded once; integers wrap.
TEST_P(Fold, Multiplies) {
  for (DataType type : kTypes)
    for (double factor : {3.0, -2.0, 0.0, 0.75})
      for (uint64_t elements : {1, 2, 31, 64, 1000, 20011}) {
        if (!isFloat(type) && factor == 0.75)
          continue;
        std::vector<char> from = anyBits(type, elements, elements);
        const Numbers numbers = conformance::decode(from.data(), elements, type);
        const Numbers one = isFloat(type) ? Numbers{{factor}, {}} : Numbers{{}, {int64_t(factor)}};
        std::vector<char> want = encode(conformance::multiplied(numbers, factor, type), type);
        std::vector<char> to(from.size() + 1, 'd');
        table.multiply[unsigned(type)](to.data() + 1, from.data(), elements,
                                       encode(one, type).data());
        table.multiply[unsigned(type)](from.data(), from.data(), elements,
                                       encode(one, type).data());
        EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << "in place";
        EXPECT_EQ(to[0], 'd');
        if (!isFloat(type)) {
          ASSERT_EQ(from, want) << nameOf(type) << " times " << factor;
          continue;
        }
        const Numbers got = conformance::decode(from.data(), elements, type),
                      wanted = conformance::decode(want.data(), elements, type);
        for (uint64_t i = 0; i < elements; ++i)
          ASSERT_TRUE(isSame(got.floats[i], wanted.floats[i]))
              << nameOf(type) << ", " << numbers.floats[i] << " times " << factor << ": "
              << got.floats[i] << ", not " << wanted.floats[i];
      }
}

std::string nameOfVariant(const testing::TestParamInfo<FoldTable (*)()> &info) {
  constexpr const char *names[] = {"baseline", "avx2", "avx512"};
  return names[info.index];
}

INSTANTIATE_TEST_SUITE_P(Variants, Fold,
                         testing::Values(baseline::makeFoldTable, avx2::makeFoldTable,
                                         avx512::makeFoldTable),
                         nameOfVariant);

TEST(CopyToAll, ReachesEveryDestinationAndLeavesTheSource) {
  std::string source(100000, 's');
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = static_cast<char>(i * 7);
  std::string original = source, first(source.size(), 'a'), second(source.size(), 'b');
  char *pointers[] = {source.data(), first.data(), source.data(), second.data()};
  copyToAll(pointers, 3, source.size());
  EXPECT_EQ(first, original);
  EXPECT_EQ(second, original);
  EXPECT_EQ(source, original);
}

} // namespace
} // namespace occl::interpreter
