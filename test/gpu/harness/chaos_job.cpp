#include "test/gpu/harness/chaos_job.h"

#include "plan/testing/example_plans.h"
#include "test/gpu/harness/device_job.h"

#include <cuda_runtime.h>

#include <array>
#include <vector>

namespace occl::gpu_test {

namespace {

constexpr uint32_t kCollectives = 8;
constexpr std::array<uint64_t, kCollectives> kBytes = {256,      1 << 10,   4 << 10,   16 << 10,
                                                       64 << 10, 256 << 10, 512 << 10, 1 << 20};
/// After so many iterations results are compared.
constexpr uint32_t kPeriod = 20;

/// Small whole numbers: sums are exact in any order.
float inputOf(uint32_t collective, uint32_t rank, uint64_t element) {
  return static_cast<float>((3 * collective + 7 * rank + element) % 101);
}

Case collectiveFor(uint32_t c, uint32_t numRanks) {
  using namespace plan::testing;
  Case what;
  what.id = 100 + c;
  what.plan = c % 3 == 0   ? twoShotAllReduce(numRanks)
              : c % 3 == 1 ? ringAllReduce(numRanks)
                           : oneShotAllReduce(numRanks);
  what.count = kBytes[c] / sizeof(float);
  return what;
}

class Chaos {
public:
  Chaos(occlComm_t comm, const ChaosOptions &options) : comm(comm), options(options) {}
  ~Chaos() {
    for (float *buffer : inputs)
      cudaFree(buffer);
    for (float *buffer : outputs)
      cudaFree(buffer);
  }
  Chaos(const Chaos &) = delete;
  Chaos &operator=(const Chaos &) = delete;

  std::string prepare() {
    for (uint32_t c = 0; c < kCollectives; ++c) {
      if (cudaMalloc(reinterpret_cast<void **>(&inputs[c]), kBytes[c]) != cudaSuccess ||
          cudaMalloc(reinterpret_cast<void **>(&outputs[c]), kBytes[c]) != cudaSuccess)
        return "cudaMalloc";
      std::vector<float> input(kBytes[c] / sizeof(float));
      for (uint64_t e = 0; e < input.size(); ++e)
        input[e] = inputOf(c, options.rank, e);
      if (cudaMemcpy(inputs[c], input.data(), kBytes[c], cudaMemcpyHostToDevice) != cudaSuccess)
        return "cudaMemcpy";
    }
    for (uint32_t i = 0; i < kCollectives; ++i) // also registered in another order
      remember(comm, collectiveFor((i + options.rank) % kCollectives, options.numRanks));
    return "";
  }

  /// Rank r begins at the r-th, a place further in each iteration.
  std::string iterate(uint32_t iteration) {
    std::array<occlRequest_t, kCollectives> requests;
    for (uint32_t i = 0; i < kCollectives; ++i) {
      const uint32_t c = (i + options.rank + iteration) % kCollectives;
      if (startKnown(comm, 100 + c, inputs[c], outputs[c], nullptr, nullptr, &requests[c]) !=
          occlSuccess)
        return std::string("occlStart: ") + occlGetLastError();
      if (iteration < options.synchronised && !disturb())
        return "the device does not become idle";
    }
    for (uint32_t c = 0; c < kCollectives; ++c)
      if (occlWait(comm, requests[c]) != occlSuccess)
        return std::string("occlWait: ") + occlGetLastError();
    return iteration % kPeriod == kPeriod - 1 ? compare() : "";
  }

private:
  /// Everything that waits for all kernels of the device.
  bool disturb() const {
    if (options.rank % 2 == 0)
      return cudaDeviceSynchronize() == cudaSuccess;
    void *memory = nullptr;
    return cudaMalloc(&memory, 1 << 20) == cudaSuccess && cudaFree(memory) == cudaSuccess;
  }

  std::string compare() {
    for (uint32_t c = 0; c < kCollectives; ++c) {
      std::vector<float> output(kBytes[c] / sizeof(float));
      if (cudaMemcpy(output.data(), outputs[c], kBytes[c], cudaMemcpyDeviceToHost) != cudaSuccess)
        return "cudaMemcpy";
      for (uint64_t e = 0; e < output.size(); ++e) {
        float expected = 0;
        for (uint32_t r = 0; r < options.numRanks; ++r)
          expected += inputOf(c, r, e);
        if (output[e] != expected)
          return "element " + std::to_string(e) + " of collective " + std::to_string(c) + " is " +
                 std::to_string(output[e]) + ", not " + std::to_string(expected);
      }
      if (cudaMemset(outputs[c], 0xff, kBytes[c]) != cudaSuccess ||
          cudaDeviceSynchronize() != cudaSuccess)
        return "cudaMemset";
    }
    return "";
  }

  occlComm_t comm;
  const ChaosOptions options;
  std::array<float *, kCollectives> inputs{}, outputs{};
};

} // namespace

std::string runChaos(occlComm_t comm, const ChaosOptions &options) {
  Chaos chaos(comm, options);
  std::string wrong = chaos.prepare();
  for (uint32_t i = 0; i < options.iterations && wrong.empty(); ++i)
    wrong = chaos.iterate(i);
  return wrong.empty() ? "" : "rank " + std::to_string(options.rank) + ": " + wrong;
}

} // namespace occl::gpu_test
