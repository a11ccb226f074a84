// Transfers that go wrong, or wait: what is said, on which ranks, and that it ends.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

void expectSaid(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

/// The communicator's error on both ranks, after a receive of something else than is sent.
void expectMismatch(uint64_t sent, occlDataType_t sentType, uint64_t received,
                    occlDataType_t receivedType, const std::string &said) {
  Ranks ranks(2, withTimeout(20000));
  std::vector<char> buffer(1 << 20);
  ranks.run([&](uint32_t r) {
    int32_t before = 0;
    ASSERT_EQ(r == 0 ? occlSend(&before, 1, occlInt32, 1, ranks[0], nullptr)
                     : occlRecv(&before, 1, occlInt32, 0, ranks[1], nullptr),
              occlSuccess);
    std::vector<char> mine(1 << 20);
    occlResult_t result = r == 0
                              ? occlSend(mine.data(), sent, sentType, 1, ranks[0], nullptr)
                              : occlRecv(mine.data(), received, receivedType, 0, ranks[1], nullptr);
    if (r == 0 && result == occlSuccess) // it was eager: the next call says so
      while ((result = occlSend(nullptr, 0, occlUint8, 0, ranks[0], nullptr)) == occlSuccess)
        std::this_thread::sleep_for(1ms);
    EXPECT_EQ(result, occlMismatch);
    expectSaid(occlGetLastError(), "transfer 1 from rank 0 to rank 1");
    expectSaid(occlCommGetLastError(ranks[r]), said);
  });
}

TEST(TransferFailure, MismatchesNameBothSidesOnBoth) {
  expectMismatch(100, occlFloat32, 99, occlFloat32,
                 "rank 0 sends 100 elements of float32, rank 1 receives 99 of float32");
  expectMismatch(100, occlFloat32, 100, occlInt32,
                 "rank 0 sends 100 elements of float32, rank 1 receives 100 of int32");
  expectMismatch(0, occlUint8, 1, occlUint8, "rank 0 sends 0 elements");
  expectMismatch(1, occlUint8, 0, occlUint8, "rank 1 receives 0 of uint8");
  expectMismatch(200000, occlInt32, 100000, occlInt32, "rank 0 sends 200000 elements");
  expectMismatch(100000, occlInt32, 200000, occlInt32, "rank 1 receives 200000 of int32");
}

/// The sender's data are large, and lie where it says; what is received is small.
TEST(TransferFailure, EqualCountsOfALargeAndASmallTypeAreAMismatch) {
  expectMismatch(10000, occlFloat64, 10000, occlUint8,
                 "rank 0 sends 10000 elements of float64, rank 1 receives 10000 of uint8");
  expectMismatch(10000, occlUint8, 10000, occlFloat64,
                 "rank 0 sends 10000 elements of uint8, rank 1 receives 10000 of float64");
}

TEST(TransferFailure, DeadlinesNameWhatIsWaitedFor) {
  std::vector<int32_t> buffer(100000);
  {
    Ranks ranks(3, withTimeout(100));
    EXPECT_EQ(occlRecv(buffer.data(), 10, occlInt32, 2, ranks[0], nullptr), occlTimeout);
    expectSaid(occlGetLastError(), "transfer 0 from rank 2 to rank 0 did not end on rank 0");
    expectSaid(occlGetLastError(), "transfer 0, 10 elements of int32, waits for data from rank 2");
    EXPECT_EQ(occlSend(buffer.data(), 10, occlInt32, 1, ranks[2], nullptr), occlTimeout)
        << "the communicator has failed on all ranks";
  }
  {
    Ranks ranks(2, withTimeout(100));
    EXPECT_EQ(occlSend(buffer.data(), 100000, occlInt32, 1, ranks[0], nullptr), occlTimeout);
    expectSaid(occlGetLastError(), "waits for rank 1 to read what it was sent");
  }
  Ranks ranks(2, withTimeout(100));
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  for (uint64_t count : {1, 2, 3})
    ASSERT_EQ(occlRecv(buffer.data(), count, occlInt32, 1, ranks[0], nullptr), occlSuccess);
  ASSERT_EQ(occlSend(buffer.data(), 1, occlInt32, 0, ranks[0], nullptr), occlSuccess);
  EXPECT_EQ(occlGroupEnd(), occlTimeout);
  expectSaid(occlGetLastError(), "transfers 0 to 2 from rank 1 to rank 0");
}

/// Groups are for these.
TEST(TransferFailure, LargeSendsInACycleWaitForEachOther) {
  Ranks ranks(2, withTimeout(200));
  ranks.run([&](uint32_t r) {
    std::vector<char> data(OCCL_EAGER_BYTES + 1);
    EXPECT_EQ(occlSend(data.data(), data.size(), occlUint8, 1 - r, ranks[r], nullptr), occlTimeout);
    expectSaid(occlGetLastError(), "to read what it was sent");
  });
  Ranks alone(1, withTimeout(200));
  std::vector<char> data(OCCL_EAGER_BYTES + 1);
  EXPECT_EQ(occlSend(data.data(), data.size(), occlUint8, 0, alone[0], nullptr), occlTimeout);
  expectSaid(occlGetLastError(), "from rank 0 to rank 0");
}

/// More than the ring has room for.
TEST(TransferFailure, EagerSendsWaitForRoom) {
  Ranks ranks(2, withTimeout(200));
  std::vector<char> data(OCCL_EAGER_BYTES);
  occlResult_t result = occlSuccess;
  uint32_t sent = 0;
  while (result == occlSuccess && sent < 100) {
    result = occlSend(data.data(), data.size(), occlUint8, 1, ranks[0], nullptr);
    sent += result == occlSuccess;
  }
  EXPECT_EQ(result, occlTimeout);
  EXPECT_EQ(sent, 3u);
}

TEST(TransferFailure, TheReportNamesTransferAndRank) {
  Ranks ranks(3);
  std::vector<int32_t> large(100000);
  std::thread receiver(
      [&] { EXPECT_EQ(occlRecv(large.data(), 7, occlInt32, 2, ranks[1], nullptr), occlAborted); });
  std::vector<int32_t> other(100000);
  std::thread sender([&] {
    EXPECT_EQ(occlSend(other.data(), 100000, occlInt32, 1, ranks[0], nullptr), occlAborted);
  });
  std::string text;
  const auto end = std::chrono::steady_clock::now() + 20s;
  const std::string waits[] = {"rank 1 waits for rank 2 (", "in transfer 0 from rank 2 to rank 1",
                               "rank 0 waits for rank 1 (", "in transfer 0 from rank 0 to rank 1",
                               "rank 2 waits for nobody"};
  auto isComplete = [&] {
    text = reportOf(ranks[2]);
    for (const std::string &wait : waits)
      if (text.find(wait) == std::string::npos)
        return false;
    return true;
  };
  while (!isComplete() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(isComplete()) << text;
  EXPECT_EQ(text.find("not submitted by"), std::string::npos) << text;
  EXPECT_EQ(occlCommAbort(ranks[2]), occlSuccess);
  receiver.join();
  sender.join();
}

TEST(TransferFailure, ALongWaitIsSaidAndGoesOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // nobody has asked how long that is
  EXPECT_EXIT(
      {
        setenv("OCCL_LONG_WAIT_MS", "200", 1);
        Ranks ranks(2);
        std::thread late([&] {
          std::this_thread::sleep_for(1500ms);
          occlSend(nullptr, 0, occlUint8, 1, ranks[0], nullptr);
        });
        occlResult_t result = occlRecv(nullptr, 0, occlUint8, 0, ranks[1], nullptr);
        late.join();
        std::_Exit(result);
      },
      ::testing::ExitedWithCode(0),
      "transfer 0 from rank 0 to rank 1 has been in flight on rank 1 .*waits for data from rank 0");
}

/// In the middle of whatever it is; and buffers are not accessed any more when the calls return.
TEST(TransferFailure, AbortInTheMiddle) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = printedSeed();
  for (uint32_t i = 0; i < 15; ++i) {
    Ranks ranks(kRanks);
    std::atomic<uint32_t> failed{0};
    std::thread aborter([&] {
      std::this_thread::sleep_for(1ms * (i % 5) + 100us * i);
      EXPECT_EQ(occlCommAbort(ranks[i % kRanks]), occlSuccess);
    });
    ranks.run([&](uint32_t r) {
      std::string wrong;
      for (uint64_t round = 0; wrong.empty(); ++round) {
        wrong = TransferGraph(kRanks, 60, 2000000, seed + round).run(ranks[r], r);
        EXPECT_EQ(wrong.find("wrong data"), std::string::npos) << wrong;
      }
      failed += wrong.find("occlCommAbort was called") != std::string::npos;
      while (occlGroupEnd() == occlSuccess)
        ; // of a call that was refused in the middle of its group
    });
    aborter.join();
    EXPECT_EQ(failed, kRanks);
  }
}

TEST(TransferFailure, ARankThatHasLeftIsNamed) {
  Ranks ranks(2);
  int32_t value = 5, got = 0;
  ASSERT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlSuccess);
  ranks.destroy(0);
  EXPECT_EQ(occlRecv(&got, 1, occlInt32, 0, ranks[1], nullptr), occlSuccess)
      << "it was sent before";
  EXPECT_EQ(got, 5);
  EXPECT_EQ(occlRecv(&got, 1, occlInt32, 0, ranks[1], nullptr), occlPeerFailed);
  expectSaid(occlGetLastError(), "rank 0 has destroyed its communicator");
  expectSaid(occlGetLastError(), "transfer 1 from rank 0 to rank 1");
}

TEST(TransferFailure, InvalidArgumentsAreRefused) {
  Ranks ranks(2);
  int32_t value = 1;
  auto refused = [&](occlResult_t result, const char *said) {
    EXPECT_EQ(result, occlInvalidArgument);
    expectSaid(occlGetLastError(), said);
  };
  auto *stream = reinterpret_cast<CUstream_st *>(8);
  refused(occlSend(&value, 1, occlInt32, 2, ranks[0], nullptr), "peer is 2");
  refused(occlRecv(&value, 1, occlInt32, 2, ranks[0], nullptr), "peer is 2");
  refused(occlSend(nullptr, 1, occlInt32, 1, ranks[0], nullptr), "buffer is NULL");
  refused(occlSend(&value, 1, static_cast<occlDataType_t>(99), 1, ranks[0], nullptr),
          "dataType 99");
  refused(occlSend(&value, uint64_t{1} << 59, occlUint8, 1, ranks[0], nullptr), "2^58");
  refused(occlSend(&value, 1, occlInt32, 1, ranks[0], stream), "stream must be NULL");
  refused(occlSend(&value, 1, occlInt32, 1, nullptr, nullptr), "comm must not be NULL");
  refused(occlGroupEnd(), "occlGroupStart");
  const uint64_t far = uint64_t{1} << 59, none[2] = {0, 0}, displacements[2] = {far, far + 1};
  refused(occlGatherv(&value, 1, &value, none, none, occlInt32, 2, ranks[0], nullptr), "root is 2");
  refused(occlGatherv(&value, 1, &value, nullptr, none, occlInt32, 0, ranks[0], nullptr),
          "must not be NULL");
  refused(occlScatterv(&value, none, nullptr, &value, 0, occlInt32, 0, ranks[0], nullptr),
          "must not be NULL");
  refused(
      occlAllToAllv(&value, none, displacements, &value, none, none, occlInt32, ranks[0], nullptr),
      "displacement 576460752303423488 is"); // the first
  refused(occlAllToAllv(&value, none, none, &value, nullptr, none, occlInt32, ranks[0], nullptr),
          "must not be NULL");
  // Nothing was done by any of these.
  ranks.run([&](uint32_t r) {
    int32_t mine = 3;
    EXPECT_EQ(r == 0 ? occlSend(&mine, 1, occlInt32, 1, ranks[0], nullptr)
                     : occlRecv(&mine, 1, occlInt32, 0, ranks[1], nullptr),
              occlSuccess);
  });
}

/// Nothing but a rank's own block is to be moved.
TEST(TransferFailure, ABlockOfOnesOwnWithoutBuffersIsRefused) {
  Ranks ranks(1);
  const uint64_t five[1] = {5}, none[1] = {0};
  const auto exchange = [&](const uint64_t *counts) {
    return occlAllToAllv(nullptr, counts, none, nullptr, counts, none, occlInt32, ranks[0],
                         nullptr);
  };
  EXPECT_EQ(exchange(five), occlInvalidArgument);
  expectSaid(occlGetLastError(), "buffer is NULL and count is 5");
  EXPECT_EQ(exchange(none), occlSuccess);
}

/// A rank whose own counts disagree has a pair that disagrees: all ranks learn that.
TEST(TransferFailure, OwnCountsThatDisagree) {
  constexpr uint32_t kRanks = 3;
  for (bool isInPlace : {false, true}) {
    Ranks ranks(kRanks, withTimeout(20000));
    ranks.run([&](uint32_t r) {
      std::vector<int32_t> sent(6, 1), got(18);
      const uint64_t own = r == 1 ? 6 : 5, displacements[kRanks] = {0, 6, 12};
      uint64_t counts[kRanks] = {5, 5, 5};
      counts[r] = own;
      const int32_t *from = isInPlace ? got.data() + displacements[r] : sent.data();
      EXPECT_EQ(
          occlAllGatherv(from, 5, got.data(), counts, displacements, occlInt32, ranks[r], nullptr),
          occlMismatch);
      expectSaid(occlGetLastError(), "rank 1 sends 5 elements of int32, rank 1 receives 6");
    });
  }
}

/// What a group has of another communicator takes place on all ranks, whenever they hear that one
/// has failed.
TEST(TransferFailure, AFailedCommunicatorOfAGroupHoldsUpNoOther) {
  Ranks failing(2, withTimeout(20000)), other(2, withTimeout(20000));
  std::atomic<bool> isMade{false}, hasFailed{false};
  other.run([&](uint32_t r) {
    int32_t mine = 10 + static_cast<int32_t>(r), theirs = 0, ofFailed = 0;
    ASSERT_EQ(occlGroupStart(), occlSuccess);
    if (r == 1)
      while (!hasFailed)
        std::this_thread::yield();
    EXPECT_EQ(occlRecv(&ofFailed, 1, occlInt32, 1 - r, failing[r], nullptr), occlSuccess);
    ASSERT_EQ(occlSend(&mine, 1, occlInt32, 1 - r, other[r], nullptr), occlSuccess);
    ASSERT_EQ(occlRecv(&theirs, 1, occlInt32, 1 - r, other[r], nullptr), occlSuccess);
    if (r == 0) {
      isMade = true;
      EXPECT_EQ(occlCommAbort(failing[0]), occlSuccess);
      hasFailed = true;
    }
    EXPECT_EQ(occlGroupEnd(), occlAborted);
    EXPECT_EQ(theirs, 11 - static_cast<int32_t>(r)) << "rank " << r;
  });
}

TEST(TransferFailure, ACallbackThatLeavesAGroupOpenHasFailed) {
  Ranks ranks(1);
  Job job(0, handleOf(plan::testing::ringAllReduce(1)), 10);
  occlRequest_t request = 0;
  occlCallback_t callback = [](occlRequest_t, occlResult_t, void *) { occlGroupStart(); };
  ASSERT_EQ(job.submit(ranks[0], 0, &request, callback), occlSuccess);
  occlWait(ranks[0], request);
  while (*occlCommGetLastError(ranks[0]) == '\0')
    std::this_thread::yield();
  expectSaid(occlCommGetLastError(ranks[0]), "has not ended a group");
}

TEST(TransferFailure, AGroupWithARefusedCallIsRefusedWhole) {
  Ranks ranks(2, withTimeout(20000));
  int32_t value = 1;
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  ASSERT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlSuccess);
  EXPECT_EQ(occlSend(&value, 1, occlInt32, 7, ranks[0], nullptr), occlInvalidArgument);
  EXPECT_EQ(occlGroupEnd(), occlInvalidArgument);
  expectSaid(occlGetLastError(), "peer is 7");
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlAllReduce(&value, &value, 1, occlInt32, occlSum, ranks[0], nullptr),
            occlInvalidArgument);
  expectSaid(occlGetLastError(), "no part of a group");
  EXPECT_EQ(occlGroupEnd(), occlInvalidArgument);
  // The first group has sent nothing.
  value = 2;
  ASSERT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlSuccess);
  int32_t got = 0;
  ASSERT_EQ(occlRecv(&got, 1, occlInt32, 0, ranks[1], nullptr), occlSuccess);
  EXPECT_EQ(got, 2);
}

TEST(TransferFailure, WithoutPreemptionThereAreNone) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 2;
  Ranks ranks(2, config);
  EXPECT_EQ(occlSend(nullptr, 0, occlUint8, 1, ranks[0], nullptr), occlInvalidArgument);
  expectSaid(occlGetLastError(), "preemption");
}

TEST(TransferFailure, AfterAFailureCallsReturnWhy) {
  Ranks ranks(2);
  ASSERT_EQ(occlCommAbort(ranks[1]), occlSuccess);
  int32_t value = 1;
  EXPECT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlAborted);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlSuccess) << "not begun";
  EXPECT_EQ(occlGroupEnd(), occlAborted);
}

} // namespace
} // namespace occl::communicator::testing
