// Partitioned transfers between processes: in buffers of any memory, and with ranks that are
// killed.
#include "runtime/api/testing/partitioned_graph.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <csignal>
#include <initializer_list>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::communicator::testing {
namespace {

TEST(PartitionedProcess, RandomOnes) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  inProcesses(kRanks, "partitioned", [&](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    for (uint64_t round = 0; round < 8 / kSlowness + 1 && wrong.empty(); ++round)
      wrong = PartitionedGraph(kRanks, 12, 400000, seed + round).run(comm, rank, 4, nullptr);
    return wrong;
  });
}

TEST(PartitionedProcess, LargeOnes) {
  const uint64_t seed = printedSeed();
  inProcesses(2, "partitioned_large", [&](occlComm_t comm, uint32_t rank) {
    return PartitionedGraph(2, 6, 16 << 20, seed).run(comm, rank, 3, nullptr);
  });
}

/// From and to memory that all ranks map.
TEST(PartitionedProcess, BetweenSharedBuffers) {
  const uint64_t seed = printedSeed();
  inProcesses(2, "partitioned_shared", [&](occlComm_t comm, uint32_t rank) {
    const PartitionedGraph::Memory memory = PartitionedGraph::ofHeap(comm);
    std::string wrong;
    for (uint64_t round = 0; round < 4 && wrong.empty(); ++round)
      wrong = PartitionedGraph(2, 12, 400000, seed + round).run(comm, rank, 3, &memory);
    return wrong;
  });
}

/// "" if the text has all the parts.
std::string missingIn(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    if (text.find(part) == std::string::npos)
      return "no '" + std::string(part) + "' in: " + text;
  return {};
}

/// The sender is killed with a part of its marks made; the receiver while the sender waits for it.
TEST(PartitionedProcess, AKilledRankIsNamed) {
  for (uint32_t victim : {0, 1}) {
    const std::string name = jobName(victim == 0 ? "part_killed0" : "part_killed1");
    Processes processes(2, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (occlCommInitRank(&comm, 2, rank, name.c_str(), nullptr) != occlSuccess)
        return lastError("occlCommInitRank");
      std::vector<int32_t> values(12);
      occlPart_t part = nullptr;
      if ((rank == 0 ? occlPsendInit(comm, values.data(), 4, 3, occlInt32, 1, 2, nullptr, &part)
                     : occlPrecvInit(comm, values.data(), 3, 4, occlInt32, 0, 2, nullptr, &part)) !=
          occlSuccess)
        return lastError("init");
      if (rank == 1 && victim == 1) { // it has told of its receive, and does not start it
        raise(SIGKILL);
      }
      if (occlPstart(part) != occlSuccess)
        return lastError("start");
      if (rank == 0 && victim == 0) {
        if (occlPprepare(part) != occlSuccess || occlPready(part, 0) != occlSuccess)
          return lastError("ready");
        raise(SIGKILL);
      }
      if (rank == 0 && occlPreadyRange(part, 0, 3) != occlSuccess)
        return lastError("ready");
      const occlResult_t result = occlPwait(part);
      const std::string text = occlGetLastError();
      occlCommDestroy(comm);
      if (result != occlPeerFailed)
        return "result " + std::to_string(result) + ": " + text;
      return victim == 0 ? missingIn(text, {"rank 0", "partitioned receive from rank 0 to rank 1",
                                            "tag 2, epoch 1"})
                         : missingIn(text, {"the process of rank 1 is gone", "tag 2, epoch 1",
                                            "partitioned send from rank 0 to rank 1"});
    });
    EXPECT_EQ(processes.join(victim), -1);
    EXPECT_EQ(processes.join(1 - victim), 0) << processes.wrong(1 - victim);
  }
}

/// Epochs that ended before count, whoever is killed then.
TEST(PartitionedProcess, TheSenderMayExitWhenItsEpochIsOver) {
  inProcesses(2, "part_exit", [&](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<int32_t> values = numbersFrom(rank == 0 ? 5 : -50, 12);
    occlPart_t part = nullptr;
    if ((rank == 0 ? occlPsendInit(comm, values.data(), 4, 3, occlInt32, 1, 2, nullptr, &part)
                   : occlPrecvInit(comm, values.data(), 3, 4, occlInt32, 0, 2, nullptr, &part)) !=
            occlSuccess ||
        occlPstart(part) != occlSuccess)
      return lastError("start");
    if (rank == 0 && occlPreadyRange(part, 0, 3) != occlSuccess)
      return lastError("ready");
    if (occlPwait(part) != occlSuccess)
      return lastError("wait");
    if (rank == 0)
      _exit(0);
    return values == numbersFrom(5, 12) ? "" : "wrong data";
  });
}

/// In a child nothing can be done with the parent's requests.
TEST(PartitionedProcess, Fork) {
  Pair pair(2, 2, 2);
  pair.start();
  const pid_t child = fork();
  if (child == 0) {
    const bool isRefused = occlPready(pair.send, 0) == occlInvalidArgument &&
                           occlPwait(pair.send) == occlInvalidArgument &&
                           occlPfree(pair.send) == occlInvalidArgument;
    _exit(isRefused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(occlPreadyRange(pair.send, 0, 1), occlSuccess);
  pair.wait();
}

} // namespace
} // namespace occl::communicator::testing
