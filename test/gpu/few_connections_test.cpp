// More streams with collectives that wait than CUDA_DEVICE_MAX_CONNECTIONS: nothing that is put
// into another stream could begin, so the call has to say so. Skipped where there is no device.
//
// DISABLED_ tests are known failures, see docs/testing.md.
#include "test/gpu/block_plans.h"
#include "test/gpu/ranks_on_devices.h"

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
  start(2);
  for (uint64_t id = 0; id < 2 * kConnections; ++id)
    registerOnAll(one(oneShotInBlocks(2, 1, plan::Protocol::LL), id), 3000);
  cudaSetDevice(0);
  std::vector<cudaStream_t> streams(2 * kConnections);
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  RankOnDevice &rank = *onDevices[0];
  occlResult_t result = occlSuccess;
  for (uint64_t id = 0; id < streams.size() && result == occlSuccess; ++id) {
    char *output = rank.output(false) + id * 8192;
    result = occlEnqueue(comms[0], id, rank.input(false), output, streams[id]);
    // What is behind it keeps the connection.
    if (result == occlSuccess)
      cudaMemsetAsync(output, 0, 1, streams[id]);
  }
  EXPECT_NE(result, occlSuccess);
  EXPECT_NE(std::string(occlGetLastError()).find("CUDA_DEVICE_MAX_CONNECTIONS"), std::string::npos)
      << occlGetLastError();
  EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  for (cudaStream_t stream : streams) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
}

} // namespace
} // namespace occl::gpu_test
