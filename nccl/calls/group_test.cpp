// Groups, sends and receives, and the order that streams keep.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

using namespace occl::nccl;
using namespace occl::nccl::testing;

TEST(Transfers, PairInOrderAlsoWithoutElements) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    // A transfer of nothing takes its place between the others.
    const size_t counts[] = {3, 0, 5, 100000};
    std::vector<int> sent(100000), received(100000);
    std::iota(sent.begin(), sent.end(), 0);
    for (size_t count : counts) {
      if (rank == 0) {
        ASSERT_EQ(
            ncclSend(count ? sent.data() : nullptr, count, ncclInt32, 1, ranks[0], ranks.stream(0)),
            ncclSuccess);
      } else {
        ASSERT_EQ(ncclRecv(count ? received.data() : nullptr, count, ncclInt32, 0, ranks[1],
                           ranks.stream(1)),
                  ncclSuccess);
      }
    }
    ranks.synchronize(rank);
    ncclResult_t state = ncclInternalError;
    ASSERT_EQ(ncclCommGetAsyncError(ranks[rank], &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess) << ncclGetLastError(nullptr);
    if (rank == 1) {
      EXPECT_EQ(received, sent);
    }
  });
}

TEST(Transfers, OfNothingThatHaveNoOtherSideWait) {
  Ranks ranks(2);
  std::atomic<bool> isSent = false;
  eachRank(2, [&](int rank) {
    if (rank == 0) {
      // The receive cannot end before the send has begun, though there is nothing to receive.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      isSent = true;
      EXPECT_EQ(ncclSend(nullptr, 0, ncclInt8, 1, ranks[0], nullptr), ncclSuccess);
    } else {
      EXPECT_EQ(ncclRecv(nullptr, 0, ncclInt8, 0, ranks[1], nullptr), ncclSuccess);
      EXPECT_TRUE(isSent);
    }
  });
}

TEST(Transfers, ToOneselfNeedAGroup) {
  Ranks ranks(1);
  int from = 7, to = 0;
  EXPECT_EQ(ncclSend(&from, 1, ncclInt32, 0, ranks[0], nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclRecv(&to, 1, ncclInt32, 0, ranks[0], nullptr), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclSend(&from, 1, ncclInt32, 0, ranks[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclRecv(&to, 1, ncclInt32, 0, ranks[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclSend(&from, 1, ncclInt32, 0, ranks[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(to, 7);
}

TEST(Transfers, RefuseWhatIsWrongAtOnce) {
  Ranks ranks(2);
  int x = 0;
  EXPECT_EQ(ncclSend(&x, 1, ncclInt32, 1, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(&x, 1, ncclInt32, 2, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(&x, 1, ncclInt32, -1, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRecv(&x, 1, ncclNumTypes, 1, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRecv(nullptr, 1, ncclInt32, 1, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRecv(&x, SIZE_MAX, ncclInt32, 1, ranks[0], nullptr), ncclInvalidArgument);
}

TEST(Groups, LetLargeSendsOfAllToAllGoOnTogether) {
  constexpr size_t kCount = 100000; // larger than what is sent without a receiver
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    std::vector<std::vector<int>> in(3, std::vector<int>(kCount)), out = in;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int peer = 0; peer < 3; ++peer) {
      auto &mine = out[static_cast<size_t>(peer)];
      std::iota(mine.begin(), mine.end(), rank * 10 + peer);
      ASSERT_EQ(ncclSend(mine.data(), kCount, ncclInt32, peer, ranks[rank], nullptr), ncclSuccess);
    }
    for (int peer = 2; peer >= 0; --peer)
      ASSERT_EQ(ncclRecv(in[static_cast<size_t>(peer)].data(), kCount, ncclInt32, peer, ranks[rank],
                         nullptr),
                ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (int peer = 0; peer < 3; ++peer)
      for (size_t i = 0; i < kCount; i += 999)
        ASSERT_EQ(in[static_cast<size_t>(peer)][i], peer * 10 + rank + static_cast<int>(i));
  });
}

TEST(Groups, OfOneThreadWithAllRanksNested) {
  Ranks ranks(4);
  bounded([&] {
    int values[4] = {1, 2, 3, 4}, from[4] = {}, sums[4] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 4; ++rank) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      // In another order on each rank, which is nothing to a collective beside transfers.
      auto reduce = [&] {
        ASSERT_EQ(ncclAllReduce(&values[rank], &sums[rank], 1, ncclInt32, ncclSum, ranks[rank],
                                ranks.stream(rank)),
                  ncclSuccess);
      };
      if (rank % 2)
        reduce();
      ASSERT_EQ(
          ncclSend(&values[rank], 1, ncclInt32, (rank + 1) % 4, ranks[rank], ranks.stream(rank)),
          ncclSuccess);
      ASSERT_EQ(
          ncclRecv(&from[rank], 1, ncclInt32, (rank + 3) % 4, ranks[rank], ranks.stream(rank)),
          ncclSuccess);
      if (rank % 2 == 0)
        reduce();
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      EXPECT_EQ(sums[rank], 0); // nothing has begun
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int rank = 0; rank < 4; ++rank) {
      ranks.synchronize(rank);
      EXPECT_EQ(sums[rank], 10);
      EXPECT_EQ(from[rank], values[(rank + 3) % 4]);
    }
  });
}

TEST(Groups, ReportErrorsOfCallsAtTheEndAndBeginNothing) {
  Ranks ranks(2);
  int x = 5;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclBcast(&x, 1, ncclInt32, 0, ranks[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclBcast(&x, 1, ncclInt32, 9, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("root is 9"), std::string::npos);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess); // of nothing
  // The broadcast has not taken place: the next call is the first.
  eachRank(2, [&](int rank) { EXPECT_EQ(allReduceOnce(ranks[rank]), ""); });
}

TEST(Groups, TakeScalarsWhenTheCallIsMadeAlsoIfTheOperationEndsBeforeTheGroup) {
  Ranks ranks(2);
  bounded([&] {
    float values[2] = {1, 2};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      float scalar = static_cast<float>(10 + rank);
      ncclRedOp_t op = ncclSum;
      ASSERT_EQ(
          ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, ranks[rank]),
          ncclSuccess);
      scalar = 1000;
      ASSERT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, op, ranks[rank],
                              ranks.stream(rank)),
                ncclSuccess);
      ASSERT_EQ(ncclRedOpDestroy(op, ranks[rank]), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      ranks.synchronize(rank);
      EXPECT_EQ(values[rank], 10 * 1 + 11 * 2);
    }
  });
}

TEST(Groups, WithAnOperationOfAnotherCommunicatorBeginNothing) {
  Ranks ranks(2);
  bounded([&] {
    float value = 3, scalar = 2;
    ncclRedOp_t op = ncclSum;
    ASSERT_EQ(
        ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
        ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, op, ranks[0], nullptr), ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, op, ranks[1], nullptr),
              ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("of another communicator"),
              std::string::npos);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(ncclRedOpDestroy(op, ranks[0]), ncclSuccess);
  });
  eachRank(2, [&](int rank) { EXPECT_EQ(allReduceOnce(ranks[rank]), ""); });
}

TEST(Groups, SimulatedAreOverAndNotExecuted) {
  Ranks ranks(2);
  int x = 5;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclBcast(&x, 1, ncclInt32, 0, ranks[0], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupSimulateEnd(nullptr), ncclInvalidUsage);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  eachRank(2, [&](int rank) { EXPECT_EQ(allReduceOnce(ranks[rank]), ""); });
}

TEST(Groups, MayHaveInitSplitAndDestroyInside) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  bounded([&] {
    ncclComm_t comms[3] = {}, halves[3] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(ncclCommInitRank(&comms[rank], 3, id, rank), ncclSuccess);
      EXPECT_NE(comms[rank], nullptr);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    float values[3] = {1, 2, 3};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(ncclCommSplit(comms[rank], rank == 1, 0, &halves[rank], nullptr), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, ncclSum, comms[rank],
                              nullptr),
                ncclSuccess);
      ASSERT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess); // after what the group has of it
      EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclInvalidArgument);
    }
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument); // of the second destruction
    int count = 0;
    ASSERT_EQ(ncclCommCount(halves[0], &count), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(count, 2);
    for (ncclComm_t half : halves)
      EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
  });
}

TEST(Groups, MayHaveFinalizeAndShrinkInside) {
  Ranks ranks(3);
  bounded([&] {
    ncclComm_t fewer[2] = {};
    int excluded[] = {2}, values[3] = {1, 2, 3};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 3; ++rank) {
      ASSERT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclInt32, ncclSum, ranks[rank],
                              ranks.stream(rank)),
                ncclSuccess);
      if (rank < 2) {
        ASSERT_EQ(ncclCommShrink(ranks[rank], excluded, 1, &fewer[rank], nullptr, 0), ncclSuccess);
      }
      ASSERT_EQ(ncclCommFinalize(ranks[rank]), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    for (int rank = 0; rank < 3; ++rank) {
      ranks.synchronize(rank); // what was before Finalize is executed
      EXPECT_EQ(values[rank], 6);
      EXPECT_EQ(ncclBcast(values, 1, ncclInt32, 0, ranks[rank], nullptr), ncclInvalidUsage);
    }
    int count = 0;
    for (ncclComm_t comm : fewer) {
      ASSERT_EQ(ncclCommCount(comm, &count), ncclSuccess) << ncclGetLastError(nullptr);
      EXPECT_EQ(count, 2);
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
  });
}

TEST(Groups, HaveTheErrorsOfWhatMakesAndEndsCommunicatorsInside) {
  Ranks ranks(1);
  bounded([&] {
    ncclComm_t comm = nullptr, half = nullptr;
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    int x = 5, excluded[] = {7};
    const std::function<ncclResult_t()> wrong[] = {
        [&] { return ncclCommInitRank(&comm, 2, id, 2); },
        [&] { return ncclCommSplit(ranks[0], -5, 0, &half, nullptr); },
        [&] { return ncclCommShrink(ranks[0], excluded, 1, &half, nullptr, 0); },
        [&] { return ncclCommFinalize(nullptr); },
        [&] { return ncclCommDestroy(reinterpret_cast<ncclComm_t>(&x)); },
        [&] { return ncclCommAbort(reinterpret_cast<ncclComm_t>(&x)); }};
    for (const auto &call : wrong) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, ranks[0], nullptr), ncclSuccess);
      EXPECT_EQ(call(), ncclInvalidArgument);
      EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
      EXPECT_EQ(comm, nullptr);
    }
    EXPECT_EQ(allReduceOnce(ranks[0]), "");
  });
}

TEST(Groups, ExecuteWhatTheyHaveOfACommunicatorDestroyedInside) {
  Ranks ranks(2);
  bounded([&] {
    float values[2] = {1, 2};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_EQ(ncclAllReduce(&values[rank], &values[rank], 1, ncclFloat32, ncclSum, ranks[rank],
                              ranks.stream(rank)),
                ncclSuccess);
      ASSERT_EQ(ncclCommDestroy(ranks[rank]), ncclSuccess);
      ranks[rank] = nullptr;
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      ranks.synchronize(rank);
      EXPECT_EQ(values[rank], 3);
    }
  });
}

TEST(Groups, NameCommunicatorsInAnyOrderAlsoInOneStream) {
  Ranks first(2), second(2);
  eachRank(2, [&](int rank) {
    auto stream = HostStream::make();
    int values[2] = {1, 10};
    for (int round = 0; round < 4; ++round) {
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      for (int which : {(rank + round) % 2, (rank + round + 1) % 2})
        ASSERT_EQ(ncclAllReduce(&values[which], &values[which], 1, ncclInt32, ncclSum,
                                which == 0 ? first[rank] : second[rank], stream->handle()),
                  ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    }
    stream->synchronize();
    EXPECT_EQ(values[0], 16);
    EXPECT_EQ(values[1], 160);
  });
}

/// In whichever place of the group: the others' peers wait for nothing.
TEST(Groups, WithATransferThatIsRefusedLateBeginNothingOfAnyCommunicator) {
  Ranks ranks(2), others(2);
  std::atomic<int> numNamed = 0;
  eachRank(2, [&](int rank) {
    ncclComm_t alone = nullptr;
    int value = rank, other = -1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    if (rank == 1) // until then nobody knows how large the other rank's part is
      while (numNamed == 0)
        std::this_thread::yield();
    ASSERT_EQ(ncclCommSplit(ranks[rank], rank, 0, &alone, nullptr), ncclSuccess);
    if (rank == 0) {
      ASSERT_EQ(ncclSend(&value, 1, ncclInt32, 1, alone, nullptr), ncclSuccess);
      ASSERT_EQ(ncclSend(&value, 1, ncclInt32, 1, others[rank], nullptr), ncclSuccess);
    }
    numNamed = 1;
    EXPECT_EQ(ncclGroupEnd(), rank == 0 ? ncclInvalidArgument : ncclSuccess);
    if (rank == 0) {
      EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("peer is 1, the communicator has 1"),
                std::string::npos)
          << ncclGetLastError(nullptr);
    }
    // It is as if there had been no group.
    value = 7 + rank;
    ASSERT_EQ(rank == 0 ? ncclSend(&value, 1, ncclInt32, 1, others[rank], nullptr)
                        : ncclRecv(&other, 1, ncclInt32, 0, others[rank], nullptr),
              ncclSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(other, rank == 0 ? -1 : 7);
    EXPECT_EQ(allReduceOnce(ranks[rank]), "");
    EXPECT_EQ(ncclCommDestroy(alone), ncclSuccess);
  });
}

TEST(Streams, KeepTheOrderOfACommunicatorsCalls) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    auto first = HostStream::make(), second = HostStream::make();
    // The first call stands behind work that is late, the second call's stream is free.
    auto late = std::make_shared<HostEvent>();
    first->waitFor(late);
    int a = rank + 1, b = 0;
    ASSERT_EQ(ncclAllReduce(&a, &a, 1, ncclInt32, ncclSum, ranks[rank], first->handle()),
              ncclSuccess);
    ASSERT_EQ(ncclAllReduce(&a, &b, 1, ncclInt32, ncclSum, ranks[rank], second->handle()),
              ncclSuccess);
    late->happen();
    second->synchronize();
    EXPECT_EQ(a, 3);
    EXPECT_EQ(b, 6);
  });
}

TEST(Streams, OfAGroupWaitForEachOther) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    auto first = HostStream::make(), second = HostStream::make();
    auto late = std::make_shared<HostEvent>();
    second->waitFor(late);
    int a = 1, b = 1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (const auto &[value, stream] : {std::pair(&a, first), std::pair(&b, second)})
      ASSERT_EQ(ncclAllReduce(value, value, 1, ncclInt32, ncclSum, ranks[rank], stream->handle()),
                ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    auto end = first->record();
    EXPECT_FALSE(end->hasHappened()); // what is late in the second stream is before it
    late->happen();
    end->await();
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 2);
    second->synchronize();
  });
}
