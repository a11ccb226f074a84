// Communicators made of others: split, and shrunk.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

void expectShape(ncclComm_t comm, int rank, int size) {
  int isRank = -1, isSize = -1;
  ASSERT_EQ(ncclCommUserRank(comm, &isRank), ncclSuccess) << ncclGetLastError(nullptr);
  ASSERT_EQ(ncclCommCount(comm, &isSize), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(isRank, rank);
  EXPECT_EQ(isSize, size);
}

} // namespace

TEST(Split, ByColourAndKey) {
  Ranks ranks(5);
  eachRank(5, [&](int rank) {
    ncclComm_t comm = nullptr;
    const int colour = rank % 2; // keys turn the order around
    ASSERT_EQ(ncclCommSplit(ranks[rank], colour, -rank, &comm, nullptr), ncclSuccess);
    ASSERT_NE(comm, nullptr);
    expectShape(comm, colour == 0 ? (4 - rank) / 2 : (3 - rank) / 2, colour == 0 ? 3 : 2);
    EXPECT_EQ(allReduceOnce(comm), "");
    int device = -1;
    EXPECT_EQ(ncclCommCuDevice(comm, &device), ncclSuccess);
    EXPECT_EQ(device, rank);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(allReduceOnce(ranks[rank]), "");
  });
}

TEST(Split, WithoutColourGivesNoCommunicator) {
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    ncclComm_t comm = ranks[rank];
    const int colour = rank == 1 ? NCCL_SPLIT_NOCOLOR : 7;
    ASSERT_EQ(ncclCommSplit(ranks[rank], colour, 0, &comm, nullptr), ncclSuccess);
    if (rank == 1) {
      EXPECT_EQ(comm, nullptr);
      return;
    }
    expectShape(comm, rank / 2, 2);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Split, ReturnsBeforeOthersCallAndPairsInOrder) {
  Ranks ranks(2);
  bounded([&] {
    ncclComm_t first[2], second[2];
    for (int rank = 0; rank < 2; ++rank) { // one thread: the first calls cannot wait for the others
      ASSERT_EQ(ncclCommSplit(ranks[rank], 0, 0, &first[rank], nullptr), ncclSuccess);
      ASSERT_EQ(ncclCommSplit(ranks[rank], 0, -rank, &second[rank], nullptr), ncclSuccess);
      ASSERT_EQ(ncclCommDestroy(std::exchange(ranks[rank], nullptr)), ncclSuccess);
    }
    for (int rank = 0; rank < 2; ++rank) {
      expectShape(first[rank], rank, 2);
      expectShape(second[rank], 1 - rank, 2);
    }
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ncclCommDestroy(first[rank]), ncclSuccess);
      EXPECT_EQ(ncclCommDestroy(second[rank]), ncclSuccess);
    }
  });
}

TEST(Split, IsUsedBeforeItHasComeTogetherAndSplitAgain) {
  Ranks ranks(4);
  eachRank(4, [&](int rank) {
    ncclComm_t half = nullptr, single = nullptr;
    int value = 1, alone = rank, root = 0;
    ASSERT_EQ(ncclCommSplit(ranks[rank], rank / 2, 0, &half, nullptr), ncclSuccess);
    ASSERT_EQ(ncclCommSplit(half, rank, 0, &single, nullptr), ncclSuccess);
    ASSERT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, half, ranks.stream(rank)),
              ncclSuccess);
    ASSERT_EQ(ncclBcast(&alone, 1, ncclInt32, root, single, ranks.stream(rank)), ncclSuccess);
    ranks.synchronize(rank);
    EXPECT_EQ(value, 2);
    EXPECT_EQ(alone, rank);
    expectShape(single, 0, 1);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(single), ncclSuccess);
  });
}

TEST(Split, RefusesRanksThatItDoesNotHaveOnceItIsKnownWhichItHas) {
  Ranks ranks(2);
  std::atomic<int> numCalled = 0;
  eachRank(2, [&](int rank) {
    int x = rank, y = -1;
    ncclComm_t alone = nullptr;
    const std::function<ncclResult_t()> calls[] = {
        [&] { return ncclBcast(&x, 1, ncclInt32, 1, alone, nullptr); },
        [&] { return ncclReduce(&x, &y, 1, ncclInt32, ncclSum, 1, alone, nullptr); },
        [&] { return ncclRecv(&x, 1, ncclInt32, 1, alone, nullptr); },
        [&] { return ncclSend(&x, 1, ncclInt32, 0, alone, nullptr); }}; // to oneself alone
    for (int i = 0; i < 4; ++i) {
      while (rank == 1 && numCalled <= i) // it comes together when the other's call is made
        std::this_thread::yield();
      ASSERT_EQ(ncclCommSplit(ranks[rank], rank, 0, &alone, nullptr), ncclSuccess);
      if (rank == 0) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[0], nullptr), ncclSuccess);
        ASSERT_EQ(calls[i](), ncclSuccess) << i;
        ++numCalled;
        EXPECT_EQ(ncclGroupEnd(), i == 3 ? ncclInvalidUsage : ncclInvalidArgument) << i;
        EXPECT_EQ(x, 0);
      }
      EXPECT_EQ(allReduceOnce(alone), ""); // it is as if there had been no group
      EXPECT_EQ(allReduceOnce(ranks[rank]), "");
      EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
    }
  });
}

TEST(Split, RefusesWhatIsWrong) {
  Ranks ranks(1);
  ncclComm_t comm = nullptr;
  ncclConfig_t config = kNcclConfigInitializer;
  config.magic = 1;
  EXPECT_EQ(ncclCommSplit(nullptr, 0, 0, &comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(ranks[0], -2, 0, &comm, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommSplit(ranks[0], 0, 0, &comm, &config), ncclInvalidArgument);
}

TEST(Shrink, LeavesOutWhoDoesNotCall) {
  Ranks ranks(4);
  eachRank(4, [&](int rank) {
    EXPECT_EQ(allReduceOnce(ranks[rank]), "");
    if (rank == 1)
      return;
    ncclComm_t comm = nullptr;
    int without[] = {1};
    ASSERT_EQ(ncclCommShrink(ranks[rank], without, 1, &comm, nullptr, NCCL_SHRINK_DEFAULT),
              ncclSuccess);
    expectShape(comm, rank == 0 ? 0 : rank - 1, 3);
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, EndsFirstWhatWaitsForTheExcluded) {
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    if (rank == 2)
      return;
    int x = 1;
    ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[rank], ranks.stream(rank)),
              ncclSuccess);
    ncclComm_t comm = nullptr;
    int without[] = {2};
    ASSERT_EQ(ncclCommShrink(ranks[rank], without, 1, &comm, nullptr, NCCL_SHRINK_ABORT),
              ncclSuccess);
    expectShape(comm, rank, 2);
    ranks.synchronize(rank);
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Shrink, RefusesWhatIsWrong) {
  Ranks ranks(2);
  ncclComm_t comm = nullptr;
  int self[] = {0}, beyond[] = {2}, other[] = {1};
  EXPECT_EQ(ncclCommShrink(nullptr, other, 1, &comm, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[0], self, 1, &comm, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[0], beyond, 1, &comm, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[0], other, 0, &comm, nullptr, 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[0], other, 1, &comm, nullptr, 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommShrink(ranks[0], other, 1, nullptr, nullptr, 0), ncclInvalidArgument);
  ncclConfig_t config = kNcclConfigInitializer;
  config.size = 1;
  EXPECT_EQ(ncclCommShrink(ranks[0], other, 1, &comm, &config, 0), ncclInvalidArgument);
}
