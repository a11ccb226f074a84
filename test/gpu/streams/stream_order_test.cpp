// A collective comes after whatever is before it in its stream, and before whatever is after it:
// other kernels and collectives, memory sets, events of other streams; as calls and as nodes of a
// graph. Kernels may be started early, and then must wait. Skipped where there is no device.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/captured_graph.h"
#include "test/gpu/harness/device_job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kCount = 900; // of one slice in lines
constexpr uint64_t kBytes = kCount * sizeof(uint32_t);
constexpr uint32_t kRounds = 24;
constexpr uint32_t kPattern = 0x01010101;

struct Shape {
  const char *name;
  plan::Plan (*make)(uint32_t);
  plan::Protocol protocol;
  uint32_t streams = 0; // occlConfig_t::streams
};

/// In more thread blocks than may start early unless there is but one stream.
plan::Plan wideOneShot(uint32_t numRanks) {
  return oneShotInBlocks(numRanks, 40, plan::Protocol::Simple);
}

class StreamOrder : public testing::TestWithParam<Shape> {
protected:
  static void SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }
  void SetUp() override {
    int number = 0;
    if (cudaGetDeviceCount(&number) != cudaSuccess || number == 0)
      GTEST_SKIP() << "no CUDA device";
    devices = static_cast<uint32_t>(number);
    occlConfig_t config = smallConfig();
    config.streams = GetParam().streams;
    ASSERT_EQ(occlCommInitAll(comms, kRanks, &config), occlSuccess) << occlGetLastError();
    what.plan = GetParam().make(kRanks);
    what.plan.protocol = GetParam().protocol;
    what.count = kCount;
    what.type = DataType::Int32;
    for (uint32_t r = 0; r < kRanks; ++r) {
      use(r);
      onDevices.push_back(std::make_unique<RankOnDevice>(comms[r], r));
      cudaStreamCreateWithFlags(&others[r], cudaStreamNonBlocking);
      cudaEventCreateWithFlags(&events[r], cudaEventDisableTiming);
    }
  }
  void TearDown() override {
    for (uint32_t r = 0; r < onDevices.size(); ++r) {
      cudaStreamDestroy(others[r]);
      cudaEventDestroy(events[r]);
    }
    onDevices.clear();
    for (occlComm_t comm : comms)
      if (comm != nullptr) {
        EXPECT_EQ(occlCommDestroy(comm), occlSuccess) << occlGetLastError();
      }
  }
  void use(uint32_t rank) const { cudaSetDevice(static_cast<int>(rank % devices)); }

  /// Where round i's result lies.
  char *result(uint32_t rank, uint32_t round) const {
    return onDevices[rank]->output(true) + round * kBytes;
  }
  std::string call(uint32_t rank, const void *from, void *to) const {
    return callInStream(comms[rank], what, from, to, onDevices[rank]->stream());
  }
  std::string wait(uint32_t rank, cudaStream_t before, cudaStream_t after) const {
    cudaError_t error = cudaEventRecord(events[rank], before);
    if (error == cudaSuccess)
      error = cudaStreamWaitEvent(after, events[rank], 0);
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
  }

  /// `work` on each rank's stream, called in a row or captured and replayed; then all results are
  /// what `expected` says of a round.
  void check(const std::function<std::string(uint32_t rank)> &work,
             const std::function<uint32_t(uint32_t round)> &expected) {
    for (bool inGraph : {false, true}) {
      std::vector<std::string> wrong(kRanks);
      std::vector<std::thread> threads;
      std::vector<CapturedGraph> graphs(kRanks);
      for (uint32_t r = 0; r < kRanks && inGraph; ++r) {
        use(r);
        wrong[r] = graphs[r].capture(onDevices[r]->stream(), [&, r] { return work(r); });
      }
      for (uint32_t r = 0; r < kRanks && wrong[0].empty() && wrong[1].empty(); ++r)
        threads.emplace_back([&, r] {
          use(r);
          for (uint32_t i = 0; i < 3 && wrong[r].empty(); ++i)
            wrong[r] = inGraph ? graphs[r].replay(onDevices[r]->stream()) : work(r);
          if (wrong[r].empty())
            wrong[r] = onDevices[r]->synchronize();
        });
      for (std::thread &thread : threads)
        thread.join();
      for (uint32_t r = 0; r < kRanks; ++r) {
        ASSERT_EQ(wrong[r], "") << "rank " << r << (inGraph ? ", in a graph" : "");
        ASSERT_STREQ(occlCommGetLastError(comms[r]), "");
        compare(r, expected, inGraph);
      }
    }
  }

private:
  void compare(uint32_t rank, const std::function<uint32_t(uint32_t)> &expected,
               bool inGraph) const {
    std::vector<uint32_t> host(kCount);
    use(rank);
    for (uint32_t round = 0; round < kRounds; ++round) {
      ASSERT_EQ(cudaMemcpyAsync(host.data(), result(rank, round), kBytes, cudaMemcpyDefault,
                                onDevices[rank]->stream()),
                cudaSuccess);
      ASSERT_EQ(onDevices[rank]->synchronize(), "");
      for (uint64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(host[i], expected(round)) << "element " << i << " of round " << round << ", rank "
                                            << rank << (inGraph ? ", in a graph" : "");
    }
  }

protected:
  uint32_t devices = 0;
  Case what;
  occlComm_t comms[kRanks] = {};
  std::vector<std::unique_ptr<RankOnDevice>> onDevices;
  cudaStream_t others[kRanks] = {};
  cudaEvent_t events[kRanks] = {};
};

/// What all bytes of rank r's input are in a round; the sum over the ranks has no carry.
uint8_t byteOf(uint32_t rank, uint32_t round) {
  return static_cast<uint8_t>(1 + (rank + 3 * round) % 40);
}
uint32_t sumOf(uint32_t round) {
  uint32_t sum = 0;
  for (uint32_t r = 0; r < kRanks; ++r)
    sum += byteOf(r, round) * kPattern;
  return sum;
}

TEST_P(StreamOrder, MemoryIsSetBetweenCollectives) {
  check(
      [&](uint32_t rank) -> std::string {
        char *input = onDevices[rank]->input(true);
        for (uint32_t round = 0; round < kRounds; ++round) {
          if (cudaMemsetAsync(input, byteOf(rank, round), kBytes, onDevices[rank]->stream()) !=
              cudaSuccess)
            return "cudaMemsetAsync";
          if (std::string wrong = call(rank, input, result(rank, round)); !wrong.empty())
            return wrong;
        }
        return "";
      },
      sumOf);
}

TEST_P(StreamOrder, ACollectiveTakesWhatTheOneBeforeItGave) {
  check(
      [&](uint32_t rank) -> std::string {
        char *input = onDevices[rank]->input(true);
        if (cudaMemsetAsync(input, 1, kBytes, onDevices[rank]->stream()) != cudaSuccess)
          return "cudaMemsetAsync";
        for (uint32_t round = 0; round < kRounds; ++round)
          if (std::string wrong =
                  call(rank, round == 0 ? input : result(rank, round - 1), result(rank, round));
              !wrong.empty())
            return wrong;
        return "";
      },
      [](uint32_t round) {
        uint32_t value = kPattern;
        for (uint32_t i = 0; i <= round; ++i)
          value *= kRanks;
        return value;
      });
}

TEST_P(StreamOrder, AnotherStreamSetsMemoryBeforeAndAfterAnEvent) {
  check(
      [&](uint32_t rank) -> std::string {
        char *input = onDevices[rank]->input(true);
        cudaStream_t work = onDevices[rank]->stream(), other = others[rank];
        std::string wrong;
        for (uint32_t round = 0; round < kRounds && wrong.empty(); ++round) {
          wrong = wait(rank, work, other); // the other one joins the capture, too
          if (wrong.empty() &&
              cudaMemsetAsync(input, byteOf(rank, round), kBytes, other) != cudaSuccess)
            wrong = "cudaMemsetAsync";
          if (wrong.empty())
            wrong = wait(rank, other, work);
          if (wrong.empty())
            wrong = call(rank, input, result(rank, round));
        }
        return wrong;
      },
      sumOf);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, StreamOrder,
    testing::Values(Shape{"simple", plan::testing::oneShotAllReduce, plan::Protocol::Simple},
                    Shape{"straight", plan::testing::oneShotAllReduce, plan::Protocol::LL},
                    Shape{"straight_wide", plan::testing::oneShotAllReduce, plan::Protocol::LL128},
                    Shape{"lines", plan::testing::twoShotAllReduce, plan::Protocol::LL},
                    Shape{"direct", plan::testing::directAllReduce, plan::Protocol::Simple},
                    Shape{"simple_of_one_stream", wideOneShot, plan::Protocol::Simple, 1},
                    Shape{"straight_of_one_stream", wideOneShot, plan::Protocol::LL, 1}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace occl::gpu_test
