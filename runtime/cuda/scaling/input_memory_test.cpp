// How much memory the copies of inputs take that grow from call to call.
#include "runtime/cuda/scaling/input_memory.h"

#include "runtime/cuda/tables/device_collective.h"
#include "runtime/cuda/testing/group_of_one.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace occl::cuda {
namespace {

using namespace testing;

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;

class InputMemoryTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    auto made = DeviceMemory::make(group, group.hosts(), 0, {2 * kMiB, kMiB});
    ASSERT_TRUE(made.ok()) << made.status().message();
    memory = std::move(*made);
    before = numAllocations();
  }
  void TearDown() override { resetHostCuda(); }

  /// As in a graph, so that nothing is known to be over; null: it is refused.
  char *take(OrderedScaledInputs &inputs, uint64_t bytes, bool isDirect = false) {
    auto taken = inputs.memoryFor({numCalls++, true, isDirect, [] { return uint64_t{0}; }}, bytes);
    return taken.ok() ? *taken : nullptr;
  }
  uint64_t numTaken() const { return numAllocations() - before; }

  GroupOfOne group{1, false};
  std::unique_ptr<DeviceMemory> memory;
  ArenaSpace none{0, 0};
  uint64_t before = 0, numCalls = 0;
};

TEST_F(InputMemoryTest, GrowingInputsTakeFewPiecesOfCudas) {
  InputMemory all(*memory, none);
  OrderedScaledInputs inputs(all);
  for (uint64_t bytes = kKiB; bytes <= 64 * kKiB; bytes += kKiB)
    ASSERT_TRUE(take(inputs, bytes));
  EXPECT_EQ(numTaken(), 7u) << "not one for each power of two";
  for (uint64_t bytes = 64 * kMiB; bytes <= 256 * kMiB; bytes += kMiB)
    ASSERT_TRUE(take(inputs, bytes));
  EXPECT_LE(numTaken(), 7u + 5) << "64, 96, 144, 216, 324 MiB";
}

TEST_F(InputMemoryTest, GrowingInputsTakeFewPiecesOfTheArena) {
  ArenaSpace space(kRecordBytes, memory->bytesOnDevice() - kRecordBytes);
  InputMemory all(*memory, space);
  OrderedScaledInputs inputs(all);
  std::set<char *> pieces;
  for (uint64_t bytes = kKiB; bytes <= 64 * kKiB; bytes += kKiB)
    pieces.insert(take(inputs, bytes, true));
  EXPECT_EQ(pieces.size(), 7u);
  EXPECT_FALSE(pieces.contains(nullptr));
  EXPECT_EQ(numTaken(), 0u);
}

TEST_F(InputMemoryTest, WithoutThatMuchTheyTakeWhatTheyNeed) {
  InputMemory all(*memory, none);
  OrderedScaledInputs inputs(all);
  failCall("cudaMalloc", cudaErrorMemoryAllocation);
  EXPECT_TRUE(take(inputs, 5 * kKiB));
  EXPECT_EQ(numTaken(), 1u);
  EXPECT_TRUE(take(inputs, 5 * kKiB));
  EXPECT_EQ(numTaken(), 1u);
  EXPECT_TRUE(take(inputs, 5 * kKiB + 1)) << "the piece is larger than what was left";
  EXPECT_EQ(numTaken(), 2u);
  EXPECT_EQ(lastError(), cudaSuccess);
}

/// Other ranks access what a direct plan reads.
TEST_F(InputMemoryTest, PiecesOfCudasAreForNoDirectPlan) {
  ArenaSpace space(kRecordBytes, 8 * kKiB);
  InputMemory all(*memory, space);
  OrderedScaledInputs inputs(all);
  EXPECT_TRUE(take(inputs, 8 * kKiB));
  EXPECT_EQ(numTaken(), 0u);
  EXPECT_TRUE(take(inputs, 100 * kMiB));
  EXPECT_EQ(numTaken(), 1u);
  EXPECT_FALSE(take(inputs, 16 * kKiB, true));
  EXPECT_TRUE(take(inputs, 8 * kKiB, true));
  EXPECT_EQ(numTaken(), 1u);
}

} // namespace
} // namespace occl::cuda
