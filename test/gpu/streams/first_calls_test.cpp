// First calls of shapes, whose tables are on their way to the device when the calls are in their
// streams. Ranks are threads, on as many devices as there are. Skipped where there is no device.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/checked_rank.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint32_t kStreams = 3;
constexpr uint64_t kMostBytes = 1 << 20;
/// Of tables of some KiB each: more than are on their way at a time.
constexpr uint32_t kShapes = 160;

class FirstCalls : public RanksOnDevices {};

/// Copies of the program's own, behind which those of tables may have to wait.
class UsersCopies {
public:
  UsersCopies() : onDevice(kBytes) {
    EXPECT_EQ(cudaHostAlloc(&onHost, kBytes, cudaHostAllocDefault), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  ~UsersCopies() {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaFreeHost(onHost);
  }
  UsersCopies(const UsersCopies &) = delete;
  UsersCopies &operator=(const UsersCopies &) = delete;

  void start() {
    for (uint32_t i = 0; i < 16; ++i)
      EXPECT_EQ(cudaMemcpyAsync(onDevice.get(), onHost, kBytes, cudaMemcpyHostToDevice, stream),
                cudaSuccess);
  }

private:
  static constexpr uint64_t kBytes = 64 << 20;
  DeviceBuffer onDevice;
  void *onHost = nullptr;
  cudaStream_t stream = nullptr;
};

plan::Plan planOf(uint32_t shape, uint32_t n) {
  const plan::Protocol protocols[] = {plan::Protocol::LL, plan::Protocol::LL128,
                                      plan::Protocol::Simple};
  return oneShotInBlocks(n, 16, protocols[shape % 3]);
}

/// Each shape is called twice in a row, the second time in another stream, which knows nothing of
/// the tables that the first call has sent on their way.
TEST_F(FirstCalls, HaveTheirTablesInAnyStreamBesideCopiesOfTheProgram) {
  const uint32_t n = numRanks();
  occlConfig_t config = smallConfig();
  config.arenaBytes = 512 << 20;
  start(n, config);
  std::vector<std::unique_ptr<CheckedRank>> ranks;
  std::vector<std::unique_ptr<UsersCopies>> copies;
  for (uint32_t r = 0; r < n; ++r) {
    cudaSetDevice(static_cast<int>(r % devices));
    ranks.push_back(
        std::make_unique<CheckedRank>(std::vector{comms[r]}, r, n, kStreams, kMostBytes, true));
    copies.push_back(std::make_unique<UsersCopies>());
  }
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong;
    for (uint32_t shape = 0; shape < kShapes && wrong.empty(); ++shape) {
      if (shape % 40 == 0)
        copies[rank]->start();
      Case what = one(planOf(shape, n));
      what.count = 1000 + 7 * shape;
      for (uint32_t again = 0; again < 2 && wrong.empty(); ++again)
        wrong = ranks[rank]->run((shape + again) % kStreams, what, checkedOf(what, Expected::Sum),
                                 2 * shape + again);
    }
    return wrong.empty() ? ranks[rank]->finish() : wrong;
  });
}

/// CUDA takes a kernel's stack for all threads that a device can have, when the kernel is launched
/// for the first time, and has that launch wait until the device is idle.
TEST_F(FirstCalls, TakeNoMemoryForStacks) {
  const uint32_t n = numRanks();
  start(n);
  callOnAll(one(planOf(0, n)));
  const uint64_t before = bytesTaken();
  for (uint32_t shape = 0; shape < 3; ++shape)
    for (DataType type : {DataType::Float32, DataType::Bfloat16, DataType::Int8, DataType::Float64})
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
        Case what = one(planOf(shape, n));
        what.type = type;
        what.op = op;
        callOnAll(what);
      }
  EXPECT_LT(bytesTaken(), before + (32 << 20));
}

} // namespace
} // namespace occl::gpu_test
