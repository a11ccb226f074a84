// Transfers between processes: in buffers of any memory, and with ranks that are killed.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

/// How many ranks have joined their communicator, for processes that are made after it.
class Joined {
public:
  Joined()
      : count(new (mmap(nullptr, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) std::atomic<uint32_t>(0)) {}
  ~Joined() { munmap(count, sizeof *count); }
  void add() const { count->fetch_add(1); }
  /// In vain, if a rank does not come: the test says so then.
  void await(uint32_t number) const {
    for (auto end = std::chrono::steady_clock::now() + 40s;
         count->load() < number && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
  }

private:
  std::atomic<uint32_t> *count;
};

TEST(TransferProcess, AnyOrderInGroups) {
  constexpr uint32_t kRanks = 4;
  const uint64_t seed = printedSeed();
  inProcesses(kRanks, "transfers", [&](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    for (uint64_t round = 0; round < 20 / kSlowness && wrong.empty(); ++round)
      wrong = TransferGraph(kRanks, 200, 300000, seed + round).run(comm, rank);
    return wrong;
  });
}

/// Sizes of up to 64 MiB.
TEST(TransferProcess, LargeOnes) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  const uint64_t number = numberFrom("OCCL_TEST_TRANSFERS", 100 / kSlowness);
  inProcesses(kRanks, "transfers_large", [&](occlComm_t comm, uint32_t rank) {
    return TransferGraph(kRanks, number, 64 << 20, seed).run(comm, rank);
  });
}

/// More in a group than there are places, rings and numbers of anything.
TEST(TransferProcess, TenThousandInAGroup) {
  constexpr uint32_t kRanks = 2;
  const uint64_t seed = printedSeed();
  inProcesses(kRanks, "transfers_many", [&](occlComm_t comm, uint32_t rank) -> std::string {
    const TransferGraph graph(kRanks, 12000, 2000, seed);
    if (graph.countOf(rank) < 10000)
      return "too few";
    return graph.run(comm, rank);
  });
}

/// From and to memory that all ranks map.
TEST(TransferProcess, BetweenSharedBuffers) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  inProcesses(kRanks, "transfers_shared", [&](occlComm_t comm, uint32_t rank) -> std::string {
    return TransferGraph(kRanks, 100, 3000000, seed).runInHeap(comm, rank);
  });
}

/// Eager data are there though their sender is not.
TEST(TransferProcess, TheSenderMayExit) {
  inProcesses(2, "transfers_exit", [&](occlComm_t comm, uint32_t rank) -> std::string {
    int32_t value = 41, end = 0;
    if (rank == 0) {
      if (occlSend(&value, 1, occlInt32, 1, comm, nullptr) != occlSuccess)
        return lastError("occlSend");
      _exit(0);
    }
    std::this_thread::sleep_for(200ms);
    if (occlRecv(&end, 1, occlInt32, 0, comm, nullptr) != occlSuccess)
      return lastError("occlRecv");
    return end == 41 ? "" : "wrong";
  });
}

/// Rank 1 is killed while the others wait for it: to send, to receive, and in a group.
TEST(TransferProcess, AKilledRankIsNamed) {
  constexpr uint32_t kRanks = 4, kVictim = 1;
  const std::string name = jobName("transfers_killed");
  const Joined joined;
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    std::vector<char> data(1 << 20);
    joined.add();
    if (rank == kVictim) {
      joined.await(kRanks);
      std::this_thread::sleep_for(100ms);
      raise(SIGKILL);
    }
    occlResult_t result = occlSuccess;
    if (rank == 0)
      result = occlRecv(data.data(), 1, occlUint8, kVictim, comm, nullptr);
    if (rank == 2)
      result = occlSend(data.data(), data.size(), occlUint8, kVictim, comm, nullptr);
    if (rank == 3) {
      occlGroupStart();
      occlSend(data.data(), data.size(), occlUint8, kVictim, comm, nullptr);
      occlRecv(data.data(), 3, occlUint8, kVictim, comm, nullptr);
      result = occlGroupEnd();
    }
    const std::string text = occlGetLastError();
    occlCommDestroy(comm);
    if (result != occlPeerFailed || text.find("rank 1 is gone") == std::string::npos ||
        text.find("transfer") == std::string::npos)
      return std::to_string(result) + ": " + text;
    return {};
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0) << "rank " << r;
}

/// Killed at random moments of large transfers: success has the right data, all else ends.
TEST(TransferProcess, KilledInTheMiddle) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  for (uint32_t trial = 0; trial < 8; ++trial) {
    const std::string name = jobName("transfers_middle") + std::to_string(trial);
    const Joined joined;
    Processes processes(kRanks, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
        return lastError("occlCommInitRank");
      std::string wrong;
      joined.add();
      for (uint64_t round = 0; wrong.empty(); ++round)
        wrong = TransferGraph(kRanks, 40, 4000000, seed + round).run(comm, rank);
      return wrong.find("wrong data") == std::string::npos ? "" : wrong;
    });
    joined.await(kRanks);
    std::this_thread::sleep_for(13ms * trial);
    processes.kill(trial % kRanks);
    for (uint32_t r = 0; r < kRanks; ++r)
      EXPECT_EQ(processes.join(r), r == trial % kRanks ? -1 : 0) << "rank " << r;
  }
}

} // namespace
} // namespace occl::communicator::testing
