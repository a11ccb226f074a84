// Partitioned transfers on devices between processes. Skipped where there is no device.
#include "test/gpu/harness/processes_on_devices.h"
#include "test/gpu/partitioned/ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace occl::gpu_test {
namespace {

occlConfig_t partsConfig() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 64 << 20;
  config.timeoutMs = 60000;
  return config;
}

TEST(PartsInProcesses, ARingIsRight) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  const auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    std::string wrong;
    for (const RingShape &shape :
         {RingShape{33, 17, 33 * 17 * 64}, RingShape{4, 4, 4 << 20}, RingShape{8, 2, 8000, 3}}) {
      Ring ring(comm, rank, processRanks(), shape);
      for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
        ring.start(stream);
        ring.produce(stream, epoch, epoch % 2 == 0 ? Marker::Warp : Marker::Block);
        ring.waitAndCheck(stream, epoch);
      }
      if (wrong.empty())
        wrong = ring.finish(stream);
      ring.free();
      if (wrong.empty())
        wrong = ring.wrong();
    }
    cudaStreamDestroy(stream);
    return wrong;
  };
  Processes processes(processRanks(),
                      joined(processRanks(), jobName("parts"), body, partsConfig()));
  expectAllRight(processes, processRanks());
}

/// Marks of streams behind what the host has waited for: a copy engine stores them.
TEST(PartsInProcesses, CopiesAreRight) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  const auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Ring ring(comm, rank, processRanks(), {4, 3, 12 << 20});
    for (uint64_t epoch = 1; epoch <= 10; ++epoch) {
      ring.start(stream);
      ring.expect(occlPprepareOn(ring.send, stream), "occlPprepareOn");
      ring.expect(cudaStreamSynchronize(stream), "the stream");
      ring.expect(launchFill(stream, ring.out(), ring.ownKey(epoch)), "filling");
      for (int64_t p = 0; p < 4; ++p)
        ring.expect(occlPreadyOn(ring.send, p, p, stream), "occlPreadyOn");
      ring.waitAndCheck(stream, epoch);
    }
    const std::string wrong = ring.finish(stream);
    ring.free();
    cudaStreamDestroy(stream);
    return wrong.empty() ? ring.wrong() : wrong;
  };
  Processes processes(processRanks(),
                      joined(processRanks(), jobName("copies"), body, partsConfig()));
  expectAllRight(processes, processRanks());
}

/// The last rank kills itself between its start and its marks, in a stream and in a kernel.
TEST(PartsInProcesses, AKilledPeerIsNamed) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  const uint32_t last = processRanks() - 1;
  for (const bool inKernel : {false, true}) {
    const auto body = [=](occlComm_t comm, uint32_t rank) -> std::string {
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      Ring ring(comm, rank, processRanks(), {2, 2, 4096});
      ring.start(stream);
      if (rank == last) {
        cudaStreamSynchronize(stream);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        raise(SIGKILL);
      }
      if (inKernel)
        ring.expect(launchConsume(stream, ring.handle(ring.receive), ring.in(), 0, 30'000'000'000,
                                  ring.different),
                    "launching");
      else
        ring.expect(occlPwaitOn(ring.receive, stream), "occlPwaitOn");
      const std::string wrong = ring.wrong();
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      // Of a longer ring the others wait for ranks that live, and hear of it from rank 0.
      while (*occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::string why = occlCommGetLastError(comm);
      cudaStreamSynchronize(stream);
      if (!wrong.empty())
        return wrong;
      return why.find("the process of rank " + std::to_string(last) + " is gone") !=
                     std::string::npos
                 ? ""
                 : "not named: " + why;
    };
    Processes processes(processRanks(),
                        joined(processRanks(), jobName(inKernel ? "parts-kernel" : "parts-killed"),
                               body, partsConfig()));
    for (uint32_t r = 0; r < last; ++r)
      EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
    processes.join(last);
  }
}

} // namespace
} // namespace occl::gpu_test
