#include "runtime/exec/reduce/half.h"

#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace occl::interpreter {
namespace {

uint16_t reference(float value, DataType type) {
  uint16_t bits;
  std::memcpy(&bits, conformance::encode({{value}, {}}, type).data(), sizeof(bits));
  return bits;
}

bool isNan(uint16_t bits, uint16_t infinity) { return (bits & 0x7fff) > infinity; }

TEST(Half, EveryBitPatternDecodesAndEncodesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t pattern = static_cast<uint16_t>(bits);
    char bytes[2];
    std::memcpy(bytes, &pattern, 2);
    double half = conformance::decode(bytes, 1, DataType::Float16).floats[0];
    double bfloat = conformance::decode(bytes, 1, DataType::Bfloat16).floats[0];
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(toFloat(Half{pattern})));
      EXPECT_TRUE(isNan(toHalf(toFloat(Half{pattern})).bits, 0x7c00));
    } else {
      ASSERT_EQ(toFloat(Half{pattern}), half) << bits;
      ASSERT_EQ(toHalf(toFloat(Half{pattern})).bits, pattern);
    }
    if (std::isnan(bfloat)) {
      EXPECT_TRUE(isNan(toBfloat16(toFloat(Bfloat16{pattern})).bits, 0x7f80));
    } else {
      ASSERT_EQ(toFloat(Bfloat16{pattern}), bfloat) << bits;
      ASSERT_EQ(toBfloat16(toFloat(Bfloat16{pattern})).bits, pattern);
    }
  }
}

/// Around every boundary between two results: the middle, and the floats next to it.
TEST(Half, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    float low = toFloat(Half{static_cast<uint16_t>(bits)});
    float high = bits == 0x7bff ? 65536.0f : toFloat(Half{static_cast<uint16_t>(bits + 1)});
    float middle = (low + high) / 2;
    for (float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      ASSERT_EQ(toHalf(value).bits, reference(value, DataType::Float16)) << value;
      ASSERT_EQ(toHalf(-value).bits, reference(-value, DataType::Float16)) << -value;
    }
  }
}

TEST(Half, BfloatRoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits)
    for (uint32_t rest : {0x7fffu, 0x8000u, 0x8001u, 0xffffu, 1u}) {
      float value = __builtin_bit_cast(float, bits << 16 | rest);
      ASSERT_EQ(toBfloat16(value).bits, reference(value, DataType::Bfloat16)) << value;
    }
}

TEST(Half, OverflowsToInfinityAndKeepsNan) {
  float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(toHalf(65520.0f).bits, 0x7c00);
  EXPECT_EQ(toHalf(1e30f).bits, 0x7c00);
  EXPECT_EQ(toHalf(-infinity).bits, 0xfc00);
  EXPECT_EQ(toBfloat16(infinity).bits, 0x7f80);
  // A payload in the bits that are cut off only.
  float nan = __builtin_bit_cast(float, 0x7f800001u);
  EXPECT_TRUE(isNan(toHalf(nan).bits, 0x7c00));
  EXPECT_TRUE(isNan(toBfloat16(nan).bits, 0x7f80));
  EXPECT_TRUE(isNan(toBfloat16(__builtin_bit_cast(float, 0x7fffffffu)).bits, 0x7f80));
}

} // namespace
} // namespace occl::interpreter
