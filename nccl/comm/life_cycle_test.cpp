// How communicators end: destroyed, finalized, aborted in whatever state, or because others did.
#include "nccl/testing/each_function.h"
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

ncclUniqueId makeId() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}

/// Every function with a communicator that is none any more.
void expectGone(ncclComm_t comm) {
  for (const NamedCall &function : eachFunction())
    EXPECT_EQ(function.call(comm), ncclInvalidArgument) << function.name;
}

} // namespace

TEST(Destroy, OfNullIsNothingAndOfOthersOnce) {
  EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
  Ranks ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(ncclCommDestroy(ranks[rank]), ncclSuccess);
    expectGone(std::exchange(ranks[rank], nullptr));
  }
}

TEST(Destroy, LetsWhatIsInFlightEnd) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    int value = 1;
    ASSERT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[rank], ranks.stream(rank)),
              ncclSuccess);
    ASSERT_EQ(ncclCommDestroy(std::exchange(ranks[rank], nullptr)), ncclSuccess);
    ranks.synchronize(rank);
    EXPECT_EQ(value, 2);
  });
}

TEST(Destroy, BeforeOthersAreThereStrandsNobody) {
  const ncclUniqueId id = makeId();
  bounded([&] {
    ncclComm_t first = nullptr, second = nullptr;
    ASSERT_EQ(ncclCommInitRank(&first, 2, id, 0), ncclSuccess);
    ASSERT_EQ(ncclCommDestroy(first), ncclSuccess);
    ASSERT_EQ(ncclCommInitRank(&second, 2, id, 1), ncclSuccess);
    int x = 0; // needs the one that has left
    EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, second, nullptr), ncclRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("rank 0"), std::string::npos)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(stateOf(second), ncclRemoteError);
    EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
  });
}

TEST(Destroy, OfARankThatNobodyNeedsIsNoFailure) {
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    EXPECT_EQ(allReduceOnce(ranks[rank]), "");
    if (rank == 2) {
      EXPECT_EQ(ncclCommDestroy(std::exchange(ranks[2], nullptr)), ncclSuccess);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    int x = rank;
    EXPECT_EQ(rank == 0 ? ncclSend(&x, 1, ncclInt32, 1, ranks[0], nullptr)
                        : ncclRecv(&x, 1, ncclInt32, 0, ranks[1], nullptr),
              ncclSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(x, 0);
    EXPECT_EQ(stateOf(ranks[rank]), ncclSuccess);
  });
}

TEST(Finalize, FlushesAndIsOnce) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    int value = 1;
    ASSERT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[rank], ranks.stream(rank)),
              ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclSuccess);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(ncclCommFinalize(ranks[rank]), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, ranks[rank], nullptr),
              ncclInvalidUsage);
    EXPECT_EQ(stateOf(ranks[rank]), ncclSuccess);
  });
}

TEST(Finalize, OfOneThatDoesNotBlockDoesNotWait) {
  bounded([&] {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = kNcclConfigInitializer;
    config.blocking = 0;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, makeId(), 0, &config), ncclSuccess);
    auto late = std::make_shared<HostEvent>();
    auto stream = HostStream::make();
    stream->waitFor(late);
    int from = 1, to = 0;
    ASSERT_EQ(ncclAllReduce(&from, &to, 1, ncclInt32, ncclSum, comm, stream->handle()),
              ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_EQ(to, 0);
    EXPECT_EQ(stateOf(comm), ncclSuccess);
    late->happen();
    stream->synchronize();
    EXPECT_EQ(to, 1);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Abort, BeforeOthersAreThere) {
  bounded([&] {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, makeId(), 0), ncclSuccess);
    auto stream = HostStream::make();
    int x = 0;
    ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, stream->handle()), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    stream->synchronize(); // it goes on
    expectGone(comm);
  });
}

TEST(Abort, OfAnIdleCommunicatorIsNoFailureOfOthers) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) { EXPECT_EQ(allReduceOnce(ranks[rank]), ""); });
  EXPECT_EQ(ncclCommAbort(ranks[0]), ncclSuccess);
  expectGone(std::exchange(ranks[0], nullptr));
  EXPECT_EQ(stateOf(ranks[1]), ncclSuccess);
}

TEST(Abort, EndsACollectiveThatWaitsAndThoseBehindIt) {
  Ranks ranks(2);
  bounded([&] {
    int x = 1;
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[0], ranks.stream(0)),
                ncclSuccess);
    EXPECT_EQ(stateOf(ranks[0]), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(std::exchange(ranks[0], nullptr)), ncclSuccess);
    ranks.synchronize(0);
    // The other rank hears of it when it needs this one.
    EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[1], nullptr), ncclRemoteError);
    EXPECT_EQ(stateOf(ranks[1]), ncclRemoteError);
  });
}

TEST(Abort, EndsCallsOfOtherThreads) {
  for (bool isReceive : {false, true}) {
    Ranks ranks(2);
    bounded([&] {
      const ncclComm_t comm = std::exchange(ranks[0], nullptr);
      ncclResult_t result = ncclSuccess;
      std::thread caller([&] {
        int x = 1;
        result = isReceive ? ncclRecv(&x, 1, ncclInt32, 1, comm, nullptr)
                           : ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      caller.join();
      EXPECT_NE(result, ncclSuccess);
    });
  }
}

TEST(Abort, OfWhatStandsBehindOtherWorkOfItsStream) {
  Ranks ranks(2);
  bounded([&] {
    auto late = std::make_shared<HostEvent>();
    auto stream = HostStream::make();
    stream->waitFor(late);
    int x = 1;
    ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[0], stream->handle()),
              ncclSuccess);
    EXPECT_EQ(ncclCommAbort(std::exchange(ranks[0], nullptr)), ncclSuccess);
    late->happen();
    stream->synchronize();
    EXPECT_EQ(x, 1);
  });
}

TEST(Abort, InsideOfAGroupDropsItsOperations) {
  Ranks ranks(2);
  bounded([&] {
    int x = 1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[0], ranks.stream(0)), ncclSuccess);
    ASSERT_EQ(ncclCommAbort(std::exchange(ranks[0], nullptr)), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    ranks.synchronize(0);
    EXPECT_EQ(x, 1);
  });
}

TEST(Abort, WhileACommunicatorIsDivided) {
  Ranks ranks(2);
  bounded([&] {
    ncclComm_t half = nullptr;
    ASSERT_EQ(ncclCommSplit(ranks[0], 0, 0, &half, nullptr), ncclSuccess);
    ASSERT_NE(half, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // until it waits for the other rank
    EXPECT_EQ(ncclCommAbort(half), ncclSuccess);
    expectGone(half);
    EXPECT_EQ(ncclCommAbort(std::exchange(ranks[0], nullptr)), ncclSuccess);
    // The other rank never divides it, and hears of the abort when it needs this one.
    int x = 1;
    EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[1], nullptr), ncclRemoteError);
    EXPECT_EQ(stateOf(ranks[1]), ncclRemoteError);
  });
}

/// The first one has waited for all of them.
TEST(Abort, OfManyWithDivisionsThatAreStuckWaitsOnce) {
  constexpr int kMany = 5;
  std::vector<std::unique_ptr<Ranks>> all;
  for (int i = 0; i < kMany; ++i)
    all.push_back(std::make_unique<Ranks>(2));
  bounded([&] {
    using Clock = std::chrono::steady_clock;
    for (auto &ranks : all) {
      ncclComm_t half = nullptr; // the other rank never divides it
      ASSERT_EQ(ncclCommSplit((*ranks)[0], 0, 0, &half, nullptr), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(half), ncclSuccess);
    }
    auto shortest = Clock::duration::max(); // of those behind the first
    for (auto &ranks : all) {
      const auto began = Clock::now();
      EXPECT_EQ(ncclCommAbort(std::exchange((*ranks)[0], nullptr)), ncclSuccess);
      if (&ranks != &all.front())
        shortest = std::min(shortest, Clock::now() - began);
    }
    EXPECT_LT(shortest, std::chrono::seconds(3)); // which each would wait alone
  });
}

/// What it is divided into is a communicator of its own.
TEST(Abort, RightAfterADivision) {
  Ranks ranks(2);
  bounded([&] {
    ncclComm_t halves[2] = {};
    eachRank(2, [&](int rank) {
      ASSERT_EQ(ncclCommSplit(ranks[rank], 0, rank, &halves[rank], nullptr), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(std::exchange(ranks[rank], nullptr)), ncclSuccess);
      int x = 1;
      EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, halves[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      EXPECT_EQ(x, 2);
      EXPECT_EQ(ncclCommDestroy(halves[rank]), ncclSuccess);
    });
  });
}

TEST(Failures, OfMismatchedCallsNameBoth) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    int x[2] = {};
    const ncclResult_t result =
        ncclAllReduce(x, x, rank == 0 ? 1 : 2, ncclInt32, ncclSum, ranks[rank], ranks.stream(rank));
    EXPECT_EQ(result, ncclSuccess);
    ranks.synchronize(rank);
    EXPECT_EQ(stateOf(ranks[rank]), ncclInvalidUsage);
    const std::string text = ncclGetLastError(ranks[rank]);
    for (const char *part : {"rank 0", "rank 1", "count 1", "count 2"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  });
}

TEST(Failures, OfACallRefusedOnOneRankReachTheOthers) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    std::vector<int> data(8);
    // Rank 0's buffers overlap; rank 1 does it right, and waits.
    int *to = data.data() + (rank == 0 ? 1 : 4);
    EXPECT_NE(ncclAlltoAll(data.data(), to, 2, ncclInt32, ranks[rank], nullptr), ncclSuccess);
    EXPECT_EQ(stateOf(ranks[rank]), rank == 0 ? ncclInvalidArgument : ncclRemoteError);
  });
}

TEST(Registrations, AreLocalAndCounted) {
  Ranks ranks(2);
  char buffer[100];
  void *first = nullptr, *again = nullptr, *inner = nullptr;
  EXPECT_EQ(ncclCommRegister(ranks[0], buffer, 100, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommRegister(ranks[0], nullptr, 100, &first), ncclInvalidArgument);
  ASSERT_EQ(ncclCommRegister(ranks[0], buffer, 100, &first), ncclSuccess);
  ASSERT_EQ(ncclCommRegister(ranks[0], buffer, 100, &again), ncclSuccess);
  ASSERT_EQ(ncclCommRegister(ranks[0], buffer + 10, 20, &inner), ncclSuccess);
  EXPECT_EQ(first, again);
  EXPECT_NE(first, inner);
  EXPECT_EQ(ncclCommDeregister(ranks[1], first), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(ranks[0], first), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(ranks[0], first), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(ranks[0], first), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(ranks[0], inner), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(ranks[0], inner), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(ranks[0], buffer), ncclInvalidUsage); // never was a handle
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("no registered range"), std::string::npos);
  EXPECT_EQ(ncclCommRegister(ranks[0], buffer, 0, &first), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDeregister(ranks[0], nullptr), ncclSuccess);
  ncclWindow_t window = reinterpret_cast<ncclWindow_t>(buffer);
  EXPECT_EQ(ncclCommWindowRegister(ranks[0], buffer, 100, &window, 0), ncclSuccess);
  EXPECT_EQ(window, nullptr); // there are none
  EXPECT_EQ(ncclCommWindowDeregister(ranks[0], window), ncclSuccess);
  EXPECT_EQ(ncclCommWindowDeregister(ranks[0], reinterpret_cast<ncclWindow_t>(buffer)),
            ncclInvalidArgument);
}

TEST(Memory, IsTheCallersUntilItIsFreed) {
  void *memory = nullptr;
  EXPECT_EQ(ncclMemAlloc(nullptr, 100), ncclInvalidArgument);
  ASSERT_EQ(ncclMemAlloc(&memory, 100), ncclSuccess);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
  EXPECT_EQ(ncclMemFree(static_cast<char *>(memory) + 1), ncclInvalidArgument);
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory), ncclInvalidArgument);
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
}
