// What ranks of several islands find out when one of them fails, dies, stops or leaves.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"
#include "test/machines/shared_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

const std::vector<uint32_t> kHosts = {0, 0, 1, 1};
constexpr uint32_t kRanks = 4;

std::string contains(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos ? ""
                                              : "expected '" + std::string(part) + "' in: " + text;
}

/// All-reduces until one fails.
void callUntilFailure(occlComm_t comm, uint64_t count) {
  std::vector<float> input(count, 1), output(count);
  while (occlAllReduce(input.data(), output.data(), count, occlFloat32, occlSum, comm, nullptr) ==
         occlSuccess) {
  }
}

/// As workers of a data loader do: lives on without the rank that has made it, but not for ever.
void startWorker() {
  if (fork() == 0) {
    std::this_thread::sleep_for(20s);
    _exit(0);
  }
}

void expectKilledIsNamed(uint32_t victim, uint64_t count,
                         const std::vector<uint32_t> &hosts = kHosts, bool hasWorker = false) {
  const std::string address = newAddress();
  SharedTimes times; // of the victim: its end; of the others: their call's
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (std::string wrong = joinOn(hosts[rank], comm, kRanks, rank, address); !wrong.empty())
      return wrong;
    if (hasWorker)
      startWorker();
    if (rank == victim)
      std::thread([&] {
        std::this_thread::sleep_for(300ms);
        times.note(victim);
        raise(SIGKILL);
      }).detach();
    callUntilFailure(comm, count);
    times.note(rank);
    const std::string text = occlCommGetLastError(comm);
    occlCommDestroy(comm);
    return contains(text, ("process of rank " + std::to_string(victim) + " is gone").c_str());
  });
  for (uint32_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(processes.join(r), r == victim ? -1 : 0)
        << "rank " << r << ": " << processes.wrong(r);
    EXPECT_LT(times.between(victim, r), kUntilNamed) << "rank " << r;
  }
}

TEST(Failure, KilledRankIsNamedByAll) { expectKilledIsNamed(3, 1000); }
TEST(Failure, KilledRootIsNamedByAll) { expectKilledIsNamed(0, 1000000); }

/// Alone on its machine, so that only its connections tell.
TEST(Failure, KilledRankIsNamedThoughAForkedChildLivesOn) {
  expectKilledIsNamed(3, 1000, {0, 0, 0, 1}, true);
}

TEST(Failure, AbortReachesOtherIslands) {
  onIslands(kHosts, [](occlComm_t comm, uint32_t rank) -> std::string {
    if (rank == 1)
      std::thread([comm] {
        std::this_thread::sleep_for(200ms);
        occlCommAbort(comm);
      }).detach();
    callUntilFailure(comm, 1000);
    return contains(occlCommGetLastError(comm), "occlCommAbort was called on rank 1");
  });
}

TEST(Failure, DeadlineOnOneIslandEndsAll) {
  onIslands(
      kHosts,
      [](occlComm_t comm, uint32_t rank) -> std::string {
        if (rank == 2) { // comes late, when the others have given up
          std::this_thread::sleep_for(1s);
          callUntilFailure(comm, 10);
          return contains(occlCommGetLastError(comm), "did not end on rank");
        }
        callUntilFailure(comm, 10);
        return contains(occlCommGetLastError(comm), "did not end on rank");
      },
      withTimeout(500));
}

/// Sockets and buffers fill up; then all goes on.
TEST(Failure, StoppedProcessIsNoFailure) {
  withARankThatStops(kHosts, 2, 5s, 200, [](occlComm_t comm, uint32_t, uint32_t) {
    return runCollectives(comm, 20000);
  });
}

/// Its neighbours need nothing more of it.
TEST(Failure, LeavingIsNone) {
  onIslands(kHosts, [](occlComm_t comm, uint32_t rank) -> std::string {
    if (std::string wrong = runCollectives(comm, 1000); !wrong.empty())
      return wrong;
    if (rank != 0)
      return "";
    std::this_thread::sleep_for(500ms);
    float one = 1, result = 0;
    if (occlAllReduce(&one, &result, 1, occlFloat32, occlSum, comm, nullptr) != occlPeerFailed)
      return "a call that needs ranks that have left did not fail";
    return contains(occlCommGetLastError(comm), "has destroyed its communicator");
  });
}

/// Of calls in which neither rank waits for the other.
TEST(Failure, MismatchBetweenLeavesIsFound) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<float> buffer(100, 1);
    occlResult_t result = occlSuccess;
    for (uint32_t i = 0; i < 2000 && result == occlSuccess; ++i) { // each is a root
      result = occlBroadcast(buffer.data(), buffer.data(), 100, occlFloat32, rank, comm, nullptr);
      std::this_thread::sleep_for(1ms);
    }
    if (result != occlMismatch)
      return "two roots are no mismatch";
    return contains(occlCommGetLastError(comm), "root 1");
  });
}

} // namespace
} // namespace occl::communicator::testing
