// Partitioned transfers that end badly, or wait: what is said, on which ranks, and that it ends.
#include "runtime/api/occl_insight.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <chrono>
#include <memory>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

void expectSaid(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

/// Both sides say what the sender has not marked, or that data are missing.
TEST(PartitionedFailure, ADeadlineNamesWhatIsMissing) {
  const Pair pair(5, 2, 10, 0, withTimeout(300));
  pair.start();
  ASSERT_EQ(occlPready(pair.send, 1), occlSuccess);
  ASSERT_EQ(occlPready(pair.send, 4), occlSuccess);
  EXPECT_EQ(occlPwait(pair.send), occlTimeout);
  const std::string text = occlCommGetLastError(pair.ranks[0]);
  expectSaid(text, "from rank 0 to rank 1, tag 7, epoch 1 did not end on rank");
  EXPECT_TRUE(text.find("partition 0 and 2 more of 5 have not been marked ready") !=
                  std::string::npos ||
              text.find("partition 0 of the sender is missing, waits for data from rank 0") !=
                  std::string::npos)
      << text;
  EXPECT_EQ(occlPwait(pair.receive), occlTimeout);
  // No epoch again, and marks do nothing.
  EXPECT_EQ(occlPstart(pair.send), occlTimeout);
  EXPECT_EQ(occlPready(pair.send, 0), occlTimeout);
  EXPECT_EQ(occlPprepare(pair.send), occlInvalidArgument);
}

/// Who marks all and waits is told of the receiver that does not come.
TEST(PartitionedFailure, NoReceive) {
  const Ranks ranks(2, withTimeout(300));
  int32_t value = 1;
  Part send, receive;
  ASSERT_EQ(occlPsendInit(ranks[0], &value, 1, 1, occlInt32, 1, 0, nullptr, &send), occlSuccess);
  ASSERT_EQ(occlPrecvInit(ranks[1], &value, 1, 1, occlInt32, 0, 1, nullptr, &receive), occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPready(send, 0), occlSuccess);
  EXPECT_EQ(occlPwait(send), occlTimeout);
  expectSaid(lastText(),
             "partitioned send from rank 0 to rank 1, tag 0, epoch 1 did not end on "
             "rank 0 before its deadline: waits for rank 1, which has no receive for it");
}

TEST(PartitionedFailure, NoSend) {
  const Ranks ranks(2, withTimeout(300));
  int32_t value = 1;
  Part receive;
  ASSERT_EQ(occlPrecvInit(ranks[1], &value, 1, 1, occlInt32, 0, 1, nullptr, &receive), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  int32_t arrived = 0;
  occlResult_t result = occlSuccess;
  while ((result = occlParrived(receive, 0, &arrived)) == occlSuccess) // also asking alone ends
    ASSERT_EQ(arrived, 0);
  EXPECT_EQ(result, occlTimeout);
  expectSaid(lastText(), "waits for rank 0, which has no send for it");
}

TEST(PartitionedFailure, Abort) {
  const Pair pair(5, 2, 10);
  pair.start();
  ASSERT_EQ(occlPready(pair.send, 1), occlSuccess);
  std::thread aborter([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(occlCommAbort(pair.ranks[1]), occlSuccess);
  });
  EXPECT_EQ(occlPwait(pair.send), occlAborted);
  EXPECT_EQ(occlPwait(pair.receive), occlAborted);
  aborter.join();
  EXPECT_EQ(occlPstart(pair.receive), occlAborted);
  EXPECT_EQ(occlPready(pair.send, 0), occlAborted);
}

/// What a failure has ended need not be waited for.
TEST(PartitionedFailure, FreeAfterAbort) {
  Pair pair(5, 2, 10);
  pair.start();
  EXPECT_EQ(occlCommAbort(pair.ranks[0]), occlSuccess);
  while (pair.send.free() == occlInvalidArgument)
    std::this_thread::yield();
  while (pair.receive.free() == occlInvalidArgument)
    std::this_thread::yield();
}

TEST(PartitionedFailure, ARankThatLeavesIsNamed) {
  for (bool isSender : {true, false}) {
    Pair pair(3, 3, 9, 0, withTimeout(20000));
    ASSERT_EQ(occlPstart(isSender ? pair.receive : pair.send), occlSuccess);
    if (!isSender) {
      ASSERT_EQ(occlPreadyRange(pair.send, 0, 2), occlSuccess);
    }
    (isSender ? pair.send : pair.receive).free();
    pair.ranks.destroy(isSender ? 0 : 1);
    const occlResult_t result = occlPwait(isSender ? pair.receive : pair.send);
    // Who frees first is told of as well.
    EXPECT_TRUE(result == occlPeerFailed || result == occlMismatch) << result;
    expectSaid(lastText(), isSender ? "rank 0 has" : "rank 1 has");
    expectSaid(lastText(), "tag 7, epoch 1");
  }
}

/// Its requests go with it.
TEST(PartitionedFailure, DestroyWithRequests) {
  std::vector<int32_t> source(8), target(8); // they live longer
  const Ranks ranks(2);
  occlPart_t send = nullptr, receive = nullptr, last = nullptr;
  ASSERT_EQ(occlPsendInit(ranks[0], source.data(), 4, 2, occlInt32, 1, 0, nullptr, &send),
            occlSuccess);
  ASSERT_EQ(occlPrecvInit(ranks[1], target.data(), 4, 2, occlInt32, 0, 0, nullptr, &receive),
            occlSuccess);
  ASSERT_EQ(occlPrecvInit(ranks[1], target.data(), 4, 2, occlInt32, 0, 0, nullptr, &last),
            occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 3), occlSuccess);
}

TEST(PartitionedFailure, ReportsNameIt) {
  const Pair pair(2, 2, 2, 0, withTimeout(20000));
  pair.start();
  const std::string expected =
      "rank 1 waits for rank 0 (data) in epoch 1 of a partitioned transfer "
      "from rank 0 to rank 1";
  std::string report; // until somebody has looked at it
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (report.find(expected) == std::string::npos && std::chrono::steady_clock::now() < end)
    report = reportOf(pair.ranks[1]);
  expectSaid(report, expected);
  ASSERT_EQ(occlPreadyRange(pair.send, 0, 1), occlSuccess);
  pair.wait();
}

} // namespace
} // namespace occl::communicator::testing
