// Communicators of another one's ranks and of new ones, which are threads here; processes:
// process_test, and of another NCCL: fallback_test.
#include "nccl/abi/later.h"
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

std::string last() { return ncclGetLastError(nullptr); }

void expectSum(ncclComm_t comm, int rank, int size) {
  int isRank = -1, isSize = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &isRank), ncclSuccess) << last();
  EXPECT_EQ(ncclCommCount(comm, &isSize), ncclSuccess) << last();
  EXPECT_EQ(isRank, rank);
  EXPECT_EQ(isSize, size);
  EXPECT_EQ(allReduceOnce(comm), "");
}

/// An id that one rank makes and new ones wait for.
class GrowId {
public:
  void make(ncclComm_t comm) {
    ncclUniqueId id{};
    EXPECT_EQ(ncclCommGetUniqueId(comm, &id), ncclSuccess) << last();
    promise.set_value(id);
  }
  ncclUniqueId get() const { return future.get(); }

private:
  std::promise<ncclUniqueId> promise;
  std::shared_future<ncclUniqueId> future{promise.get_future()};
};

/// Of `comm`, or NULL for a new rank.
ncclComm_t grow(ncclComm_t comm, int numRanks, const ncclUniqueId *id, int rank) {
  ncclComm_t made = nullptr;
  EXPECT_EQ(ncclCommGrow(comm, numRanks, id, comm ? -1 : rank, &made, nullptr), ncclSuccess)
      << last();
  return made;
}

} // namespace

TEST(Grow, KeepsTheRanksThatThereAreAndAddsNewOnes) {
  Ranks ranks(3);
  GrowId id;
  eachRank(5, [&](int rank) {
    const bool isNew = rank >= 3;
    ncclUniqueId known;
    if (rank == 1)
      id.make(ranks[1]);
    if (rank == 1 || isNew)
      known = id.get();
    const ncclComm_t comm =
        grow(isNew ? nullptr : ranks[rank], 5, rank == 1 || isNew ? &known : nullptr, rank);
    expectSum(comm, rank, 5);
    if (!isNew) { // the other one is as it was, and may go
      EXPECT_EQ(allReduceOnce(ranks[rank]), "");
      EXPECT_EQ(ncclCommDestroy(std::exchange(ranks[rank], nullptr)), ncclSuccess);
    }
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Grow, ReturnsBeforeAnybodyElseHasCome) {
  Ranks ranks(2);
  bounded([&] {
    ncclComm_t comms[3];
    ncclUniqueId id;
    comms[0] = grow(ranks[0], 3, nullptr, 0); // there is no id yet
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_EQ(ncclCommGetUniqueId(ranks[1], &id), ncclSuccess);
    comms[1] = grow(ranks[1], 3, &id, 1);
    comms[2] = grow(nullptr, 3, &id, 2);
    for (int rank = 0; rank < 3; ++rank) {
      int own = -1;
      EXPECT_EQ(ncclCommUserRank(comms[rank], &own), ncclSuccess) << last();
      EXPECT_EQ(own, rank);
    }
    for (ncclComm_t comm : comms)
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Grow, AgainAndOfWhatHasGrownOrWasSplit) {
  Ranks ranks(4);
  GrowId first, second, third;
  eachRank(6, [&](int rank) {
    // Each half by one: 0, 1, 4 and 2, 3, 5.
    const int half = rank < 4 ? rank / 2 : rank - 4, place = rank < 4 ? rank % 2 : 2;
    GrowId &id = half == 0 ? first : second;
    ncclComm_t part = nullptr, whole = nullptr;
    if (rank < 4) {
      ASSERT_EQ(ncclCommSplit(ranks[rank], half, rank, &part, nullptr), ncclSuccess);
    }
    if (place == 0)
      id.make(part);
    const ncclUniqueId known = place == 2 ? id.get() : ncclUniqueId{};
    const ncclComm_t more = grow(part, 3, place == 2 ? &known : nullptr, 2);
    expectSum(more, place, 3);
    // The first of them by the ranks of the second.
    if (rank == 4) // it was new a moment ago
      third.make(more);
    const ncclUniqueId joined = half == 1 ? third.get() : ncclUniqueId{};
    whole = grow(half == 0 ? more : nullptr, 6, half == 1 ? &joined : nullptr,
                 half == 0 ? place : 3 + place);
    expectSum(whole, 3 * half + place, 6);
    for (ncclComm_t comm : {part, more, whole})
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Grow, OfOneCommunicatorTwice) {
  Ranks ranks(1);
  bounded([&] {
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId id, again;
      ASSERT_EQ(ncclCommGetUniqueId(ranks[0], &id), ncclSuccess) << last();
      ASSERT_EQ(ncclCommGetUniqueId(ranks[0], &again), ncclSuccess) << last();
      ncclComm_t comms[2] = {grow(ranks[0], 2, i == 0 ? &id : nullptr, 0),
                             grow(nullptr, 2, &again, 1)};
      int size = 0;
      EXPECT_EQ(ncclCommCount(comms[0], &size), ncclSuccess);
      EXPECT_EQ(size, 2);
      ncclGroupStart();
      float values[2] = {1, 2};
      for (int r = 0; r < 2; ++r)
        ncclAllReduce(&values[r], &values[r], 1, ncclFloat32, ncclSum, comms[r], nullptr);
      EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << last();
      EXPECT_EQ(values[1], 3);
      for (ncclComm_t comm : comms)
        EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
  });
}

TEST(Grow, WithoutAnIdIsEndedByAnAbort) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    const ncclComm_t comm = grow(ranks[rank], 3, nullptr, rank);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    // What is made of the parent afterwards is made.
    ncclComm_t half = nullptr;
    ASSERT_EQ(ncclCommSplit(ranks[rank], 0, rank, &half, nullptr), ncclSuccess);
    expectSum(half, rank, 2);
    EXPECT_EQ(ncclCommDestroy(half), ncclSuccess);
    EXPECT_EQ(allReduceOnce(ranks[rank]), "");
  });
}

TEST(Grow, WithTheNumberOfARankThatThereIsFailsOnAll) {
  Ranks ranks(2);
  GrowId id;
  eachRank(3, [&](int rank) {
    if (rank == 0)
      id.make(ranks[0]);
    const ncclUniqueId known = rank == 2 ? id.get() : ncclUniqueId{};
    const ncclComm_t comm = rank < 2 ? grow(ranks[rank], 3, nullptr, rank)
                                     : grow(nullptr, 3, &known, 1); // it should be 2
    float value = 1;
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr),
              ncclInvalidArgument);
    EXPECT_NE(last().find("rank 1 on "), std::string::npos) << last();
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
    if (rank < 2) {
      EXPECT_EQ(allReduceOnce(ranks[rank]), "");
    }
  });
}

TEST(Grow, RefusesWhatIsWrong) {
  Ranks ranks(2);
  ncclComm_t comm = nullptr;
  ncclUniqueId id, other;
  ASSERT_EQ(ncclGetUniqueId(&other), ncclSuccess);
  ASSERT_EQ(ncclCommGetUniqueId(ranks[0], &id), ncclSuccess);
  EXPECT_EQ(ncclCommGetUniqueId(ranks[0], nullptr), ncclInvalidArgument);
  ncclConfig_t config = kNcclConfigInitializer;
  config.magic = 1;
  const auto expect = [&](ncclResult_t result, const char *part) {
    EXPECT_EQ(result, ncclInvalidArgument);
    EXPECT_NE(last().find(part), std::string::npos) << last();
    EXPECT_EQ(comm, nullptr);
  };
  expect(ncclCommGrow(ranks[0], 3, &id, -1, nullptr, nullptr), "newcomm must not be NULL");
  expect(ncclCommGrow(ranks[0], 2, &id, -1, &comm, nullptr), "must be more than the 2");
  expect(ncclCommGrow(ranks[0], 3, &id, 1, &comm, nullptr), "must be -1");
  expect(ncclCommGrow(ranks[0], 3, &id, -1, &comm, &config), "NCCL_CONFIG_INITIALIZER");
  expect(ncclCommGrow(nullptr, 3, nullptr, 2, &comm, nullptr), "must not be NULL");
  for (int rank : {-1, 0, 3})
    expect(ncclCommGrow(nullptr, 3, &id, rank, &comm, nullptr), "new ranks have the numbers");
  expect(ncclCommGrow(nullptr, 3, &id, 2, &comm, &config), "NCCL_CONFIG_INITIALIZER");
  const ncclUniqueId none{};
  expect(ncclCommGrow(nullptr, 3, &none, 2, &comm, nullptr), "not one of OCCL's");
  // Of an id of something else it is the communicator that fails, as it may be another NCCL's.
  ncclComm_t made = grow(ranks[0], 3, &other, 0);
  float value = 1;
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, made, nullptr),
            ncclInvalidArgument);
  EXPECT_NE(last().find("uniqueId is not what"), std::string::npos) << last();
  EXPECT_EQ(ncclCommDestroy(made), ncclSuccess);
}
