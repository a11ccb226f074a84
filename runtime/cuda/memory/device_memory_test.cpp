// What becomes of a rank's device memory at its end, and when it has none; and what is read of it.
#include "runtime/cuda/memory/device_memory.h"

#include "runtime/cuda/testing/group_of_one.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

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

TEST_F(DeviceMemoryTest, MemoryThatNobodyWasToldOfIsFreedAtOnce) {
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

TEST_F(DeviceMemoryTest, MemoryThatOthersMayHaveMappedIsFreedWhenTheyHaveClosed) {
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(numAllocations(), before + 1) << "the other rank has not said that it has closed";
  group.card(1).hasClosed = 1;
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(numAllocations(), before + 1);
}

TEST_F(DeviceMemoryTest, RanksThatTakeItInOtherWaysAreNotConnected) {
  GroupOfOne group(2, false);
  auto made = DeviceMemory::make(group, group.hosts(), 0, kSizes);
  ASSERT_TRUE(made.ok()) << made.status().message();
  const DeviceCard &own = group.card(0);
  DeviceCard &other = group.card(1);
  other.bytes = own.bytes;
  other.arenaBytes = own.arenaBytes;
  other.isAsNeeded = 1;
  other.state.store(DeviceCard::Ready, std::memory_order_release);
  const Status status = (*made)->connect();
  EXPECT_EQ(status.code(), StatusCode::Mismatch);
  EXPECT_NE(status.message().find("rank 1 takes device memory as it is needed, this one at once"),
            std::string::npos)
      << status.message();
  other.hasClosed.store(1, std::memory_order_release);
}

class Downloads : public DeviceMemoryTest {
protected:
  void SetUp() override {
    DeviceMemoryTest::SetUp();
    group.card(1).hasClosed = 1;
    auto made = make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    memory = std::move(*made);
  }
  /// The first words of the device's memory, counted up.
  std::vector<uint64_t> upload(uint64_t words) {
    std::vector<uint64_t> numbers(words);
    for (uint64_t i = 0; i < words; ++i)
      numbers[i] = i + 1;
    EXPECT_TRUE(memory->upload(memory->onDevice(), numbers.data(), words * 8).ok());
    return numbers;
  }
  Status download(std::vector<uint64_t> &to) {
    return memory->download(to.data(), memory->onDevice(), to.size() * 8);
  }

  std::unique_ptr<DeviceMemory> memory;
};

TEST_F(Downloads, AreOfAnySize) {
  const std::vector<uint64_t> all = upload(20'000);
  for (const uint64_t words : {0, 1, 2047, 2048, 2049, 20'000}) {
    std::vector<uint64_t> got(words);
    ASSERT_TRUE(download(got).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin())) << words;
  }
}

/// The device does not get round to it: the call must come to where it looks at the time, and what
/// is late must not come to memory that its caller may have left.
TEST_F(Downloads, WaitForABusyDeviceWhereTheyAreBounded) {
  upload(1);
  std::atomic<bool> hasLooked{false}, isOver{false};
  inCall("cudaEventQuery", [&] { hasLooked = true; });
  failCall("cudaEventQuery", cudaErrorUnknown); // as at the end of its patience
  holdDevice();
  std::vector<uint64_t> late(1);
  std::thread caller([&] {
    EXPECT_FALSE(download(late).ok());
    isOver = true;
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!isOver && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_TRUE(hasLooked) << "CUDA waits for the device";
  letDeviceGo();
  caller.join();
  EXPECT_EQ(late[0], 0u);
  std::vector<uint64_t> next(1);
  EXPECT_TRUE(download(next).ok());
  EXPECT_EQ(next[0], 1u);
}

} // namespace
} // namespace occl::cuda
