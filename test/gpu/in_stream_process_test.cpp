// Collectives in CUDA streams, ranks being processes. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/processes_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

void runAll(const char *name, const std::vector<Case> &cases) {
  auto body = [&](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    for (const Case &what : cases)
      if (std::string wrong = onDevice.run(what, [] {}); !wrong.empty())
        return wrong;
    return "";
  };
  Processes processes(processRanks(), joined(processRanks(), jobName(name), body));
  expectAllRight(processes, processRanks());
}

TEST(InStreamProcesses, AllCollectivesAreRight) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  runAll("in-stream", casesFor(processRanks()));
}

TEST(InStreamProcesses, WhoWaitsFindsEverythingThere) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  std::vector<Case> cases = awaitedCasesFor(processRanks());
  for (const Case &what : calledCasesFor(processRanks()))
    cases.push_back(what);
  runAll("awaited", cases);
}

using Body = std::function<std::string(occlComm_t, const Case &, RankOnDevice &, uint32_t rank)>;

/// With an all-reduce that is registered; rank 1 kills itself.
void inRanksOfWhichOneDies(const char *job, const Body &body) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  auto registered = [&](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    Case what;
    what.plan = plan::testing::twoShotAllReduce(processRanks());
    what.count = 1000;
    return registerCase(comm, what) == occlSuccess ? body(comm, what, onDevice, rank)
                                                   : occlGetLastError();
  };
  Processes processes(processRanks(), joined(processRanks(), jobName(job), registered));
  for (uint32_t r = 0; r < processRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

TEST(InStreamProcesses, WhoWaitsForAKilledRankHearsOfIt) {
  inRanksOfWhichOneDies(
      "awaited-kill",
      [](occlComm_t comm, const Case &what, RankOnDevice &onDevice, uint32_t rank) -> std::string {
        for (uint32_t i = 0;; ++i) {
          if (rank == 1 && i == 3)
            raise(SIGKILL);
          occlResult_t result = occlEnqueueAndWait(comm, what.id, onDevice.input(false),
                                                   onDevice.output(false), onDevice.stream());
          if (result == occlSuccess && i < 3)
            continue;
          std::string why = occlGetLastError();
          bool isRight =
              i == 3 && result == occlPeerFailed && why.find("rank 1 is gone") != std::string::npos;
          return isRight ? onDevice.synchronize()
                         : "call " + std::to_string(i) + ": " + std::to_string(result) + ", " + why;
        }
      });
}

TEST(InStreamProcesses, AKilledRankIsNamedInBoundedTime) {
  inRanksOfWhichOneDies(
      "in-stream-kill",
      [](occlComm_t comm, const Case &what, RankOnDevice &onDevice, uint32_t rank) -> std::string {
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
      });
}

} // namespace
} // namespace occl::gpu_test
