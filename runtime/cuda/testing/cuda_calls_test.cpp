// Waits for a device have an end, and say what came of it.
#include "runtime/cuda/device/cuda_calls.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <chrono>

namespace occl::cuda {
namespace {

using namespace testing;
using namespace std::chrono_literals;

TEST(CudaCalls, ADeviceIsAskedUntilItIsReadyOrTimeIsUp) {
  uint32_t asked = 0;
  const auto answers = [&](cudaError_t last, uint32_t at) {
    asked = 0;
    return [&asked, last, at] { return ++asked < at ? cudaErrorNotReady : last; };
  };
  EXPECT_EQ(pollDevice(answers(cudaSuccess, 3), 1h), cudaSuccess);
  EXPECT_EQ(asked, 3u);
  EXPECT_EQ(pollDevice(answers(cudaErrorUnknown, 2), 1h), cudaErrorUnknown);
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(pollDevice([] { return cudaErrorNotReady; }, 5ms), cudaErrorNotReady);
  EXPECT_EQ(pollDevice(answers(cudaSuccess, 1), 0ms), cudaSuccess) << "it is asked once at least";
}

TEST(CudaCalls, MemoryIsClearedOrAnErrorSaysWhy) {
  resetHostCuda();
  char word = 1;
  EXPECT_TRUE(clearNow(&word, 1).ok());
  EXPECT_EQ(word, 0);
  for (const char *call : {"cudaStreamCreateWithFlags", "cudaMemsetAsync", "cudaStreamQuery"}) {
    failCall(call, cudaErrorUnknown);
    EXPECT_EQ(clearNow(&word, 1).code(), StatusCode::SystemError) << call;
    EXPECT_EQ(lastError(), cudaSuccess) << call;
  }
}

} // namespace
} // namespace occl::cuda
