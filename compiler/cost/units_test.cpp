#include "compiler/cost/Units.h"

#include <gtest/gtest.h>

namespace occl::cost {
namespace {

using topology::kGigabyte, topology::kMicrosecond, topology::kNanosecond, topology::kSecond;

TEST(Units, Times) {
  EXPECT_EQ(timeText(0), "0 ns");
  EXPECT_EQ(timeText(850 * kNanosecond), "850 ns");
  EXPECT_EQ(timeText(12340 * kNanosecond), "12.34 us");
  EXPECT_EQ(timeText(5000 * kMicrosecond), "5.00 ms");
  EXPECT_EQ(timeText(kSecond + kSecond / 5), "1.20 s");
}

TEST(Units, SizesAndSpeeds) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1000), "1000 B");
  EXPECT_EQ(bytesText(4096), "4 KiB");
  EXPECT_EQ(bytesText(3 << 19), "1.5 MiB");
  EXPECT_EQ(bandwidthText(360 * kGigabyte), "360 GB/s");
  EXPECT_EQ(bandwidthText(kGigabyte / 2), "0.5 GB/s");
}

} // namespace
} // namespace occl::cost
