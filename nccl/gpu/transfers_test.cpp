// Sends and receives as work of streams on devices.
#include "nccl/gpu/device_ranks.h"
#include "nccl/testing/ranks.h"

#include <random>

namespace occl::nccl::testing {
namespace {

class TransfersOnDevice : public OnDevice {
protected:
  Rank &at(int rank) { return ranks[static_cast<size_t>(rank)]; }
  static std::vector<int> valuesOf(int rank, size_t count) {
    std::vector<int> values(count);
    for (size_t i = 0; i < count; ++i)
      values[i] = rank * 1'000'000 + static_cast<int>(i);
    return values;
  }
};

/// As PyTorch's pipelines do: even ranks send first, odd ones receive first. Of no elements at
/// first, so that these are the first work of the streams.
TEST_F(TransfersOnDevice, RanksSendToTheNextOneByOne) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    for (int r = 0; r < size(); ++r)
      give(r, valuesOf(r, count));
    inThreads([&](int rank) -> std::string {
      const Rank &on = at(rank);
      const int next = (rank + 1) % size(), before = (rank + size() - 1) % size();
      std::string wrong;
      for (const bool sends : {rank % 2 == 0, rank % 2 != 0})
        if (wrong.empty())
          wrong = sends ? check("ncclSend",
                                ncclSend(on.send, count, ncclInt32, next, on.comm, on.stream))
                        : check("ncclRecv",
                                ncclRecv(on.recv, count, ncclInt32, before, on.comm, on.stream));
      if (wrong.empty())
        wrong = synchronize(on.stream);
      if (wrong.empty() && taken(rank, count) != valuesOf(before, count))
        wrong = "rank " + std::to_string(rank) + " has something else";
      return wrong;
    });
  }
}

/// As MoE layers do, also from one thread that has all ranks; a group beyond 256 operations.
TEST_F(TransfersOnDevice, AllToAllOfManyInOneGroup) {
  constexpr size_t kPieces = 200, kCount = 777;
  const size_t all = kPieces * kCount;
  for (int r = 0; r < size(); ++r)
    give(r, valuesOf(r, all * ranks.size()));
  bounded([&] {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < size(); ++r)
      for (int q = 0; q < size(); ++q)
        for (size_t i = 0; i < kPieces; ++i) {
          const Rank &on = at(r);
          const size_t offset = (static_cast<size_t>(q) * all + i * kCount) * sizeof(int);
          ASSERT_EQ(ncclSend(on.send + offset, kCount, ncclInt32, q, on.comm, on.stream),
                    ncclSuccess);
          ASSERT_EQ(ncclRecv(on.recv + offset, kCount, ncclInt32, q, on.comm, on.stream),
                    ncclSuccess);
        }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << lastError();
    for (int r = 0; r < size(); ++r)
      ASSERT_EQ(synchronize(at(r).stream), "");
  });
  for (int r = 0; r < size(); ++r) {
    const std::vector<int> got = taken(r, all * ranks.size());
    for (int q = 0; q < size(); ++q)
      for (size_t i = 0; i < all; ++i)
        ASSERT_EQ(got[static_cast<size_t>(q) * all + i],
                  q * 1'000'000 + static_cast<int>(static_cast<size_t>(r) * all + i));
  }
}

/// What the group has of the other one takes place, as its peers count on it.
TEST_F(TransfersOnDevice, OneCommunicatorOfAGroupHasFailedAndTheOtherGoesOn) {
  std::vector<ncclComm_t> others(ranks.size());
  const std::vector<int> devices(ranks.size(), 0);
  ASSERT_EQ(ncclCommInitAll(others.data(), size(), devices.data()), ncclSuccess) << lastError();
  std::vector<int> onHost(10);
  EXPECT_NE(
      ncclAllReduce(onHost.data(), at(0).recv, 10, ncclInt32, ncclSum, at(0).comm, at(0).stream),
      ncclSuccess);
  for (const Rank &rank : ranks)
    ASSERT_NE(failureOf(rank.comm), ncclSuccess);
  constexpr size_t kCount = 5000;
  for (int r = 0; r < size(); ++r)
    give(r, valuesOf(r, kCount));
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    const ncclComm_t other = others[static_cast<size_t>(rank)];
    const int next = (rank + 1) % size(), before = (rank + size() - 1) % size();
    ncclGroupStart();
    for (ncclComm_t comm : {on.comm, other}) {
      char *to = comm == other ? on.recv : on.recv + kBytes / 2;
      ncclSend(on.send, kCount, ncclInt32, next, comm, on.stream);
      ncclRecv(to, kCount, ncclInt32, before, comm, on.stream);
    }
    if (ncclGroupEnd() == ncclSuccess)
      return "the group's end says nothing of the failure";
    std::string wrong = synchronize(on.stream);
    ncclResult_t state = ncclInternalError;
    if (wrong.empty())
      wrong = check("ncclCommGetAsyncError", ncclCommGetAsyncError(other, &state));
    if (wrong.empty() && state != ncclSuccess)
      wrong = "the other one has failed, too: " + lastError();
    if (wrong.empty() && taken(rank, kCount) != valuesOf(before, kCount))
      wrong = "it has received something else";
    return wrong;
  });
  for (ncclComm_t comm : others)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << lastError();
}

TEST_F(TransfersOnDevice, OtherCountsAreInvalidUsageOnBothSides) {
  if (size() < 2)
    GTEST_SKIP() << "one rank";
  inThreads([&](int rank) -> std::string {
    const Rank &on = at(rank);
    if (rank == 0)
      ncclSend(on.send, 10, ncclInt32, 1, on.comm, on.stream);
    if (rank == 1)
      ncclRecv(on.recv, 11, ncclInt32, 0, on.comm, on.stream);
    return failureOf(on.comm) == ncclInvalidUsage ? "" : "it is taken";
  });
}

} // namespace
} // namespace occl::nccl::testing
