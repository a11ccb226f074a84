// More streams with collectives that wait than CUDA_DEVICE_MAX_CONNECTIONS: nothing that is put
// into another stream could begin, so the call has to say so. Skipped where there is no device.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace occl::gpu_test {
namespace {

constexpr uint32_t kConnections = 4;

/// Kernels say that they wait after 10 ms, and hosts look every 2.
constexpr auto kUntilItIsKnown = std::chrono::milliseconds(100);

/// As many communicators of two ranks as there are connections, and a stream of rank 0 for each.
class FewConnections : public RanksOnDevices {
protected:
  static void SetUpTestSuite() {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kConnections).c_str(), 1);
  }
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    what = one(oneShotInBlocks(2, 1, plan::Protocol::LL));
    startMany(kConnections, 2, smallConfig(), {what});
    cudaSetDevice(0);
    for (cudaStream_t &stream : streams)
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    for (cudaStream_t stream : streams)
      if (stream)
        cudaStreamDestroy(stream);
    RanksOnDevices::TearDown();
  }
  /// Communicator s on rank 0, in stream s.
  occlResult_t call(size_t s) {
    const RankOnDevice &rank = *onDevices[0];
    return callCase(commOf(0, s), what, rank.input(false), rank.output(false) + s * 8192,
                    streams[s], 20000);
  }
  /// The same on rank 1, in its one stream.
  occlResult_t answer(size_t s) {
    const RankOnDevice &rank = *onDevices[1];
    return callCase(commOf(1, s), what, rank.input(false), rank.output(false) + s * 8192,
                    rank.stream(), 20000);
  }
  /// All but the last one's stream is held by a call that waits for rank 1, and that is known.
  void holdAllButOne() {
    for (size_t s = 0; s + 1 < kConnections; ++s)
      ASSERT_EQ(call(s), occlSuccess) << occlGetLastError();
    std::this_thread::sleep_for(kUntilItIsKnown);
    ASSERT_EQ(call(kConnections - 1), occlAgain);
  }

  Case what;
  std::array<cudaStream_t, kConnections> streams = {};
};

/// As a program does whose call is refused for now; for some seconds at most.
template <class Call> occlResult_t untilTaken(const Call &call) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  occlResult_t result = call();
  while (result == occlAgain && std::chrono::steady_clock::now() < late) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    result = call();
  }
  return result;
}

TEST_F(FewConnections, OneStreamTooManyIsRefusedAtTheCall) {
  holdAllButOne();
  EXPECT_NE(std::string(occlGetLastError()).find("CUDA_DEVICE_MAX_CONNECTIONS is 4"),
            std::string::npos)
      << occlGetLastError();
  // A stream that is held already takes no other connection.
  EXPECT_EQ(call(0), occlSuccess) << occlGetLastError();

  // Nothing was lost: rank 1 comes, and the refused call finds room. Calls that rank 0 has begun
  // are taken whatever waits; the second one of communicator 0 begins when the first has ended.
  EXPECT_EQ(answer(0), occlSuccess) << occlGetLastError();
  EXPECT_EQ(untilTaken([&] { return answer(0); }), occlSuccess) << occlGetLastError();
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(untilTaken([&] { return call(kConnections - 1); }), occlSuccess) << occlGetLastError();
  for (size_t s = 1; s < kConnections; ++s)
    EXPECT_EQ(untilTaken([&] { return answer(s); }), occlSuccess) << occlGetLastError();
  for (cudaStream_t stream : streams)
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  for (size_t s = 0; s < kConnections; ++s)
    EXPECT_STREQ(occlCommGetLastError(commOf(0, s)), "");
}

/// Its kernels have left, though nobody destroys it yet.
TEST_F(FewConnections, AFailedCommunicatorHoldsNone) {
  holdAllButOne();
  for (size_t s = 0; s + 1 < kConnections; ++s)
    occlCommAbort(commOf(0, s));
  EXPECT_EQ(untilTaken([&] { return call(kConnections - 1); }), occlSuccess) << occlGetLastError();
  EXPECT_EQ(untilTaken([&] { return answer(kConnections - 1); }), occlSuccess)
      << occlGetLastError();
  for (cudaStream_t stream : streams)
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_STREQ(occlCommGetLastError(commOf(0, kConnections - 1)), "");
}

} // namespace
} // namespace occl::gpu_test
