// More streams with collectives that wait than CUDA_DEVICE_MAX_CONNECTIONS: nothing that is put
// into another stream could begin, so the call has to say so. Skipped where there is no device.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint32_t kConnections = 4;

class FewConnections : public RanksOnDevices {
protected:
  static void SetUpTestSuite() {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kConnections).c_str(), 1);
  }
};

/// Kernels say that they wait after 10 ms, and hosts look every 2.
constexpr auto kUntilItIsKnown = std::chrono::milliseconds(100);

TEST_F(FewConnections, OneStreamTooManyIsRefusedAtTheCall) {
  const Case what = one(oneShotInBlocks(2, 1, plan::Protocol::LL));
  startMany(kConnections, 2, smallConfig(), {what});
  cudaSetDevice(0);
  std::vector<cudaStream_t> streams(kConnections);
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  RankOnDevice &rank = *onDevices[0];
  const auto call = [&](size_t s) {
    char *output = rank.output(false) + s * 8192;
    return callCase(commOf(0, s), what, rank.input(false), output, streams[s], 20000);
  };
  for (size_t s = 0; s + 1 < kConnections; ++s)
    ASSERT_EQ(call(s), occlSuccess) << occlGetLastError();
  std::this_thread::sleep_for(kUntilItIsKnown);
  EXPECT_EQ(call(kConnections - 1), occlAgain);
  EXPECT_NE(std::string(occlGetLastError()).find("CUDA_DEVICE_MAX_CONNECTIONS is 4"),
            std::string::npos)
      << occlGetLastError();
  // A stream that is held already takes no other connection.
  EXPECT_EQ(call(0), occlSuccess) << occlGetLastError();

  // Nothing was lost: rank 1 comes, and the refused call finds room.
  RankOnDevice &peer = *onDevices[1];
  const auto answer = [&](size_t s) {
    return callCase(commOf(1, s), what, peer.input(false), peer.output(false) + s * 8192,
                    peer.stream(), 20000);
  };
  EXPECT_EQ(answer(0), occlSuccess) << occlGetLastError();
  EXPECT_EQ(answer(0), occlSuccess) << occlGetLastError();
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  std::this_thread::sleep_for(kUntilItIsKnown);
  EXPECT_EQ(call(kConnections - 1), occlSuccess) << occlGetLastError();
  for (size_t s = 1; s < kConnections; ++s)
    EXPECT_EQ(answer(s), occlSuccess) << occlGetLastError();
  for (cudaStream_t stream : streams) {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    cudaStreamDestroy(stream);
  }
  for (size_t s = 0; s < kConnections; ++s)
    EXPECT_STREQ(occlCommGetLastError(commOf(0, s)), "");
}

} // namespace
} // namespace occl::gpu_test
