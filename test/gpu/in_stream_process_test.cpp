// Collectives in CUDA streams, ranks being processes. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "runtime/communicator/testing/processes.h"
#include "test/gpu/device_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace occl::gpu_test {
namespace {

using communicator::testing::jobName;
using communicator::testing::Processes;
using namespace std::chrono_literals;

uint32_t numRanks() {
  const char *given = std::getenv("OCCL_TEST_RANKS");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 2;
}

/// This process must not use CUDA before it has divided.
bool hasDevice() { return std::filesystem::exists("/dev/nvidia0"); }

/// body(comm, rank) in processes that have joined a communicator.
std::function<std::string(uint32_t)>
joined(const std::string &name, const std::function<std::string(occlComm_t, uint32_t)> &body) {
  return [=](uint32_t rank) -> std::string {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      return "no CUDA device";
    occlConfig_t config = smallConfig();
    config.device = rank % static_cast<uint32_t>(devices);
    cudaSetDevice(static_cast<int>(config.device));
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, numRanks(), rank, name.c_str(), &config) != occlSuccess)
      return std::string("occlCommInitRank: ") + occlGetLastError();
    std::string wrong = body(comm, rank);
    occlCommDestroy(comm);
    return wrong;
  };
}

TEST(InStreamProcesses, AllCollectivesTypesAndOperationsAreRight) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  std::vector<Case> cases = casesFor(numRanks());
  Processes processes(
      numRanks(), joined(jobName("in-stream"), [&](occlComm_t comm, uint32_t rank) -> std::string {
        RankOnDevice onDevice(comm, rank);
        for (const Case &what : cases)
          if (std::string wrong = onDevice.run(what, [] {}); !wrong.empty())
            return wrong;
        return "";
      }));
  for (uint32_t r = 0; r < numRanks(); ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

TEST(InStreamProcesses, AKilledRankIsNamedInBoundedTime) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  Processes processes(
      numRanks(),
      joined(jobName("in-stream-kill"), [&](occlComm_t comm, uint32_t rank) -> std::string {
        RankOnDevice onDevice(comm, rank);
        Case what;
        what.plan = plan::testing::twoShotAllReduce(numRanks());
        what.count = 1000;
        if (registerCase(comm, what) != occlSuccess)
          return occlGetLastError();
        if (rank == 1)
          raise(SIGKILL);
        if (occlEnqueue(comm, what.id, onDevice.input(false), onDevice.output(false),
                        onDevice.stream()) != occlSuccess)
          return std::string(occlGetLastError()).find("rank 1 is gone") != std::string::npos
                     ? ""
                     : occlGetLastError();
        std::string wrong = onDevice.synchronize();
        for (auto end = std::chrono::steady_clock::now() + 10s;
             wrong.empty() && *occlCommGetLastError(comm) == 0 &&
             std::chrono::steady_clock::now() < end;)
          std::this_thread::sleep_for(1ms);
        if (std::string(occlCommGetLastError(comm)).find("rank 1 is gone") == std::string::npos)
          return wrong + "; " + occlCommGetLastError(comm);
        return wrong;
      }));
  for (uint32_t r = 0; r < numRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace
} // namespace occl::gpu_test
