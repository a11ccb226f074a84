#include "runtime/cuda/device/device_code.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace occl::cuda {
namespace {

constexpr std::array<uint32_t, 1> kOne = {90};
constexpr std::array<uint32_t, 3> kAll = {80, 90, 100};

TEST(DeviceCode, RunsOnTheSameMajorNumberAndNoSmallerMinorOne) {
  for (uint32_t capability : {80, 86, 89, 90, 100, 103})
    EXPECT_EQ(whyNoCode({kAll, 0}, capability), "") << capability;
  for (uint32_t capability : {70, 75, 110, 120})
    EXPECT_NE(whyNoCode({kAll, 0}, capability), "") << capability;
  for (uint32_t capability : {80, 89, 100})
    EXPECT_NE(whyNoCode({kOne, 0}, capability), "") << capability;
  constexpr std::array<uint32_t, 1> kMinor = {86};
  EXPECT_NE(whyNoCode({kMinor, 0}, 80), "");
}

TEST(DeviceCode, PtxIsForAllLaterDevices) {
  for (uint32_t capability : {100, 103, 110, 120})
    EXPECT_EQ(whyNoCode({kAll, 100}, capability), "") << capability;
  EXPECT_NE(whyNoCode({kOne, 100}, 89), "");
}

TEST(DeviceCode, TheReasonNamesTheDeviceTheCodeAndTheRemedy) {
  const std::string why = whyNoCode({kAll, 100}, 75);
  for (const char *part :
       {"compute capability 7.5",
        "has code for 8.0 (untried), 9.0, 10.0 (untried), PTX of 10.0 (untried);", "make package",
        "build_defs/cuda.bzl"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
  EXPECT_EQ(describe({{}, 0}), "none");
}

} // namespace
} // namespace occl::cuda
