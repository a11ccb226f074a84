// Marks whose data a copy engine has stored, as host code: the copy is one of the test's.
#include "runtime/cuda/partitioned/copied_marks.cuh"
#include "runtime/cuda/partitioned/testing/parts_on_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace occl::device::detail {
namespace {

/// What occlPprepareOn and copyMarks() put into a stream.
void copyAndPublish(Pair &pair, uint64_t epoch, uint64_t first, uint64_t last) {
  EXPECT_TRUE(Part(&pair.send).hasCredit(true));
  const uint64_t bytes = pair.send.partitionBytes;
  std::memcpy(&pair.to[first * bytes], &pair.from[first * bytes], (last - first + 1) * bytes);
  publishCopied(Thread(), Part(&pair.send), epoch, first, last);
}

TEST(CopiedMarks, ArriveAndEndTheEpoch) {
  Pair pair(8, 48, 2, 32, 4);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    pair.start(epoch);
    Part send(&pair.send), receive(&pair.receive);
    EXPECT_FALSE(arrived(receive, 1));
    copyAndPublish(pair, epoch, 2, 5);
    EXPECT_TRUE(arrived(receive, 1));
    EXPECT_TRUE(arrived(receive, 2));
    EXPECT_FALSE(arrived(receive, 0));
    // Others mark the rest, and store it.
    for (uint64_t p : {0, 1, 6, 7})
      ready(Thread(), send, p);
    EXPECT_EQ(pair.endSend(), Wait::Arrived);
    pair.endReceive();
    EXPECT_TRUE(pair.isRight(epoch, 0, pair.from.size()));
    EXPECT_EQ(misuseOf(pair.send), Misuse::None);
  }
}

/// The last message has fewer partitions, and its last units are empty.
TEST(CopiedMarks, OfTheLastMessage) {
  Pair pair(5, 40, 3, 64, 5);
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    pair.start(epoch);
    copyAndPublish(pair, epoch, 3, 4);
    copyAndPublish(pair, epoch, 0, 2);
    EXPECT_EQ(pair.endSend(), Wait::Arrived);
    pair.endReceive();
    EXPECT_TRUE(pair.isRight(epoch, 0, pair.from.size()));
    EXPECT_EQ(pair.counted, (std::vector<uint64_t>{3 * epoch, 2 * epoch}));
  }
}

TEST(CopiedMarks, ASecondMarkIsFoundWhicheverComesFirst) {
  Pair pair(4, 16, 1, 64, 4);
  pair.start(1);
  Part send(&pair.send);
  copyAndPublish(pair, 1, 0, 1);
  const std::vector<uint64_t> words = pair.words;
  ready(Thread(), send, 1);
  EXPECT_EQ(misuseOf(pair.send), Misuse::Twice);
  EXPECT_EQ(pair.words, words);

  Pair other(4, 16, 1, 64, 4);
  other.start(1);
  Part first(&other.send);
  ready(Thread(), first, 1);
  copyAndPublish(other, 1, 0, 1);
  EXPECT_EQ(misuseOf(other.send), Misuse::Twice);

  Pair half(4, 16, 2, 64, 4); // whose message is not complete
  half.start(1);
  Part one(&half.send);
  ready(Thread(), one, 1);
  copyAndPublish(half, 1, 0, 1);
  EXPECT_EQ(misuseOf(half.send), Misuse::Twice);

  Pair refused(4, 16, 1, 64, 4);
  refused.start(1);
  refuseMark(Part(&refused.send), 2);
  EXPECT_EQ(misuseOf(refused.send), Misuse::Twice);
  EXPECT_EQ(refused.marked[2], 0u);
  refused.send.misuse = 0;
  refused.send.done = 1;
  refuseMark(Part(&refused.send), 2);
  EXPECT_EQ(misuseOf(refused.send), Misuse::NoEpoch);
}

TEST(CopiedMarks, OfAnotherEpochOrAfterAFailureNothingArrives) {
  Pair pair(2, 16, 1, 64, 2);
  pair.start(1);
  copyAndPublish(pair, 2, 0, 1);
  EXPECT_EQ(misuseOf(pair.send), Misuse::NoEpoch);
  EXPECT_EQ(pair.words, (std::vector<uint64_t>(2, 0)));
  EXPECT_EQ(pair.marked, (std::vector<uint64_t>(2, 0)));

  Pair over(2, 16, 1, 64, 2);
  over.start(1);
  over.send.done = 1;
  copyAndPublish(over, 1, 0, 1);
  EXPECT_EQ(misuseOf(over.send), Misuse::NoEpoch);
  EXPECT_EQ(over.words, (std::vector<uint64_t>(2, 0)));

  Pair failed(2, 16, 1, 64, 2);
  failed.start(1);
  failed.hasGivenUp = 1;
  copyAndPublish(failed, 1, 0, 1);
  EXPECT_EQ(misuseOf(failed.send), Misuse::None) << "the failure is known";
  EXPECT_EQ(failed.words, (std::vector<uint64_t>(2, 0)));
  EXPECT_EQ(failed.marked, (std::vector<uint64_t>(2, 0)));
}

/// Who waits looks through all sends: nothing that was copied is stored by it, too. The source
/// changes behind each mark, which a second copy would show.
TEST(CopiedMarks, NobodyWhoWaitsStoresThemAgain) {
  constexpr uint64_t kEpochs = 300, kPartitions = 6, kBytes = 64;
  Pair pair(kPartitions, kBytes, 2, 32, kPartitions);
  std::atomic<bool> isOver{false};
  std::thread scanner([&] {
    while (!isOver) {
      releaseWord(&pair.table.deferred, 1);
      storeDeferred(Thread(), pair.table);
    }
  });
  for (uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    pair.start(epoch);
    for (uint64_t first = 0; first < kPartitions; first += 2)
      copyAndPublish(pair, epoch, first, first + 1);
    EXPECT_EQ(pair.endSend(), Wait::Arrived);
    pair.endReceive();
    pair.fill(epoch + 1);
    std::this_thread::yield();
    ASSERT_TRUE(pair.isRight(epoch, 0, pair.from.size())) << epoch;
  }
  isOver = true;
  scanner.join();
  EXPECT_EQ(misuseOf(pair.send), Misuse::None);
}

} // namespace
} // namespace occl::device::detail
