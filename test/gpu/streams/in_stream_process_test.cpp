// Collectives in CUDA streams, ranks being processes. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"

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

/// Rank 1 makes some calls and kills itself, at once or while the others wait for it.
void killAfter(const char *job, uint32_t calls, std::chrono::milliseconds late) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  auto body = [&](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    Case what;
    what.plan = plan::testing::twoShotAllReduce(processRanks());
    what.count = 1000;
    const auto call = [&] {
      std::string wrong = callInStream(comm, what, onDevice.input(false), onDevice.output(false),
                                       onDevice.stream());
      return wrong.empty() ? onDevice.synchronize() : wrong;
    };
    for (uint32_t i = 0; i < calls; ++i)
      if (std::string wrong = call(); !wrong.empty())
        return "call " + std::to_string(i) + ": " + wrong;
    if (rank == 1) {
      std::this_thread::sleep_for(late);
      raise(SIGKILL);
    }
    // May be refused: who is faster sees that rank 1 is gone.
    std::string wrong = call();
    for (auto end = std::chrono::steady_clock::now() + 20s;
         *occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    const std::string why = occlCommGetLastError(comm);
    return why.find("rank 1 is gone") != std::string::npos ? "" : wrong + "; " + why;
  };
  Processes processes(processRanks(), joined(processRanks(), jobName(job), body));
  for (uint32_t r = 0; r < processRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

TEST(InStreamProcesses, AKilledRankIsNamedInBoundedTime) { killAfter("killed-at-once", 0, 0ms); }
TEST(InStreamProcesses, ARankThatIsKilledLateIsNamed) { killAfter("killed-late", 3, 200ms); }

} // namespace
} // namespace occl::gpu_test
