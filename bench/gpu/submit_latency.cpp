// submit_latency [ranks]: what a collective takes on CUDA devices, with ranks that are threads, on
// as many devices as there are; several on one if need be. From host to host: occlRun, and
// occlSubmitOnStream and occlEnqueue with a wait for the stream; then of many in a stream, each.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/occl.h"
#include "runtime/communicator/testing/harness.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kWarmUp = 200, kMeasured = 2000;
constexpr uint32_t kInRow = 100; // of a stream, less than a daemon takes at once
constexpr uint64_t kLargest = 4 << 20;

void require(bool isRight, const char *what) {
  if (isRight)
    return;
  std::printf("FAILED: %s: %s\n", what, occlGetLastError());
  std::fflush(stdout);
  std::_Exit(1); // other threads are still at it
}

class Rank {
public:
  Rank(occlComm_t comm, int device) : comm(comm), device(device) {
    require(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
    for (char **buffer : {&input, &output})
      require(cudaMalloc(reinterpret_cast<void **>(buffer), kLargest) == cudaSuccess, "cudaMalloc");
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess,
            "cudaStreamCreateWithFlags");
    require(cudaMemset(input, 0, kLargest) == cudaSuccess, "cudaMemset");
    require(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
  }

  /// Microseconds: medians.
  struct Times {
    double run = 0, streamed = 0, enqueued = 0, streamedInRow = 0, enqueuedInRow = 0;
  };
  Times measure(uint64_t id) {
    require(cudaSetDevice(device) == cudaSuccess, "cudaSetDevice");
    auto streamed = [&] {
      require(occlSubmitOnStream(comm, id, input, output, stream, nullptr, nullptr, nullptr) ==
                  occlSuccess,
              "occlSubmitOnStream");
    };
    auto enqueued = [&] {
      require(occlEnqueue(comm, id, input, output, stream) == occlSuccess, "occlEnqueue");
    };
    auto run = [&] { require(occlRun(comm, id, input, output) == occlSuccess, "occlRun"); };
    return {median(run, 1, kMeasured), median(streamed, 1, kMeasured),
            median(enqueued, 1, kMeasured), median(streamed, kInRow, kMeasured / kInRow),
            median(enqueued, kInRow, kMeasured / kInRow)};
  }

  occlComm_t comm;

private:
  /// Of `times` times `number` of them, until the stream is empty; of each.
  template <class Do> double median(const Do &invoke, uint32_t number, uint32_t times) {
    std::vector<double> each;
    for (uint32_t i = 0; i < kWarmUp / number + times; ++i) {
      auto begin = Clock::now();
      for (uint32_t n = 0; n < number; ++n)
        invoke();
      require(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
      std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (i >= kWarmUp / number)
        each.push_back(took.count() / number);
    }
    std::ranges::nth_element(each, each.begin() + static_cast<ptrdiff_t>(each.size() / 2));
    return each[each.size() / 2];
  }

  const int device;
  cudaStream_t stream = nullptr;
  char *input = nullptr, *output = nullptr;
};

void registerOn(occlComm_t comm, uint64_t id, const occl::plan::Plan &plan, uint64_t bytes) {
  auto handle = occl::communicator::testing::handleOf(plan);
  occlPlan_t given = handle.get();
  occlCollective_t collective = OCCL_COLLECTIVE_INITIALIZER;
  collective.id = id;
  collective.plans = &given;
  collective.numPlans = 1;
  collective.count = bytes / sizeof(float);
  require(occlRegister(comm, &collective) == occlSuccess, "occlRegister");
}

} // namespace

int main(int argc, char **argv) {
  using namespace occl::plan::testing;
  const auto numRanks =
      argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : uint32_t(2);
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, "no CUDA device");
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.workers = 4;
  std::vector<occlComm_t> comms(numRanks);
  require(occlCommInitAll(comms.data(), numRanks, &config) == occlSuccess, "occlCommInitAll");
  std::vector<Rank> ranks;
  for (uint32_t r = 0; r < numRanks; ++r)
    ranks.emplace_back(comms[r], static_cast<int>(r) % devices);
  uint64_t id = 0;
  for (uint64_t bytes :
       {1ull << 10, 16ull << 10, 64ull << 10, 256ull << 10, 1ull << 20, 4ull << 20})
    for (auto [name, protocol] : {std::pair("Simple", occl::plan::Protocol::Simple),
                                  std::pair("LL", occl::plan::Protocol::LL)}) {
      if (protocol == occl::plan::Protocol::LL && bytes > 256 << 10)
        continue;
      occl::plan::Plan plan =
          bytes <= 16 << 10 ? oneShotAllReduce(numRanks) : twoShotAllReduce(numRanks);
      plan.protocol = protocol;
      ++id;
      for (Rank &rank : ranks)
        registerOn(rank.comm, id, plan, bytes);
      std::vector<Rank::Times> times(numRanks);
      std::vector<std::thread> threads;
      for (uint32_t r = 0; r < numRanks; ++r)
        threads.emplace_back([&, r] { times[r] = ranks[r].measure(id); });
      for (std::thread &thread : threads)
        thread.join();
      const Rank::Times &took = times[0];
      std::printf("%u ranks, %llu bytes, %s, %s: occlRun %.1f us, occlSubmitOnStream %.1f, "
                  "occlEnqueue %.1f; in a row %.1f, %.1f\n",
                  numRanks, static_cast<unsigned long long>(bytes), plan.name.c_str(), name,
                  took.run, took.streamed, took.enqueued, took.streamedInRow, took.enqueuedInRow);
      std::fflush(stdout);
    }
  for (occlComm_t comm : comms)
    require(occlCommDestroy(comm) == occlSuccess, "occlCommDestroy");
}
