// More streams with collectives that wait than CUDA_DEVICE_MAX_CONNECTIONS: nothing that is put
// into another stream could begin, so the call has to say so. Skipped where there is no device.
//
// DISABLED_ tests are known failures, see docs/testing.md.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
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

TEST_F(FewConnections, DISABLED_OneStreamTooManyIsRefusedAtTheCall) {
  const Case what = one(oneShotInBlocks(2, 1, plan::Protocol::LL));
  startMany(2 * kConnections, 2, smallConfig(), {what});
  cudaSetDevice(0);
  std::vector<cudaStream_t> streams(2 * kConnections);
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  RankOnDevice &rank = *onDevices[0];
  occlResult_t result = occlSuccess;
  for (size_t s = 0; s < streams.size() && result == occlSuccess; ++s) {
    char *output = rank.output(false) + s * 8192;
    result = callCase(commOf(0, s), what, rank.input(false), output, streams[s], 3000);
    // What is behind it keeps the connection.
    if (result == occlSuccess)
      cudaMemsetAsync(output, 0, 1, streams[s]);
  }
  EXPECT_NE(result, occlSuccess);
  EXPECT_NE(std::string(occlGetLastError()).find("CUDA_DEVICE_MAX_CONNECTIONS"), std::string::npos)
      << occlGetLastError();
  for (size_t c = 0; c < streams.size(); ++c)
    EXPECT_EQ(occlCommAbort(commOf(1, c)), occlSuccess);
  for (cudaStream_t stream : streams) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
}

} // namespace
} // namespace occl::gpu_test
