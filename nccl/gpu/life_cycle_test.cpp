// Communicators on devices: made, divided, aborted, finalized; what fails, and what is refused.
#include "nccl/abi/later.h"
#include "nccl/gpu/device_ranks.h"
#include "nccl/testing/ranks.h"

#include <chrono>
#include <thread>

namespace occl::nccl::testing {
namespace {

using namespace std::chrono_literals;

class LifeCycle : public OnDevice {
protected:
  Rank &at(int rank) { return ranks[static_cast<size_t>(rank)]; }
  void makeAllInAGroup() {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < size(); ++r)
      ASSERT_EQ(ncclCommInitRank(&at(r).comm, size(), id, r), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
  }
  void destroyAll() {
    for (Rank &rank : ranks)
      EXPECT_EQ(ncclCommDestroy(std::exchange(rank.comm, nullptr)), ncclSuccess) << lastError();
  }
};

TEST_F(LifeCycle, ACommunicatorSaysItsSizeRankAndDevice) {
  for (int r = 0; r < size(); ++r) {
    int count = -1, rank = -1, device = -1;
    EXPECT_EQ(ncclCommCount(at(r).comm, &count), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(at(r).comm, &rank), ncclSuccess);
    EXPECT_EQ(ncclCommCuDevice(at(r).comm, &device), ncclSuccess);
    EXPECT_EQ(count, size());
    EXPECT_EQ(rank, r);
    EXPECT_EQ(device, 0);
  }
  int present = 0;
  ASSERT_EQ(cudaGetDeviceCount(&present), cudaSuccess);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitAll(&comm, 1, &present), ncclInvalidArgument);
  expectSums();
}

/// Ranks of an id, of which each thread gives the device that is current; and without blocking.
TEST_F(LifeCycle, RanksOfAnIdWithAndWithoutBlocking) {
  for (int blocking : {1, 0}) {
    destroyAll();
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    inThreads([&](int rank) -> std::string {
      ncclConfig_t config = kNcclConfigInitializer;
      config.blocking = blocking;
      std::string wrong = check("ncclCommInitRankConfig",
                                ncclCommInitRankConfig(&at(rank).comm, size(), id, rank, &config));
      ncclResult_t state = ncclInternalError;
      if (wrong.empty())
        wrong = check("ncclCommGetAsyncError", ncclCommGetAsyncError(at(rank).comm, &state));
      return wrong.empty() ? check("asynchronously", state) : wrong;
    });
    expectSums();
  }
}

/// Those before may not have come together when they are destroyed: nothing of them is freed while
/// kernels of the next ones wait for each other.
TEST_F(LifeCycle, OneThreadMakesAllRanksInAGroup) {
  for (int round = 0; round < 4; ++round) {
    destroyAll();
    bounded([&] { makeAllInAGroup(); });
    if (round % 2 == 0)
      expectSums();
  }
}

/// Four ranks, in two halves, in the opposite order in each.
TEST_F(LifeCycle, Split) {
  start(4);
  std::vector<ncclComm_t> halves(4);
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    ncclComm_t &half = halves[static_cast<size_t>(rank)];
    ncclComm_t none = on.comm;
    std::string wrong =
        check("ncclCommSplit", ncclCommSplit(on.comm, rank % 2, -rank, &half, nullptr));
    int place = -1, count = -1;
    if (wrong.empty())
      wrong = check("ncclCommUserRank", ncclCommUserRank(half, &place));
    if (wrong.empty())
      wrong = check("ncclCommCount", ncclCommCount(half, &count));
    if (wrong.empty() && (place != (rank < 2 ? 1 : 0) || count != 2))
      wrong = "rank " + std::to_string(place) + " of " + std::to_string(count);
    give(rank, {rank});
    if (wrong.empty())
      wrong =
          check("ncclAllGather", ncclAllGather(on.send, on.recv, 1, ncclInt32, half, on.stream));
    if (wrong.empty() && taken(rank, 2) != std::vector<int>{2 + rank % 2, rank % 2})
      wrong = "gathered the wrong ranks";
    if (wrong.empty()) // all take part, two get something
      wrong = check("ncclCommSplit", ncclCommSplit(on.comm, rank < 2 ? 0 : NCCL_SPLIT_NOCOLOR, rank,
                                                   &none, nullptr));
    if (wrong.empty() && (none != nullptr) != (rank < 2))
      wrong = "has a communicator without a colour, or none with one";
    if (none && wrong.empty()) // it frees memory, so nothing may be about to wait
      wrong = check("ncclCommCount", ncclCommCount(none, &count));
    if (none)
      ncclCommDestroy(none);
    return wrong;
  });
  expectSums(); // of the communicator that was divided
  for (ncclComm_t half : halves)
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
}

/// By one rank, which all others know nothing of before.
TEST_F(LifeCycle, Grow) {
  start(3);
  std::vector<ncclComm_t> grown(3);
  const ncclComm_t unused = std::exchange(at(2).comm, nullptr); // the third is to be new
  EXPECT_EQ(ncclCommDestroy(unused), ncclSuccess);
  const std::vector<int> devices(2, 0);
  ncclComm_t two[2];
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(ncclCommDestroy(std::exchange(at(r).comm, nullptr)), ncclSuccess);
  ASSERT_EQ(ncclCommInitAll(two, 2, devices.data()), ncclSuccess) << lastError();
  ncclUniqueId id;
  ASSERT_EQ(ncclCommGetUniqueId(two[1], &id), ncclSuccess) << lastError();
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    ncclComm_t &comm = grown[static_cast<size_t>(rank)];
    std::string wrong =
        rank < 2 ? check("ncclCommGrow", ncclCommGrow(two[rank], 3, nullptr, -1, &comm, nullptr))
                 : check("ncclCommGrow", ncclCommGrow(nullptr, 3, &id, 2, &comm, nullptr));
    if (wrong.empty())
      wrong = check("ncclAllReduce", sum(rank, 1000, comm, on.stream));
    if (wrong.empty() && taken(rank, 1000) != std::vector<int>(1000, 6))
      wrong = "the sum is wrong";
    return wrong;
  });
  for (ncclComm_t comm : grown)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
  for (ncclComm_t comm : two)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
}

/// A kernel waits for a rank that does not come; nothing else is held up, and the stream goes on.
TEST_F(LifeCycle, AbortEndsWhatWaitsForAMissingRank) {
  bounded([&] {
    const Rank &on = at(0);
    ASSERT_EQ(sum(0, 1000, on.comm, on.stream), ncclSuccess) << lastError();
    ASSERT_EQ(cudaMemsetAsync(on.send, 1, 4, on.stream), cudaSuccess);
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(cudaStreamQuery(on.stream), cudaErrorNotReady);
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(on.comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommAbort(std::exchange(at(0).comm, nullptr)), ncclSuccess) << lastError();
    EXPECT_EQ(synchronize(on.stream), "");
    // Something was in flight, so the others hear of it.
    for (int r = 1; r < size(); ++r) {
      EXPECT_EQ(failureOf(at(r).comm), ncclRemoteError) << r;
      EXPECT_EQ(sum(r, 10, at(r).comm, at(r).stream), ncclRemoteError);
      EXPECT_EQ(ncclCommAbort(std::exchange(at(r).comm, nullptr)), ncclSuccess);
    }
  });
  // Their memory is freed: nothing of what follows waits behind that.
  start(size());
  expectSums();
}

/// The others go on with what does not need it.
TEST_F(LifeCycle, AbortOfAnIdleCommunicatorIsNoFailureOfOthers) {
  start(3);
  expectSums();
  bounded([&] {
    EXPECT_EQ(ncclCommAbort(std::exchange(at(0).comm, nullptr)), ncclSuccess) << lastError();
    std::this_thread::sleep_for(300ms); // they would have heard of it
    for (int r = 1; r < size(); ++r) {
      ncclResult_t state = ncclInternalError;
      EXPECT_EQ(ncclCommGetAsyncError(at(r).comm, &state), ncclSuccess);
      EXPECT_EQ(state, ncclSuccess) << r << ": " << lastError();
    }
  });
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    if (rank == 0)
      return "";
    give(rank, std::vector<int>(1000, rank));
    std::string wrong =
        rank == 1 ? check("ncclSend", ncclSend(on.send, 1000, ncclInt32, 2, on.comm, on.stream))
                  : check("ncclRecv", ncclRecv(on.recv, 1000, ncclInt32, 1, on.comm, on.stream));
    if (wrong.empty())
      wrong = synchronize(on.stream);
    return wrong.empty() && rank == 2 && taken(rank, 1000) != std::vector<int>(1000, 1)
               ? "it has received something else"
               : wrong;
  });
}

/// With fewer thread blocks on one rank alone the ranks call different things, which is said.
TEST_F(LifeCycle, ShrinkTakesItsConfiguration) {
  constexpr size_t kLarge = 5'000'001;
  start(3);
  std::vector<ncclComm_t> fewer(2);
  inThreads([&](int rank) -> std::string {
    if (rank == 2)
      return "";
    const auto self = static_cast<size_t>(rank);
    int without[] = {2};
    ncclConfig_t config = kNcclConfigInitializer;
    config.maxCTAs = rank == 0 ? 16 : config.maxCTAs;
    std::string wrong =
        check("ncclCommShrink", ncclCommShrink(at(rank).comm, without, 1, &fewer[self], &config,
                                               NCCL_SHRINK_DEFAULT));
    if (!wrong.empty())
      return wrong;
    ncclAllReduce(at(rank).send, at(rank).recv, kLarge, ncclFloat32, ncclSum, fewer[self],
                  at(rank).stream);
    return failureOf(fewer[self]) == ncclInvalidUsage ? "" : "it has had no effect: " + lastError();
  });
  for (ncclComm_t comm : fewer)
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << lastError();
}

/// Whether they are still connecting or have waiting kernels: what is made right after goes on.
TEST_F(LifeCycle, NewCommunicatorsRightAfterAborts) {
  for (auto pause : {0ms, 0ms, 20ms, 300ms}) {
    bounded([&] {
      std::this_thread::sleep_for(pause);
      for (Rank &rank : ranks) {
        EXPECT_EQ(ncclCommAbort(std::exchange(rank.comm, nullptr)), ncclSuccess) << lastError();
      }
      makeAllInAGroup();
    });
    expectSums();
    start(size());
  }
}

/// Each of whose kernels waits for a rank that does not come: the device is idle when both have
/// ended, so nothing of them stays taken.
TEST_F(LifeCycle, AbortOfTwoCommunicatorsThatWait) {
  std::vector<ncclComm_t> second(ranks.size());
  const std::vector<int> devices(ranks.size(), 0);
  ASSERT_EQ(ncclCommInitAll(second.data(), size(), devices.data()), ncclSuccess) << lastError();
  size_t before = 0, after = 0, total = 0;
  bounded([&] {
    ASSERT_EQ(sum(0, 1000, at(0).comm, at(0).stream), ncclSuccess) << lastError();
    ASSERT_EQ(
        ncclAllReduce(at(0).send, at(0).recv, 1000, ncclInt32, ncclSum, second[0], at(0).other),
        ncclSuccess)
        << lastError();
    std::this_thread::sleep_for(100ms);
    ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
    for (Rank &rank : ranks) {
      EXPECT_EQ(ncclCommAbort(std::exchange(rank.comm, nullptr)), ncclSuccess) << lastError();
    }
    for (ncclComm_t comm : second) {
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess) << lastError();
    }
    EXPECT_EQ(synchronize(at(0).stream), "");
    EXPECT_EQ(synchronize(at(0).other), "");
  });
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_GT(after, before + 2 * ranks.size() * (100 << 20)) << "some of it stays taken";
}

/// In a group, too, it ends here: nothing of it is freed beside what follows.
TEST_F(LifeCycle, DestroyInAGroup) {
  for (int round = 0; round < 4; ++round) {
    start(size());
    bounded([&] {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      destroyAll();
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    });
    start(size());
    expectSums();
  }
}

/// From another thread than the one that waits for its stream, as a watchdog does.
TEST_F(LifeCycle, AbortByAWatchdog) {
  bounded([&] {
    const Rank &on = at(0);
    ASSERT_EQ(sum(0, 1000, on.comm, on.stream), ncclSuccess) << lastError();
    std::thread watchdog([&] {
      std::this_thread::sleep_for(300ms);
      EXPECT_EQ(ncclCommAbort(std::exchange(at(0).comm, nullptr)), ncclSuccess);
    });
    EXPECT_EQ(synchronize(on.stream), "");
    watchdog.join();
  });
}

TEST_F(LifeCycle, FinalizeAndDestroyLetWhatIsInFlightEnd) {
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    std::string wrong = check("ncclAllReduce", sum(rank, 5000, on.comm, on.stream));
    if (wrong.empty())
      wrong = check("ncclCommFinalize", ncclCommFinalize(on.comm));
    if (wrong.empty() && ncclCommFinalize(on.comm) != ncclInvalidArgument)
      wrong = "was finalized twice";
    if (wrong.empty() && ncclAllReduce(on.send, on.recv, 1, ncclInt32, ncclSum, on.comm,
                                       on.stream) != ncclInvalidUsage)
      wrong = "took a call after ncclCommFinalize";
    const ncclComm_t gone = std::exchange(at(rank).comm, nullptr);
    if (wrong.empty())
      wrong = check("ncclCommDestroy", ncclCommDestroy(gone));
    if (wrong.empty() && ncclCommDestroy(gone) != ncclInvalidArgument)
      wrong = "was destroyed twice";
    if (wrong.empty() && taken(rank, 5000) != std::vector<int>(5000, size() * (size() + 1) / 2))
      wrong = "the sum is wrong";
    return wrong;
  });
}

TEST_F(LifeCycle, RanksThatCallDifferentlyAreToldSo) {
  bounded([&] {
    for (int r = 0; r < size(); ++r) {
      const ncclResult_t result = sum(r, r == 0 ? 1000 : 999, at(r).comm, at(r).stream);
      // Two ranks that differ are enough to end it before a third one calls.
      ASSERT_TRUE(result == ncclSuccess || (r > 1 && result == ncclInvalidUsage)) << lastError();
    }
    for (int r = 0; r < size(); ++r) {
      EXPECT_EQ(failureOf(at(r).comm), ncclInvalidUsage) << lastError();
      EXPECT_NE(lastError().find("calls something else there"), std::string::npos) << lastError();
      EXPECT_EQ(synchronize(at(r).stream), "");
      EXPECT_EQ(sum(r, 10, at(r).comm, at(r).stream), ncclInvalidUsage);
    }
  });
}

TEST_F(LifeCycle, HostMemoryIsRefusedAndFailsAllRanks) {
  bounded([&] {
    std::vector<int> onHost(10);
    EXPECT_EQ(
        ncclAllReduce(onHost.data(), at(0).recv, 10, ncclInt32, ncclSum, at(0).comm, at(0).stream),
        ncclInvalidArgument);
    EXPECT_NE(lastError().find("memory of the rank's CUDA device"), std::string::npos)
        << lastError();
    for (int r = 1; r < size(); ++r)
      EXPECT_EQ(failureOf(at(r).comm), ncclRemoteError);
  });
}

TEST_F(LifeCycle, MemoryOfTheLibraryIsMemoryOfTheDevice) {
  std::vector<void *> memory(ranks.size());
  for (void *&each : memory)
    ASSERT_EQ(ncclMemAlloc(&each, 4096), ncclSuccess) << lastError();
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    give(rank, std::vector<int>(1000, rank + 1));
    void *there = memory[static_cast<size_t>(rank)], *handle = nullptr;
    std::string wrong = check("ncclCommRegister", ncclCommRegister(on.comm, there, 4096, &handle));
    if (wrong.empty())
      wrong = check("ncclAllReduce",
                    ncclAllReduce(on.send, there, 1000, ncclInt32, ncclSum, on.comm, on.stream));
    if (wrong.empty())
      wrong = check("cudaMemcpyAsync",
                    cudaMemcpyAsync(on.recv, there, 4000, cudaMemcpyDeviceToDevice, on.stream));
    if (wrong.empty() && taken(rank, 1000) != std::vector<int>(1000, size() * (size() + 1) / 2))
      wrong = "the sum is wrong";
    return wrong.empty() ? check("ncclCommDeregister", ncclCommDeregister(on.comm, handle)) : wrong;
  });
  for (void *each : memory)
    EXPECT_EQ(ncclMemFree(each), ncclSuccess) << lastError();
}

} // namespace
} // namespace occl::nccl::testing
