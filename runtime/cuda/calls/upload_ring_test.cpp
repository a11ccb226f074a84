// Streams are ordered behind all tables that were put, whatever became of others.
#include "runtime/cuda/calls/upload_ring.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <vector>

namespace occl::cuda {
namespace {

using namespace testing;

/// More than half of a half.
constexpr uint64_t kBytes = UploadRing::kMostBytes / 2 + 1;

class UploadRingTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    auto made = UploadRing::make(0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ring = std::move(*made);
  }
  void TearDown() override {
    letDeviceGo();
    cudaStreamDestroy(stream);
    resetHostCuda();
  }
  Status put(std::vector<char> &table) {
    return ring->put(table.data(), std::vector<char>(kBytes, 1).data(), kBytes);
  }
  /// Whether what the stream is given next waits for the tables.
  bool isBehindTables() {
    Status ordered = ring->order(stream);
    EXPECT_TRUE(ordered.ok()) << ordered.message();
    char word = 0;
    cudaMemsetAsync(&word, 1, 1, stream);
    letStreamGo(stream);
    const bool isBehind = word == 0;
    letDeviceGo();
    EXPECT_EQ(word, 1);
    return isBehind;
  }

  cudaStream_t stream = nullptr;
  std::unique_ptr<UploadRing> ring;
  std::vector<char> first = std::vector<char>(kBytes), second = first, third = first;
};

TEST_F(UploadRingTest, AStreamWaitsForTablesOfBothHalves) {
  holdDevice();
  EXPECT_TRUE(put(first).ok());
  EXPECT_TRUE(put(second).ok());
  EXPECT_TRUE(isBehindTables());
  EXPECT_EQ(first[0] + second[0], 2);
}

TEST_F(UploadRingTest, AStreamWaitsForTheLastTablesThoughTheNextOnesFoundNoRoom) {
  EXPECT_TRUE(put(first).ok());
  holdDevice();
  EXPECT_TRUE(put(second).ok());
  // As after a Timeout: what is in the other half is never seen to arrive.
  failCall("cudaEventQuery", cudaErrorUnknown);
  EXPECT_FALSE(put(third).ok());
  EXPECT_TRUE(isBehindTables());
  EXPECT_EQ(second[0], 1);
}

TEST_F(UploadRingTest, AStreamWaitsForTheLastTablesThoughTheNextOnesCouldNotBeCopied) {
  EXPECT_TRUE(put(first).ok());
  holdDevice();
  EXPECT_TRUE(put(second).ok());
  failCall("cudaMemcpyAsync", cudaErrorUnknown);
  EXPECT_FALSE(put(third).ok());
  EXPECT_TRUE(isBehindTables());
  EXPECT_EQ(second[0], 1);
}

TEST_F(UploadRingTest, AStreamWaitsForTablesWhoseEventCouldNotBeRecordedAtFirst) {
  EXPECT_TRUE(put(first).ok());
  holdDevice();
  failCall("cudaEventRecord", cudaErrorUnknown);
  EXPECT_FALSE(put(second).ok());
  EXPECT_TRUE(isBehindTables());
  EXPECT_EQ(second[0], 1);
}

TEST_F(UploadRingTest, AStreamWaitsForTablesThatCouldNotBeAskedForAtFirst) {
  holdDevice();
  EXPECT_TRUE(put(first).ok());
  failCall("cudaEventQuery", cudaErrorUnknown);
  EXPECT_FALSE(ring->order(stream).ok());
  EXPECT_TRUE(isBehindTables());
}

TEST_F(UploadRingTest, AWaitForTablesAwaitsTheLastOnes) {
  EXPECT_TRUE(put(first).ok());
  holdDevice();
  EXPECT_TRUE(put(second).ok());
  failCall("cudaMemcpyAsync", cudaErrorUnknown);
  EXPECT_FALSE(put(third).ok());
  uint32_t looks = 0;
  inCall("cudaEventQuery", [&] {
    if (++looks == 3)
      letDeviceGo();
  });
  EXPECT_TRUE(ring->await().ok());
  EXPECT_EQ(second[0], 1) << "nobody has waited for it";
}

TEST_F(UploadRingTest, NobodyWaitsForADeviceThatIsGivenUp) {
  holdDevice();
  EXPECT_TRUE(put(first).ok());
  ring->abandon();
  uint32_t looks = 0;
  inCall("cudaEventQuery", [&] {
    if (++looks == 3)
      letDeviceGo();
  });
  EXPECT_EQ(ring->await().code(), StatusCode::Timeout);
  EXPECT_EQ(looks, 0u);
  [[maybe_unused]] static UploadRing *left = nullptr; // with what it does not give back
  left = ring.release();
}

} // namespace
} // namespace occl::cuda
