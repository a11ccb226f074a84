// Communicators that take device memory as calls need it: how much of it, and that calls come to it
// in any way. Ranks are threads, on as many devices as there are. Skipped where there is no device.
#include "runtime/api/occl_collectives.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

constexpr uint64_t kMiB = 1 << 20;
/// Floats: of calls of protocols LL, LL128 and Simple between two ranks.
constexpr uint64_t kSmall = 4 << 10, kMiddle = 128 << 10, kLarge = 8 << 20;

/// As libnccl.so.2 has it between up to four ranks. heapMiB: for buffers of occlMemAlloc.
occlConfig_t asNeeded(uint64_t heapMiB = 1) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 128 << 20;
  config.heapBytes = heapMiB * kMiB;
  config.timeoutMs = 30000;
  config.asNeeded = 1;
  return config;
}

/// What a rank has for all-reduces in several streams: buffers are there before anything is
/// measured.
class Summing {
public:
  static constexpr uint32_t kStreams = 2;

  Summing(uint32_t rank, uint32_t numRanks) : numRanks(numRanks) {
    std::vector<float> ones(kLarge, static_cast<float>(rank + 1));
    for (uint32_t s = 0; s < kStreams; ++s) {
      EXPECT_EQ(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking), cudaSuccess);
      inputs.push_back(std::make_unique<DeviceBuffer>(kLarge * sizeof(float)));
      outputs.push_back(std::make_unique<DeviceBuffer>(kLarge * sizeof(float)));
      EXPECT_EQ(
          cudaMemcpy(inputs[s]->get(), ones.data(), kLarge * sizeof(float), cudaMemcpyHostToDevice),
          cudaSuccess);
    }
  }
  ~Summing() {
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
  }
  cudaStream_t stream(uint32_t s) const { return streams[s]; }

  /// In stream s. "" or what is wrong.
  std::string call(occlComm_t comm, uint64_t count, uint32_t s = 0) {
    return occlAllReduce(inputs[s]->get(), outputs[s]->get(), count, occlFloat32, occlSum, comm,
                         streams[s]) == occlSuccess
               ? ""
               : occlGetLastError();
  }
  /// The stream's last call was right.
  std::string check(uint64_t count, uint32_t s = 0) {
    std::vector<float> got(count);
    if (cudaStreamSynchronize(streams[s]) != cudaSuccess ||
        cudaMemcpy(got.data(), outputs[s]->get(), count * sizeof(float), cudaMemcpyDeviceToHost) !=
            cudaSuccess ||
        cudaMemset(outputs[s]->get(), 0, kLarge * sizeof(float)) != cudaSuccess)
      return "CUDA fails";
    const auto expected = static_cast<float>(numRanks * (numRanks + 1) / 2);
    const auto wrong = std::ranges::find_if(got, [&](float sum) { return sum != expected; });
    return wrong == got.end() ? ""
                              : "element " + std::to_string(wrong - got.begin()) + " of " +
                                    std::to_string(count) + " is " + std::to_string(*wrong);
  }
  std::string run(occlComm_t comm, uint64_t count) {
    std::string wrong = call(comm, count);
    return wrong.empty() ? check(count) : wrong;
  }

private:
  const uint32_t numRanks;
  cudaStream_t streams[kStreams] = {};
  std::vector<std::unique_ptr<DeviceBuffer>> inputs, outputs;
};

class AsNeeded : public RanksOnDevices {
protected:
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (IsSkipped())
      return;
    start(numRanks(), asNeeded(8));
    for (uint32_t r = 0; r < n(); ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      ranks.push_back(std::make_unique<Summing>(r, n()));
    }
  }
  void TearDown() override {
    inThreads([&](uint32_t rank) {
      for (auto &communicator : further)
        occlCommDestroy(communicator[rank]);
      return std::string();
    });
    ranks.clear();
    RanksOnDevices::TearDown();
  }
  /// Of the same ranks.
  void makeFurther(const occlConfig_t &config = asNeeded()) {
    further.emplace_back(n());
    inThreads([&](uint32_t rank) -> std::string {
      return occlCommSplit(comms[rank], 0, 0, &config, &further.back()[rank]) == occlSuccess
                 ? ""
                 : occlGetLastError();
    });
  }
  void runOnAll(std::vector<occlComm_t> &of, uint64_t count) {
    inThreads([&](uint32_t rank) { return ranks[rank]->run(of[rank], count); });
  }
  /// MiB of the first device that a rank has taken since then.
  double takenSince(uint64_t before) const {
    const uint32_t there = (n() + devices - 1) / devices;
    return static_cast<double>(bytesTaken() - before) / static_cast<double>(kMiB * there);
  }

  std::vector<std::unique_ptr<Summing>> ranks;
  std::vector<std::vector<occlComm_t>> further; // by rank
};

TEST_F(AsNeeded, AFurtherCommunicatorTakes16MiBUntilItHasLargerCalls) {
  // All kernels have run, and what processes take once is taken.
  for (const uint64_t count : {kSmall, kMiddle, kLarge})
    runOnAll(comms, count);
  const uint64_t before = bytesTaken();
  makeFurther();
  const double made = takenSince(before);
  for (const uint64_t count : {uint64_t{1}, uint64_t{1000}, kSmall})
    runOnAll(further[0], count);
  const double small = takenSince(before);
  runOnAll(further[0], kMiddle);
  const double middle = takenSince(before);
  runOnAll(further[0], kLarge);
  const double large = takenSince(before);
  std::printf("MiB of a further communicator of %u ranks: made %.1f, small calls %.1f, %llu KiB "
              "%.1f, %llu KiB %.1f\n",
              n(), made, small, static_cast<unsigned long long>(kMiddle >> 8), middle,
              static_cast<unsigned long long>(kLarge >> 8), large);
  EXPECT_LE(made, 16);
  EXPECT_LE(small, 16);
  EXPECT_LE(middle, 64);
  EXPECT_LE(large, 100);
  EXPECT_GE(large, 32) << "nothing was taken later: what is measured?";
  for (const uint64_t count : {uint64_t{1}, kSmall, kMiddle, kLarge, kSmall, kLarge - 3, kMiddle})
    runOnAll(further[0], count);
}

/// CUDA forbids much while a stream is captured in the global mode, by whatever thread.
TEST_F(AsNeeded, TheFirstLargerCallsMayBeCaptured) {
  makeFurther();
  const std::vector<uint64_t> counts = {kMiddle, kSmall, kLarge};
  std::barrier met(static_cast<ptrdiff_t>(n()));
  inThreads([&](uint32_t rank) -> std::string {
    Summing &own = *ranks[rank];
    std::string wrong;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    met.arrive_and_wait();
    if (cudaStreamBeginCapture(own.stream(0), cudaStreamCaptureModeGlobal) != cudaSuccess)
      wrong = "no capture";
    for (const uint64_t count : counts)
      if (wrong.empty())
        wrong = own.call(further[0][rank], count);
    if (cudaStreamEndCapture(own.stream(0), &graph) != cudaSuccess)
      wrong += " the capture is spoilt";
    met.arrive_and_wait();
    if (wrong.empty() && cudaGraphInstantiate(&ready, graph, 0) != cudaSuccess)
      wrong = "no graph";
    for (uint32_t replay = 0; replay < 5 && wrong.empty(); ++replay) {
      if (cudaGraphLaunch(ready, own.stream(0)) != cudaSuccess)
        wrong = "no replay";
      if (wrong.empty())
        wrong = own.check(kLarge);
      if (wrong.empty())
        wrong = own.run(further[0][rank], kMiddle);
    }
    if (ready)
      cudaGraphExecDestroy(ready);
    if (graph)
      cudaGraphDestroy(graph);
    return wrong;
  });
}

/// The first larger calls of two communicators, which half of the ranks make the other way round.
TEST_F(AsNeeded, OrdersOfFirstLargerCallsMayConflict) {
  for (const uint64_t count : {kMiddle, kLarge}) {
    makeFurther();
    makeFurther();
    const size_t first = further.size() - 2;
    inThreads([&](uint32_t rank) -> std::string {
      std::string wrong;
      for (uint32_t i = 0; i < 2 && wrong.empty(); ++i) {
        const uint32_t which = (i + rank) % 2;
        wrong = ranks[rank]->call(further[first + which][rank], count, which);
      }
      for (uint32_t which = 0; which < 2 && wrong.empty(); ++which)
        wrong = ranks[rank]->check(count, which);
      return wrong;
    });
  }
}

/// Others' kernels wait meanwhile on all connections that they may have.
TEST_F(AsNeeded, IsTakenBesideKernelsThatWait) {
  makeFurther();
  runOnAll(comms, kSmall);
  std::barrier met(static_cast<ptrdiff_t>(n()));
  inThreads([&](uint32_t rank) -> std::string {
    std::string wrong;
    // Rank 0 makes the call that the others wait for behind the one that takes memory of them.
    if (rank != 0)
      wrong = ranks[rank]->call(comms[rank], kSmall, 1);
    met.arrive_and_wait();
    if (wrong.empty())
      wrong = ranks[rank]->call(further[0][rank], kLarge, 0);
    if (wrong.empty() && rank == 0)
      wrong = ranks[rank]->call(comms[rank], kSmall, 1);
    if (wrong.empty())
      wrong = ranks[rank]->check(kSmall, 1);
    return wrong.empty() ? ranks[rank]->check(kLarge, 0) : wrong;
  });
}

/// Memory of the first device, all but so much.
class AllBut {
public:
  explicit AllBut(uint64_t left) {
    cudaSetDevice(0);
    for (uint64_t piece = uint64_t{1} << 36; piece >= 2 * kMiB; piece /= 2)
      for (size_t free = freeNow(); free > left + piece; free = freeNow()) {
        void *taken = nullptr;
        if (cudaMalloc(&taken, piece) != cudaSuccess)
          break;
        pieces.push_back(taken);
      }
    (void)cudaGetLastError();
  }
  ~AllBut() {
    for (void *piece : pieces)
      cudaFree(piece);
  }
  AllBut(const AllBut &) = delete;
  AllBut &operator=(const AllBut &) = delete;

private:
  static size_t freeNow() {
    size_t free = 0, all = 0;
    cudaMemGetInfo(&free, &all);
    return free;
  }
  std::vector<void *> pieces;
};

/// Between two ranks on one device one gets its part and the other does not.
TEST_F(AsNeeded, WithoutMemoryOnOneRankAllAreToldAndSmallCallsGoOn) {
  makeFurther();
  runOnAll(further[0], kSmall);
  std::vector<std::string> said(n());
  {
    AllBut taken(50 * kMiB);
    inThreads([&](uint32_t rank) {
      said[rank] = ranks[rank]->call(further[0][rank], kLarge);
      return std::string();
    });
  }
  for (uint32_t r = 0; r < n(); ++r) {
    std::printf("rank %u is told: %s\n", r, said[r].c_str());
    EXPECT_NE(said[r].find(" has not got the "), std::string::npos) << said[r];
    EXPECT_NE(said[r].find("call of rank " + std::to_string(r)), std::string::npos) << said[r];
  }
  runOnAll(further[0], kSmall);
  inThreads([&](uint32_t rank) -> std::string {
    return ranks[rank]->call(further[0][rank], kLarge).empty() ? "it is taken after all" : "";
  });
  runOnAll(further[0], kSmall);
  runOnAll(comms, kLarge);
}

TEST_F(AsNeeded, StartsNoCalls) {
  makeFurther();
  inThreads([&](uint32_t rank) -> std::string {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    occlRequest_t request = 0;
    if (occlStart(further[0][rank], &call, nullptr, nullptr, &request) != occlInvalidArgument)
      return "it starts";
    const std::string why = occlGetLastError();
    return why.find("asNeeded") != std::string::npos ? "" : why;
  });
}

} // namespace
} // namespace occl::gpu_test
