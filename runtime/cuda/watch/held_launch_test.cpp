// A stream counts as held until what was put into it is over, or nothing is put into it.
#include "runtime/cuda/watch/held_launch.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

using namespace testing;

class HeldLaunchTest : public ::testing::Test {
protected:
  /// Without one nobody asks whether streams are held.
  struct Strict : HeldStreams::StrictDaemon {
    void letAllLeave(bool) override {}
    bool ensureLookout() override { return true; }
  };

  void SetUp() override {
    resetHostCuda();
    held.attach(daemon);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    letDeviceGo();
    held.sweep();
    held.detach(daemon);
    cudaStreamDestroy(stream);
    resetHostCuda();
  }
  Status launch() {
    return launchHeld(held, 0, stream, [this] {
      EXPECT_EQ(held.count(), 1u) << "before anything is put into the stream";
      ++launches;
      cudaMemsetAsync(&word, 1, 1, stream);
      return Status();
    });
  }

  Strict daemon;
  HeldStreams held;
  cudaStream_t stream = nullptr;
  uint32_t launches = 0;
  char word = 0;
};

TEST_F(HeldLaunchTest, AStreamIsHeldUntilTheWorkIsOver) {
  holdDevice();
  EXPECT_TRUE(launch().ok());
  held.sweep();
  EXPECT_EQ(held.count(), 1u);
  letDeviceGo();
  held.sweep();
  EXPECT_EQ(held.count(), 0u);
  EXPECT_EQ(word, 1);
}

TEST_F(HeldLaunchTest, NothingIsPutIntoAStreamThatCannotBeMarked) {
  holdDevice();
  failCall("cudaEventCreateWithFlags", cudaErrorMemoryAllocation);
  EXPECT_EQ(launch().code(), StatusCode::SystemError);
  EXPECT_EQ(launches, 0u) << "it would not count as held";
  EXPECT_EQ(held.count(), 0u);
  EXPECT_EQ(lastError(), cudaSuccess) << "the next caller of CUDA takes it for its own";
}

TEST_F(HeldLaunchTest, BehindWhatWaitsAMarkThatIsNotTakenIsNotPassed) {
  holdDevice();
  failCall("cudaEventRecord", cudaErrorUnknown);
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(launches, 1u);
  EXPECT_EQ(lastError(), cudaSuccess) << "the next caller of CUDA takes it for its own";
  held.sweep();
  EXPECT_EQ(held.count(), 1u) << "what was launched waits in the stream";
}

TEST_F(HeldLaunchTest, AStreamThatTakesNothingIsNotHeld) {
  failCall("cudaEventRecord", cudaErrorUnknown);
  const Status refused =
      launchHeld(held, 0, stream, [] { return Status(StatusCode::SystemError, "refused"); });
  EXPECT_EQ(refused.code(), StatusCode::SystemError);
  held.sweep();
  EXPECT_EQ(held.count(), 0u);
}

} // namespace
} // namespace occl::cuda
