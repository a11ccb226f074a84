// Buffers that are not memory of the rank's device are refused where they are given. Skipped where
// there is no device.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/device/buffer_check.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint64_t kBytes = 4096;

class Buffers : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    start(2);
    what = one(plan::testing::oneShotAllReduce(2));
    rememberOnAll(what);
    cudaSetDevice(0);
  }

  /// What each way of starting a collective says of such a buffer on rank 0, as its input and as
  /// its output.
  void expectRefused(void *buffer, const std::string &because) {
    RankOnDevice &rank = *onDevices[0];
    for (bool isInput : {true, false}) {
      const void *input = isInput ? buffer : rank.input(false);
      void *output = isInput ? rank.output(false) : buffer;
      const std::string expected = (isInput ? "sendBuffer is " : "recvBuffer is ") + because;
      auto check = [&](const char *call, occlResult_t result) {
        EXPECT_EQ(result, occlInvalidArgument) << call;
        EXPECT_NE(std::string(occlGetLastError()).find(expected), std::string::npos)
            << call << ": " << occlGetLastError();
      };
      check("occlCall", callCase(comms[0], what, input, output, rank.stream()));
      occlRequest_t request;
      check("occlStart", startKnown(comms[0], 1, input, output, nullptr, nullptr, &request));
      check("occlStart after a stream",
            startInStream(comms[0], 1, input, output, rank.stream(), nullptr, nullptr, nullptr));
    }
  }
  /// A refused call has counted nowhere.
  void expectStillWorks() {
    callOnAll(what);
    EXPECT_STREQ(occlCommGetLastError(comms[0]), "");
  }

  Case what;
};

TEST_F(Buffers, MemoryOfTheHostIsRefused) {
  std::vector<char> plain(kBytes);
  expectRefused(plain.data(), "memory that CUDA does not know");
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  expectRefused(pinned, "memory of the host");
  cudaFreeHost(pinned);
  expectStillWorks();
}

TEST_F(Buffers, ManagedMemoryIsRefused) {
  void *managed = nullptr;
  ASSERT_EQ(cudaMallocManaged(&managed, kBytes), cudaSuccess);
  expectRefused(managed, "managed memory");
  cudaFree(managed);
  expectStillWorks();
}

TEST_F(Buffers, MemoryOfAnotherDeviceIsRefused) {
  if (devices < 2)
    GTEST_SKIP() << "one CUDA device";
  expectRefused(onDevices[1]->input(false), "memory of CUDA device 1");
  expectStillWorks();
}

TEST_F(Buffers, CapturedCallsAreRefusedToo) {
  std::vector<char> plain(kBytes);
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kBytes), cudaSuccess);
  RankOnDevice &rank = *onDevices[0];
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(rank.stream(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(callCase(comms[0], what, pinned, rank.output(false), rank.stream()),
            occlInvalidArgument);
  ASSERT_EQ(cudaStreamEndCapture(rank.stream(), &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaFreeHost(pinned);
  expectStillWorks();
}

TEST_F(Buffers, AnAddressThatIsFreedIsNoticedInTime) {
  char *memory = nullptr;
  constexpr uint64_t kLarge = 64 << 20; // so that its address is nobody else's afterwards
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&memory), kLarge), cudaSuccess);
  auto check = [&] {
    return cuda::checkOnDevice({{"sendBuffer", memory, 8}, {"recvBuffer", memory, 8}}, 0, false);
  };
  ASSERT_TRUE(check().ok()) << check().message();
  constexpr uint32_t kCalls = 100'000;
  auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < kCalls; ++i)
    ASSERT_TRUE(check().ok());
  std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::fprintf(stderr, "looking at the buffers of a call: %.1f ns\n", took.count() / kCalls);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  uint32_t calls = 1;
  while (calls < 1000 && check().ok())
    ++calls;
  EXPECT_LE(calls, 256u);
}

} // namespace
} // namespace occl::gpu_test
