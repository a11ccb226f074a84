// What becomes of a rank's device memory at its end, and when it has none.
#include "runtime/cuda/device/device_memory.h"

#include "runtime/cuda/testing/group_of_one.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace occl::cuda {
namespace {

using namespace testing;

constexpr DeviceMemory::Sizes kSizes = {1 << 20, 1 << 20};

class DeviceMemoryTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    before = numAllocations();
  }
  void TearDown() override { resetHostCuda(); }
  StatusOr<std::unique_ptr<DeviceMemory>> make() {
    return DeviceMemory::make(group, group.hosts(), 0, kSizes);
  }

  GroupOfOne group{2, true};
  uint64_t before = 0;
};

TEST_F(DeviceMemoryTest, WhatNobodyWasToldOfIsFreedAtOnce) {
  failCall("cudaIpcGetMemHandle", cudaErrorNotSupported);
  EXPECT_EQ(make().status().code(), StatusCode::SystemError);
  EXPECT_EQ(numAllocations(), before);
  setenv("OCCL_LL128", "perhaps", 1);
  EXPECT_EQ(make().status().code(), StatusCode::InvalidArgument);
  unsetenv("OCCL_LL128");
  EXPECT_EQ(numAllocations(), before) << "it is taken until the process ends";
  EXPECT_EQ(group.card(0).state.load(), DeviceCard::Failed);
  EXPECT_EQ(group.card(0).hasClosed.load(), 1u);
}

TEST_F(DeviceMemoryTest, WhatOthersMayHaveMappedIsFreedWhenTheyHaveClosed) {
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(numAllocations(), before + 1) << "the other rank has not said that it has closed";
  group.card(1).hasClosed = 1;
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(numAllocations(), before + 1);
}

} // namespace
} // namespace occl::cuda
