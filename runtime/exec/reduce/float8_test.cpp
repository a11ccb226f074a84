#include "runtime/exec/reduce/float8.h"

#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace occl::interpreter {
namespace {

struct E4m3 {
  static constexpr DataType kType = DataType::Float8E4m3;
  static constexpr uint8_t kMaxFinite = 0x7e;
  static float decode(uint8_t bits) { return toFloat(Float8E4m3{bits}); }
  static uint8_t encode(float value) { return toFloat8E4m3(value).bits; }
  static bool isNan(uint8_t bits) { return (bits & 0x7f) == 0x7f; }
};

struct E5m2 {
  static constexpr DataType kType = DataType::Float8E5m2;
  static constexpr uint8_t kMaxFinite = 0x7b;
  static float decode(uint8_t bits) { return toFloat(Float8E5m2{bits}); }
  static uint8_t encode(float value) { return toFloat8E5m2(value).bits; }
  static bool isNan(uint8_t bits) { return (bits & 0x7f) > 0x7c; }
};

template <class Format> class Float8 : public testing::Test {
protected:
  static uint8_t reference(float value) {
    return static_cast<uint8_t>(conformance::encode({{value}, {}}, Format::kType)[0]);
  }
};
using Formats = testing::Types<E4m3, E5m2>;
TYPED_TEST_SUITE(Float8, Formats);

TYPED_TEST(Float8, EveryBitPatternDecodesAndEncodesBack) {
  for (unsigned pattern = 0; pattern < 0x100; ++pattern) {
    auto bits = static_cast<uint8_t>(pattern);
    char byte = static_cast<char>(bits);
    double expected = conformance::decode(&byte, 1, TypeParam::kType).floats[0];
    float value = TypeParam::decode(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << pattern;
      EXPECT_TRUE(TypeParam::isNan(TypeParam::encode(value))) << pattern;
    } else {
      ASSERT_EQ(value, expected) << pattern;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << pattern;
      if (std::isfinite(value)) {
        ASSERT_EQ(TypeParam::encode(value), bits);
      }
    }
  }
}

/// Around every boundary between two results: the middle, and the floats next to it.
TYPED_TEST(Float8, RoundsToNearestEven) {
  for (uint8_t bits = 0; bits < TypeParam::kMaxFinite; ++bits) {
    float low = TypeParam::decode(bits), high = TypeParam::decode(bits + 1);
    float middle = (low + high) / 2;
    for (float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      ASSERT_EQ(TypeParam::encode(value), this->reference(value)) << value;
      ASSERT_EQ(TypeParam::encode(-value), this->reference(-value)) << -value;
    }
    ASSERT_EQ(TypeParam::encode(middle), bits % 2 == 0 ? bits : bits + 1) << middle;
  }
}

TYPED_TEST(Float8, TooLargeValuesBecomeTheLargestNumber) {
  float largest = TypeParam::decode(TypeParam::kMaxFinite);
  EXPECT_EQ(largest, TypeParam::kType == DataType::Float8E4m3 ? 448 : 57344);
  float infinity = std::numeric_limits<float>::infinity();
  for (float value : {std::nextafter(largest, infinity), largest * 1.2f, 1e30f, infinity}) {
    EXPECT_EQ(TypeParam::encode(value), TypeParam::kMaxFinite) << value;
    EXPECT_EQ(TypeParam::encode(-value), 0x80 | TypeParam::kMaxFinite) << value;
  }
}

TYPED_TEST(Float8, NanStaysOneAndTheSmallestNumbersVanish) {
  for (uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xffc00000u})
    EXPECT_TRUE(TypeParam::isNan(TypeParam::encode(__builtin_bit_cast(float, nan)))) << nan;
  EXPECT_EQ(TypeParam::encode(1e-30f), 0);
  EXPECT_EQ(TypeParam::encode(-std::numeric_limits<float>::denorm_min()), 0x80);
}

} // namespace
} // namespace occl::interpreter
