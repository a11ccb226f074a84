// Collectives in CUDA streams, ranks being processes. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

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

/// "" if the communicator comes to say that the rank is gone.
std::string expectGone(occlComm_t comm, uint32_t rank, const std::string &wrong) {
  for (auto end = std::chrono::steady_clock::now() + 20s;
       *occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  const std::string why = occlCommGetLastError(comm);
  return why.find("the process of rank " + std::to_string(rank) + " is gone") != std::string::npos
             ? ""
             : wrong + "; " + why;
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
    return expectGone(comm, 1, call()); // may be refused, as another rank may have failed already
  };
  Processes processes(processRanks(), joined(processRanks(), jobName(job), body));
  for (uint32_t r = 0; r < processRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

/// The last rank has done its part of a broadcast, which the others call later, and is gone without
/// having destroyed its communicator. That harms nobody, until somebody needs it.
/// Between machines what it has sent may not have left yet.
TEST(InStreamProcesses, ARankThatHasDoneItsPartMayEnd) {
  if (!hasDevice() || areOnMachines())
    GTEST_SKIP() << "no CUDA device, or ranks of several machines";
  const uint32_t root = processRanks() - 1;
  auto body = [&](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    std::string wrong = broadcastAndEnd(comm, rank, onDevice, [&](const occlCall_t &call) {
      return occlCall(comm, &call, onDevice.stream()) == occlSuccess
                 ? onDevice.synchronize()
                 : std::string("broadcast: ") + occlGetLastError();
    });
    if (!wrong.empty())
      return wrong;
    Case needsAll;
    needsAll.plan = plan::testing::twoShotAllReduce(processRanks());
    needsAll.count = 1000;
    return expectGone(comm, root,
                      callInStream(comm, needsAll, onDevice.input(false), onDevice.output(false),
                                   onDevice.stream()));
  };
  Processes processes(processRanks(), joined(processRanks(), jobName("ends"), body));
  expectAllRight(processes, processRanks());
}

TEST(InStreamProcesses, AKilledRankIsNamedInBoundedTime) { killAfter("killed-at-once", 0, 0ms); }
TEST(InStreamProcesses, ARankThatIsKilledLateIsNamed) { killAfter("killed-late", 3, 200ms); }

} // namespace
} // namespace occl::gpu_test
