// Collectives submitted to the resident daemons of CUDA devices, ranks being processes. Skipped
// where there is no device. Processes that share a GPU take turns on it: four ranks on two GPUs
// take 58 s on H200s, 33 of them the first test, where two ranks take 12.
#include "plan/testing/example_plans.h"
#include "test/faults/shared_record.h"
#include "test/gpu/harness/chaos_job.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using communicator::testing::InSharedMemory;

Case twoShot(uint64_t id) {
  Case what;
  what.id = id;
  what.plan = plan::testing::twoShotAllReduce(processRanks());
  what.count = 1000;
  what.way = Way::Submitted;
  return what;
}

TEST(ResidentProcesses, AllCollectivesTypesAndOperationsAreRight) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  std::vector<Case> cases = submittedCasesFor(processRanks());
  Processes processes(processRanks(), joined(processRanks(), jobName("resident"),
                                             [&](occlComm_t comm, uint32_t rank) -> std::string {
                                               RankOnDevice onDevice(comm, rank);
                                               for (const Case &what : cases)
                                                 if (std::string wrong = onDevice.run(what, [] {});
                                                     !wrong.empty())
                                                   return wrong;
                                               return "";
                                             }));
  expectAllRight(processes, processRanks());
}

TEST(ResidentProcesses, ConflictingOrdersWithSynchronisationComplete) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  Processes processes(
      processRanks(),
      joined(processRanks(), jobName("resident-chaos"), [&](occlComm_t comm, uint32_t rank) {
        return runChaos(comm, {processRanks(), rank, 200, 20});
      }));
  expectAllRight(processes, processRanks());
}

/// Rank 1 aborts the one, in which rank 0 waits for it; the other one goes on.
std::string runBoth(occlComm_t well, occlComm_t ill, uint32_t rank) {
  RankOnDevice onDevice(well, rank);
  remember(ill, twoShot(5));
  occlRequest_t stuck = 0;
  if (rank == 0 && startKnown(ill, 5, onDevice.input(false), onDevice.output(false), nullptr,
                              nullptr, &stuck) != occlSuccess)
    return occlGetLastError();
  if (std::string wrong = onDevice.run(twoShot(1), [] {}); !wrong.empty())
    return wrong;
  if (rank == 1)
    occlCommAbort(ill);
  if (rank == 0 && occlWait(ill, stuck) != occlAborted)
    return std::string("not aborted: ") + occlGetLastError();
  return onDevice.run(twoShot(2), [] {});
}

/// They share the daemon of the process and device.
TEST(ResidentProcesses, AFailedCommunicatorLeavesTheOthersAlone) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  std::string name = jobName("resident-two");
  Processes processes(
      processRanks(), joined(processRanks(), name + "-a", [&](occlComm_t well, uint32_t rank) {
        return joined(processRanks(), name + "-b",
                      [&](occlComm_t ill, uint32_t) { return runBoth(well, ill, rank); })(rank);
      }));
  expectAllRight(processes, processRanks());
}

/// Of the ranks but the one that calls: that they have started, whatever their start took.
void awaitStarts(const std::atomic<uint32_t> &started) {
  while (started.load() + 1 < processRanks())
    std::this_thread::sleep_for(1ms);
}

TEST(ResidentProcesses, AKilledRankIsNamedInBoundedTime) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  InSharedMemory<std::atomic<uint32_t>> started;
  Processes processes(
      processRanks(),
      joined(processRanks(), jobName("resident-kill"),
             [&](occlComm_t comm, uint32_t rank) -> std::string {
               RankOnDevice onDevice(comm, rank);
               remember(comm, twoShot(1));
               if (rank == 1) {
                 awaitStarts(*started.get());
                 std::this_thread::sleep_for(200ms); // the others wait for it
                 raise(SIGKILL);
               }
               occlRequest_t request = 0;
               if (startKnown(comm, 1, onDevice.input(false), onDevice.output(false), nullptr,
                              nullptr, &request) != occlSuccess)
                 return occlGetLastError();
               ++*started.get();
               auto begin = std::chrono::steady_clock::now();
               occlResult_t result = occlWait(comm, request);
               std::string text = occlCommGetLastError(comm);
               bool isRight = result == occlPeerFailed &&
                              text.find("the process of rank 1 is gone") != std::string::npos &&
                              text.find("waits for rank 1 (") != std::string::npos &&
                              text.find(", invocation 0, thread block ") != std::string::npos &&
                              std::chrono::steady_clock::now() - begin < 5s;
               return isRight ? "" : "not PeerFailed: " + text;
             }));
  for (uint32_t r = 0; r < processRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

/// The last rank has done its part of a broadcast, which the others start later, and is gone
/// without having destroyed its communicator. That harms nobody.
TEST(ResidentProcesses, ARankThatHasDoneItsPartMayEnd) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    return broadcastAndEnd(comm, rank, onDevice, [&](occlCall_t call) {
      call.id = 3;
      occlRequest_t request = 0;
      occlResult_t result = occlStart(comm, &call, nullptr, nullptr, &request);
      if (result == occlSuccess)
        result = occlWait(comm, request);
      return std::string(result == occlSuccess ? "" : "it has failed");
    });
  };
  Processes processes(processRanks(), joined(processRanks(), jobName("resident-ends"), body));
  expectAllRight(processes, processRanks());
}

/// The streams of the others are held when it dies: they go on, with an error, also what stands
/// behind in them; what is submitted afterwards is refused.
TEST(ResidentProcesses, AKilledRankLetsGoTheStreamsThatAreHeld) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  InSharedMemory<std::atomic<uint32_t>> started;
  auto body = [&](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    for (uint64_t id : {1, 2})
      remember(comm, twoShot(id));
    if (rank == 1) {
      awaitStarts(*started.get());
      std::this_thread::sleep_for(300ms); // the others wait for it
      raise(SIGKILL);
    }
    cudaStream_t streams[2] = {onDevice.stream(), nullptr};
    cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking);
    auto submit = [&](uint64_t id) {
      return startInStream(comm, id, onDevice.input(false), onDevice.output(false) + id * 8192,
                           streams[id - 1], nullptr, nullptr, nullptr);
    };
    for (uint64_t id : {1, 2, 1}) {
      if (submit(id) != occlSuccess)
        return std::string("in the stream: ") + occlGetLastError();
      cudaMemsetAsync(onDevice.output(false) + (1 << 19), 1, 4, streams[id - 1]);
    }
    ++*started.get();
    auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(100ms);
    if (cudaStreamQuery(streams[0]) != cudaErrorNotReady)
      return "the stream is not held";
    for (cudaStream_t stream : streams)
      while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (std::chrono::steady_clock::now() - begin > 8s)
          return "a stream is held for ever";
    std::string text = occlCommGetLastError(comm);
    if (text.find("the process of rank 1 is gone") == std::string::npos)
      return "another failure: " + text;
    return submit(1) == occlPeerFailed ? "" : "not refused";
  };
  Processes processes(processRanks(), joined(processRanks(), jobName("streamed-kill"), body));
  for (uint32_t r = 0; r < processRanks(); ++r)
    EXPECT_EQ(processes.join(r), r == 1 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace
} // namespace occl::gpu_test
