// What is wrong is said, with one clear text, and nothing else changes. The names are those of the
// subjects of the suite of the MPI Forum's partitioned tests, each with a test of its own here,
// from what the standard says.
#include "runtime/api/occl_transfer.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <algorithm>
#include <array>
#include <limits>

namespace occl::communicator::testing {
namespace {

constexpr auto kInvalid = occlInvalidArgument;

/// Of 40 int32 between ranks 0 and 1.
class PartitionedMisuse : public ::testing::Test {
protected:
  occlResult_t makeSend(int64_t partitions, uint64_t count, int64_t to, int64_t tag, Part &part,
                        occlDataType_t type = occlInt32) {
    return occlPsendInit(ranks[0], source.data(), partitions, count, type, to, tag, nullptr, &part);
  }
  occlResult_t makeReceive(int64_t partitions, uint64_t count, int64_t from, int64_t tag,
                           Part &part, occlDataType_t type = occlInt32) {
    return occlPrecvInit(ranks[1], target.data(), partitions, count, type, from, tag, nullptr,
                         &part);
  }
  /// A pair that has begun.
  void begin(int64_t sent = 4, int64_t received = 4) {
    make(sent, received);
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
  }
  void make(int64_t sent = 4, int64_t received = 4) {
    ASSERT_EQ(makeSend(sent, 40 / static_cast<uint64_t>(sent), 1, 3, send), occlSuccess);
    ASSERT_EQ(makeReceive(received, 40 / static_cast<uint64_t>(received), 0, 3, receive),
              occlSuccess);
  }
  /// What was refused has changed nothing: the epoch ends with what was not marked before.
  void finish(const std::vector<int64_t> &marks) {
    EXPECT_EQ(occlPreadyList(send, marks.size(), marks.data()), occlSuccess) << lastText();
    EXPECT_EQ(occlPwait(receive), occlSuccess) << lastText();
    EXPECT_EQ(occlPwait(send), occlSuccess) << lastText();
    EXPECT_EQ(target, source);
  }
  void expectMismatch(Part &sent, Part &received, const std::string &text) {
    occlPstart(sent); // whichever side comes to it first
    occlPstart(received);
    EXPECT_EQ(occlPwait(received), occlMismatch) << text;
    EXPECT_EQ(occlPstart(sent), occlMismatch);
    EXPECT_TRUE(hasText(text)) << lastText();
  }

  std::vector<int32_t> source = numbersFrom(1, 40), target = std::vector<int32_t>(40);
  Ranks ranks{2, withTimeout(20000)};
  Part send, receive;
};

// partitions0 to 3, and counts beyond all.
TEST_F(PartitionedMisuse, NumbersOfPartitions) {
  EXPECT_EQ(makeSend(-1, 4, 1, 0, send), kInvalid);
  EXPECT_TRUE(hasText("occlPsendInit: partitions is -1") || hasText("partitions is -1"));
  EXPECT_EQ(makeReceive(-1, 4, 0, 0, receive), kInvalid);
  EXPECT_EQ(makeSend(OCCL_MAX_PARTITIONS + 1, 1, 1, 0, send), kInvalid);
  EXPECT_TRUE(hasText("1048577 partitions of 1 int32 are too many")) << lastText();
  EXPECT_EQ(makeSend(4, uint64_t{1} << 57, 1, 0, send), kInvalid);
  EXPECT_EQ(makeReceive(2, ~uint64_t{0}, 0, 0, receive), kInvalid);
}
/// Nothing on one side, and something on the other.
TEST_F(PartitionedMisuse, ZeroPartitionsOnOneSide) {
  Part sent, received;
  ASSERT_EQ(makeSend(0, 4, 1, 0, sent), occlSuccess);
  const occlResult_t made = makeReceive(4, 10, 0, 0, received);
  ASSERT_TRUE(made == occlSuccess || made == occlMismatch);
  EXPECT_EQ(made == occlSuccess ? occlPwait(received) : made, made);
  occlPstart(sent);
  EXPECT_EQ(occlPwait(sent) == occlMismatch || occlPstart(sent) == occlMismatch, true);
  EXPECT_TRUE(hasText("rank 0 sends 0 partitions of 4 int32")) << lastText();
  EXPECT_TRUE(hasText("rank 1 receives 4 partitions of 10 int32")) << lastText();
}
/// Also where the other side has as many elements, which is none.
TEST_F(PartitionedMisuse, ZeroPartitionsAgainstEmptyOnes) {
  Part sent, received;
  ASSERT_EQ(makeReceive(4, 0, 0, 0, received), occlSuccess);
  ASSERT_EQ(occlPstart(received), occlSuccess);
  const occlResult_t made = makeSend(0, 0, 1, 0, sent);
  EXPECT_TRUE(made == occlSuccess || made == occlMismatch);
  EXPECT_EQ(occlPwait(received), occlMismatch);
  EXPECT_TRUE(hasText("rank 1 receives 4 partitions of 0 int32")) << lastText();
}
// zerocount0, zerocount1.
TEST_F(PartitionedMisuse, ZeroPartitionsOnBothSidesSucceed) {
  ASSERT_EQ(makeSend(0, 4, 1, 0, send), occlSuccess);
  ASSERT_EQ(makeReceive(0, 9, 0, 0, receive), occlSuccess);
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
    EXPECT_EQ(occlPwait(receive), occlSuccess);
    EXPECT_EQ(occlPwait(send), occlSuccess);
    EXPECT_EQ(occlPready(send, 0), kInvalid);
  }
}
TEST_F(PartitionedMisuse, EmptyPartitionsAreMarkedAllTheSame) {
  ASSERT_EQ(occlPsendInit(ranks[0], nullptr, 3, 0, occlInt32, 1, 0, nullptr, &send), occlSuccess);
  ASSERT_EQ(occlPrecvInit(ranks[1], nullptr, 2, 0, occlInt32, 0, 0, nullptr, &receive),
            occlSuccess);
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
    ASSERT_EQ(occlPreadyRange(send, 0, 1), occlSuccess);
    awaitArrival(receive, 1);
    EXPECT_EQ(occlPtest(receive), occlInProgress);
    ASSERT_EQ(occlPready(send, 2), occlSuccess);
    EXPECT_EQ(occlPwait(receive), occlSuccess);
    EXPECT_EQ(occlPwait(send), occlSuccess);
  }
}

// pready0 to 2.
TEST_F(PartitionedMisuse, ReadyOutOfRange) {
  begin();
  for (int64_t p : {int64_t{4}, int64_t{5}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(occlPready(send, p), kInvalid);
    EXPECT_TRUE(hasText("partitioned send from rank 0 to rank 1, tag 3: there is no partition " +
                        std::to_string(p) + " of 4"))
        << lastText();
  }
  finish({0, 1, 2, 3});
}
// pready3.
TEST_F(PartitionedMisuse, ReadyTwice) {
  begin();
  ASSERT_EQ(occlPready(send, 2), occlSuccess);
  EXPECT_EQ(occlPready(send, 2), kInvalid);
  EXPECT_TRUE(hasText("partitioned send to rank 1, tag 3: partition 2 is ready already in epoch 1"))
      << lastText();
  finish({0, 1, 3});
}
TEST_F(PartitionedMisuse, ReadyTwiceByTwoThreads) {
  begin();
  std::array<occlResult_t, 2> results{};
  std::thread other([&] { results[1] = occlPready(send, 1); });
  results[0] = occlPready(send, 1);
  other.join();
  EXPECT_EQ(std::ranges::count(results, kInvalid), 1);
  finish({0, 2, 3});
}
// pready4, parrived2.
TEST_F(PartitionedMisuse, WrongKind) {
  begin();
  EXPECT_EQ(occlPready(receive, 0), kInvalid);
  EXPECT_TRUE(hasText("and this is a partitioned receive from rank 0 to rank 1, tag 3"))
      << lastText();
  EXPECT_EQ(arrivedNow(send, 0), -1);
  EXPECT_TRUE(hasText("only partitions of a receive arrive")) << lastText();
  finish({0, 1, 2, 3});
}
// pready_list0 and 1, pready_range0.
TEST_F(PartitionedMisuse, ListsAndRanges) {
  begin();
  constexpr int64_t kBeyond[] = {0, 4}, kTwice[] = {3, 1, 3};
  EXPECT_EQ(occlPreadyList(send, 2, kBeyond), kInvalid) << "nothing is marked";
  EXPECT_EQ(occlPreadyRange(send, 2, 1), kInvalid);
  EXPECT_EQ(occlPreadyRange(send, -1, 1), kInvalid);
  EXPECT_EQ(occlPreadyRange(send, 2, 4), kInvalid);
  EXPECT_TRUE(hasText("there is no partition 4 of 4")) << lastText();
  EXPECT_EQ(occlPreadyRange(send, 0, std::numeric_limits<int64_t>::max()), kInvalid);
  EXPECT_EQ(occlPreadyList(send, 2, nullptr), kInvalid);
  EXPECT_EQ(occlPreadyList(send, 0, nullptr), occlSuccess);
  EXPECT_EQ(occlPreadyList(send, 3, kTwice), kInvalid) << "all others are";
  EXPECT_TRUE(hasText("partition 3 is ready already")) << lastText();
  finish({0, 2});
}
TEST_F(PartitionedMisuse, ReadyWithoutAnEpoch) {
  make();
  EXPECT_EQ(occlPready(send, 0), kInvalid);
  EXPECT_TRUE(hasText("has not been started")) << lastText();
  EXPECT_EQ(occlPprepare(send), kInvalid);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  finish({0, 1, 2, 3});
  EXPECT_EQ(occlPready(send, 0), kInvalid) << "the epoch is over";
}

// parrived0, parrived1.
TEST_F(PartitionedMisuse, ArrivedOutOfRange) {
  begin(4, 5);
  for (int64_t q : {int64_t{5}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(arrivedNow(receive, q), -1);
    EXPECT_TRUE(hasText("there is no partition " + std::to_string(q) + " of 5")) << lastText();
  }
  EXPECT_EQ(occlParrived(receive, 0, nullptr), kInvalid);
  finish({0, 1, 2, 3});
}
TEST_F(PartitionedMisuse, ArrivedWithoutAnEpochIsTrue) {
  make();
  EXPECT_EQ(arrivedNow(receive, 0), 1);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  EXPECT_EQ(arrivedNow(receive, 0), 0);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  finish({0, 1, 2, 3});
  EXPECT_EQ(arrivedNow(receive, 3), 1);
}

// free0, cancel0.
TEST_F(PartitionedMisuse, FreeWithAnEpoch) {
  begin();
  EXPECT_EQ(send.free(), kInvalid);
  EXPECT_TRUE(hasText("epoch 1 is not over: wait for it before the request is freed"))
      << lastText();
  EXPECT_EQ(receive.free(), kInvalid);
  finish({0, 1, 2, 3});
  EXPECT_EQ(send.free(), occlSuccess);
  EXPECT_EQ(occlPfree(nullptr), occlSuccess);
}
TEST_F(PartitionedMisuse, StartWithAnEpoch) {
  begin();
  EXPECT_EQ(occlPstart(send), kInvalid);
  EXPECT_TRUE(hasText("has been started, and not been waited for")) << lastText();
  EXPECT_EQ(occlPstart(receive), kInvalid);
  finish({0, 1, 2, 3});
}
// state0.
TEST_F(PartitionedMisuse, StateOverEpochs) {
  make();
  for (int32_t epoch = 1; epoch <= 5; ++epoch) {
    EXPECT_EQ(occlPtest(send), occlSuccess) << "no epoch";
    EXPECT_EQ(occlPwait(receive), occlSuccess);
    std::iota(source.begin(), source.end(), epoch * 100);
    ASSERT_EQ(occlPstart(send), occlSuccess);
    ASSERT_EQ(occlPstart(receive), occlSuccess);
    for (int64_t q = 0; q < 4; ++q)
      EXPECT_EQ(arrivedNow(receive, q), 0) << "nothing is left of the last one";
    EXPECT_EQ(occlPtest(send), occlInProgress);
    EXPECT_EQ(occlPtest(receive), occlInProgress);
    finish({3, 0, 2, 1});
  }
}
// order0: nothing moves before it is ready.
TEST_F(PartitionedMisuse, NothingMovesBeforeItIsReady) {
  begin(4, 2);
  ASSERT_EQ(occlPready(send, 0), occlSuccess);
  for (int look = 0; look < 50; ++look)
    ASSERT_EQ(arrivedNow(receive, 0), 0);
  EXPECT_TRUE(std::all_of(target.begin() + 10, target.end(), [](int32_t v) { return v == 0; }));
  ASSERT_EQ(occlPready(send, 1), occlSuccess);
  awaitArrival(receive, 0);
  EXPECT_EQ(arrivedNow(receive, 1), 0);
  finish({2, 3});
}
// startall0.
TEST_F(PartitionedMisuse, SeveralAtOnce) {
  std::array<Part, 4> sends, receives;
  for (int64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(occlPsendInit(ranks[0], &source[10 * static_cast<size_t>(i)], 5, 2, occlInt32, 1, i,
                            nullptr, &sends[static_cast<size_t>(i)]),
              occlSuccess);
    ASSERT_EQ(occlPrecvInit(ranks[1], &target[10 * static_cast<size_t>(i)], 2, 5, occlInt32, 0, i,
                            nullptr, &receives[static_cast<size_t>(i)]),
              occlSuccess);
  }
  for (auto *parts : {&sends, &receives})
    for (Part &part : *parts)
      ASSERT_EQ(occlPstart(part), occlSuccess);
  for (Part &part : sends)
    ASSERT_EQ(occlPreadyRange(part, 0, 4), occlSuccess);
  for (auto *parts : {&receives, &sends})
    for (Part &part : *parts)
      EXPECT_EQ(occlPwait(part), occlSuccess);
  EXPECT_EQ(target, source);
}
// local0, local1: neither side waits for the other, to make and to start.
TEST_F(PartitionedMisuse, InitAndStartAreLocal) {
  ASSERT_EQ(makeReceive(4, 10, 0, 3, receive), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  EXPECT_EQ(occlPtest(receive), occlInProgress);
  ASSERT_EQ(makeSend(4, 10, 1, 3, send), occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  finish({0, 1, 2, 3});
}

// wildcard0, wildcard1.
TEST_F(PartitionedMisuse, Wildcards) {
  EXPECT_EQ(makeReceive(4, 10, -1, 0, receive), kInvalid);
  EXPECT_TRUE(hasText("source is -1; there is no such rank, and there are no wildcards"))
      << lastText();
  EXPECT_EQ(makeReceive(4, 10, 0, -1, receive), kInvalid);
  EXPECT_TRUE(hasText("tag is -1")) << lastText();
  EXPECT_EQ(makeSend(4, 10, -2, 0, send), kInvalid);
  EXPECT_EQ(makeSend(4, 10, 2, 0, send), kInvalid);
  EXPECT_TRUE(hasText("there is no rank 2 of 2")) << lastText();
  EXPECT_EQ(makeSend(4, 10, int64_t{1} << 32, 0, send), kInvalid) << "not rank 0";
  EXPECT_EQ(makeSend(4, 10, 1, -7, send), kInvalid);
}
// init0 to 2: what is not partitioned matches nothing of it, and goes its own way.
TEST_F(PartitionedMisuse, OtherTransfersDoNotMatch) {
  begin();
  int32_t value = 5, got = 0;
  ASSERT_EQ(occlSend(&value, 1, occlInt32, 1, ranks[0], nullptr), occlSuccess);
  EXPECT_EQ(arrivedNow(receive, 0), 0);
  ASSERT_EQ(occlRecv(&got, 1, occlInt32, 0, ranks[1], nullptr), occlSuccess);
  EXPECT_EQ(got, 5);
  EXPECT_EQ(occlPtest(send), occlInProgress);
  finish({0, 1, 2, 3});
}
TEST_F(PartitionedMisuse, OtherTagsDoNotMatch) {
  Part other;
  begin();
  ASSERT_EQ(makeReceive(4, 10, 0, 4, other), occlSuccess);
  ASSERT_EQ(occlPstart(other), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 3), occlSuccess);
  EXPECT_EQ(occlPwait(receive), occlSuccess);
  EXPECT_EQ(occlPwait(send), occlSuccess);
  EXPECT_EQ(occlPtest(other), occlInProgress);
  Part last;
  ASSERT_EQ(makeSend(2, 20, 1, 4, last), occlSuccess);
  ASSERT_EQ(occlPstart(last), occlSuccess);
  ASSERT_EQ(occlPreadyRange(last, 0, 1), occlSuccess);
  EXPECT_EQ(occlPwait(other), occlSuccess);
  EXPECT_EQ(occlPwait(last), occlSuccess);
}
// numparts0, numparts1.
TEST_F(PartitionedMisuse, DifferentNumbersOfPartitions) {
  begin(8, 5);
  finish({7, 6, 5, 4, 3, 2, 1, 0});
}
// datatype0 to 5: as many elements of one type, however they are divided.
TEST_F(PartitionedMisuse, TypesDiffer) {
  ASSERT_EQ(makeSend(4, 10, 1, 0, send, occlInt32), occlSuccess);
  const occlResult_t made = makeReceive(4, 10, 0, 0, receive, occlFloat32);
  if (made == occlSuccess)
    expectMismatch(send, receive, "rank 1 receives 4 partitions of 10 float32");
  else
    EXPECT_TRUE(hasText("rank 0 sends 4 partitions of 10 int32, rank 1 receives") ||
                hasText("rank 1 receives 4 partitions of 10 float32, rank 0 sends"))
        << lastText();
}
TEST_F(PartitionedMisuse, SizesDiffer) {
  ASSERT_EQ(makeReceive(3, 13, 0, 0, receive), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  ASSERT_TRUE(makeSend(4, 10, 1, 0, send) != kInvalid);
  EXPECT_EQ(occlPwait(receive), occlMismatch);
  EXPECT_TRUE(hasText("tag 0: ranks disagree")) << lastText();
  EXPECT_TRUE(hasText("rank 0 sends 4 partitions of 10 int32")) << lastText();
  EXPECT_TRUE(hasText("rank 1 receives 3 partitions of 13 int32")) << lastText();
}
TEST_F(PartitionedMisuse, UnknownTypes) {
  EXPECT_EQ(makeSend(4, 10, 1, 0, send, static_cast<occlDataType_t>(99)), kInvalid);
  EXPECT_TRUE(hasText("dataType 99 is unknown")) << lastText();
}

// example1a to 3c: programs of the standard.
TEST_F(PartitionedMisuse, ExampleOfOnePartitionAtATime) {
  begin();
  for (int64_t p = 0; p < 4; ++p) {
    ASSERT_EQ(occlPready(send, p), occlSuccess);
    awaitArrival(receive, p);
  }
  finish({});
}
TEST_F(PartitionedMisuse, ExampleOfThreadsThatMarkAndOfTests) {
  begin(40, 1);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back(
        [&, t] { EXPECT_EQ(occlPreadyRange(send, 10 * t, 10 * t + 9), occlSuccess); });
  while (occlPtest(receive) == occlInProgress)
    std::this_thread::yield();
  while (occlPtest(send) == occlInProgress)
    std::this_thread::yield();
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(target, source);
}
TEST_F(PartitionedMisuse, ExampleOfAReceiverThatUsesHalves) {
  begin(40, 2);
  ASSERT_EQ(occlPreadyRange(send, 20, 39), occlSuccess);
  awaitArrival(receive, 1);
  EXPECT_TRUE(std::equal(target.begin() + 20, target.end(), source.begin() + 20));
  EXPECT_EQ(arrivedNow(receive, 0), 0);
  ASSERT_EQ(occlPreadyRange(send, 0, 19), occlSuccess);
  finish({});
}

// Beyond the suite.
TEST_F(PartitionedMisuse, NullPointers) {
  occlPart_t part = nullptr;
  EXPECT_EQ(occlPsendInit(nullptr, source.data(), 1, 1, occlInt32, 1, 0, nullptr, &part), kInvalid);
  EXPECT_EQ(occlPsendInit(ranks[0], source.data(), 1, 1, occlInt32, 1, 0, nullptr, nullptr),
            kInvalid);
  EXPECT_EQ(occlPsendInit(ranks[0], nullptr, 1, 1, occlInt32, 1, 0, nullptr, &part), kInvalid);
  EXPECT_TRUE(hasText("buffer is NULL for 1 partition of 1 int32")) << lastText();
  for (auto *call : {occlPstart, occlPtest, occlPwait, occlPprepare})
    EXPECT_EQ(call(nullptr), kInvalid);
  EXPECT_EQ(occlPready(nullptr, 0), kInvalid);
  EXPECT_EQ(arrivedNow(nullptr, 0), -1);
}
TEST_F(PartitionedMisuse, Configurations) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.partitionsPerMessage = 5;
  EXPECT_EQ(occlPsendInit(ranks[0], source.data(), 4, 10, occlInt32, 1, 0, &config, &send),
            kInvalid);
  EXPECT_TRUE(hasText("partitionsPerMessage is 5 of 4 partitions")) << lastText();
  EXPECT_EQ(occlPrecvInit(ranks[1], target.data(), 4, 10, occlInt32, 0, 0, &config, &receive),
            kInvalid);
  config.size = 0;
  EXPECT_EQ(occlPsendInit(ranks[0], source.data(), 4, 10, occlInt32, 1, 0, &config, &send),
            kInvalid);
}
TEST_F(PartitionedMisuse, WithoutPreemption) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 2;
  Ranks without(2, config);
  EXPECT_EQ(occlPsendInit(without[0], source.data(), 4, 10, occlInt32, 1, 0, nullptr, &send),
            kInvalid);
  EXPECT_TRUE(hasText("partitioned transfers need preemption")) << lastText();
}
/// The peer frees, and the other starts once more.
TEST_F(PartitionedMisuse, ThePeerHasFreed) {
  begin();
  finish({0, 1, 2, 3});
  ASSERT_EQ(send.free(), occlSuccess);
  ASSERT_EQ(occlPstart(receive), occlSuccess);
  EXPECT_EQ(occlPwait(receive), occlMismatch);
  EXPECT_TRUE(hasText("epoch 2: rank 0 has freed its request")) << lastText();
}
TEST_F(PartitionedMisuse, TheReceiverHasFreed) {
  begin();
  finish({0, 1, 2, 3});
  ASSERT_EQ(receive.free(), occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 3), occlSuccess);
  EXPECT_EQ(occlPwait(send), occlMismatch);
  EXPECT_TRUE(hasText("epoch 2: rank 1 has freed its request")) << lastText();
}
/// Before it was matched: the one of its number finds that it is gone, the next one matches.
TEST_F(PartitionedMisuse, FreedBeforeItIsMatched) {
  ASSERT_EQ(makeSend(4, 10, 1, 3, send), occlSuccess);
  ASSERT_EQ(send.free(), occlSuccess);
  Part first, second;
  ASSERT_EQ(makeReceive(4, 10, 0, 3, first), occlSuccess);
  ASSERT_EQ(makeSend(4, 10, 1, 3, send), occlSuccess);
  ASSERT_EQ(makeReceive(2, 20, 0, 3, second), occlSuccess);
  ASSERT_EQ(occlPstart(send), occlSuccess);
  ASSERT_EQ(occlPstart(second), occlSuccess);
  ASSERT_EQ(occlPreadyRange(send, 0, 3), occlSuccess);
  EXPECT_EQ(occlPwait(second), occlSuccess);
  EXPECT_EQ(occlPwait(send), occlSuccess);
  EXPECT_EQ(target, source);
  ASSERT_EQ(occlPstart(first), occlSuccess);
  EXPECT_EQ(occlPwait(first), occlMismatch);
  EXPECT_TRUE(hasText("rank 0 has freed its request")) << lastText();
}

} // namespace
} // namespace occl::communicator::testing
