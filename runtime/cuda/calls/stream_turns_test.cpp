// Whether turns are over, on a CUDA of the host's.
#include "runtime/cuda/calls/stream_turns.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

using namespace testing;

class TurnsOfStreams : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    for (cudaStream_t &stream : streams)
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    letDeviceGo();
    for (cudaStream_t stream : streams)
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  bool areOver() const {
    const auto isOver = turns.isOver();
    EXPECT_TRUE(isOver.ok()) << isOver.status().message();
    return isOver.ok() && *isOver;
  }

  cudaStream_t streams[2] = {};
  StreamTurns turns;
};

TEST_F(TurnsOfStreams, AreOverIfThereWasNone) { EXPECT_TRUE(areOver()); }

TEST_F(TurnsOfStreams, AreOverWhenTheLastOneIs) {
  holdDevice();
  ASSERT_TRUE(turns.end(streams[0]).ok());
  EXPECT_FALSE(areOver());
  // The next one is behind it, in another stream.
  ASSERT_TRUE(turns.begin(streams[1]).ok());
  ASSERT_TRUE(turns.end(streams[1]).ok());
  letStreamGo(streams[1]);
  EXPECT_FALSE(areOver());
  letStreamGo(streams[0]);
  EXPECT_FALSE(areOver());
  letStreamGo(streams[1]);
  EXPECT_TRUE(areOver());
}

TEST_F(TurnsOfStreams, AreNotKnownToBeOverIfCudaDoesNotSay) {
  ASSERT_TRUE(turns.end(streams[0]).ok());
  failCall("cudaEventQuery", cudaErrorIllegalAddress);
  EXPECT_EQ(turns.isOver().status().code(), StatusCode::SystemError);
  EXPECT_TRUE(areOver());
}

} // namespace
} // namespace occl::cuda
