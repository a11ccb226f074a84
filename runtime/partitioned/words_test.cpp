#include "runtime/partitioned/arrivals.h"
#include "runtime/partitioned/ready_marks.h"
#include "runtime/partitioned/spread_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace occl::partitioned {
namespace {

enum class Outcome { Part, Message, Twice };

/// A mark that is counted at once; Message: its message is ready with it.
Outcome markIn(ReadyMarks &marks, uint64_t p, uint64_t epoch) {
  if (!marks.mark(p, epoch))
    return Outcome::Twice;
  return marks.count(p, epoch) ? Outcome::Message : Outcome::Part;
}

Shape shapeOf(uint64_t partitions, uint64_t count, uint64_t perMessage = 1) {
  return {partitions, count, DataType::Int32, perMessage};
}

/// A block of a sender's words.
class Block {
public:
  explicit Block(const Shape &shape)
      : memory(MessageWords::blockBytes(shape.numMessages()) / sizeof(uint64_t) + 8) {
    auto *header = new (aligned()) Header;
    words = MessageWords(header, shape.numMessages());
  }
  MessageWords words;

private:
  void *aligned() {
    void *at = memory.data();
    size_t space = memory.size() * sizeof(uint64_t);
    return std::align(kCacheLine, sizeof(Header), at, space);
  }
  std::vector<uint64_t> memory;
};

TEST(PartitionedShape, MessagesEndAtPartitions) {
  const Shape shape = shapeOf(10, 3, 4);
  EXPECT_EQ(shape.numMessages(), 3u);
  EXPECT_EQ(shape.partitionsOf(2), (plan::Range{8, 10}));
  EXPECT_EQ(shape.elementsOf({1, 3}), (plan::Range{12, 30}));
  EXPECT_EQ(shape.describe(), "10 partitions of 3 int32");
  EXPECT_EQ(shapeOf(0, 3).numMessages(), 0u);
  EXPECT_EQ(shapeOf(5, 0).numMessages(), 5u) << "each is to be marked";
}

TEST(PartitionedShape, SizesThatWouldOverflow) {
  EXPECT_TRUE(shapeOf(kMostPartitions, kMostElements / kMostPartitions).isSound());
  EXPECT_FALSE(shapeOf(kMostPartitions, kMostElements / kMostPartitions + 1).isSound());
  EXPECT_FALSE(shapeOf(kMostPartitions + 1, 1).isSound());
  EXPECT_FALSE(shapeOf(1, kMostElements + 1).isSound());
  EXPECT_FALSE(shapeOf(0, kMostElements + 1).isSound());
  EXPECT_FALSE(shapeOf(4, 1, 0).isSound());
  EXPECT_FALSE(shapeOf(4, 1, 5).isSound());
  EXPECT_TRUE(shapeOf(0, 0).isSound());
}

/// As many elements of one type; nothing fits nothing.
TEST(PartitionedShape, Fits) {
  EXPECT_TRUE(shapeOf(33, 17).fits(shapeOf(17, 33)));
  EXPECT_FALSE(shapeOf(33, 17).fits(shapeOf(17, 32)));
  EXPECT_FALSE(shapeOf(4, 2).fits({4, 2, DataType::Float32}));
  EXPECT_TRUE(shapeOf(0, 5).fits(shapeOf(0, 0)));
  EXPECT_FALSE(shapeOf(0, 5).fits(shapeOf(5, 0)));
}

TEST(ReadyMarks, TheLastOfAMessageSaysSo) {
  const Shape shape = shapeOf(7, 1, 3);
  Block block(shape);
  ReadyMarks marks(shape, block.words);
  for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
    EXPECT_EQ(markIn(marks, 1, epoch), Outcome::Part);
    EXPECT_EQ(markIn(marks, 6, epoch), Outcome::Message) << "the last has fewer";
    EXPECT_EQ(markIn(marks, 1, epoch), Outcome::Twice);
    EXPECT_EQ(markIn(marks, 0, epoch), Outcome::Part);
    EXPECT_LT(block.words[0], epoch);
    EXPECT_EQ(marks.firstMissing(0, epoch), 2u);
    EXPECT_EQ(markIn(marks, 2, epoch), Outcome::Message);
    EXPECT_EQ(block.words[0], epoch);
    EXPECT_LT(block.words[1], epoch);
    for (uint64_t p : {5, 3})
      EXPECT_EQ(markIn(marks, p, epoch), Outcome::Part);
    EXPECT_EQ(markIn(marks, 4, epoch), Outcome::Message);
    EXPECT_EQ(marks.firstMissing(0, epoch), 7u);
  }
}

/// It neither takes a later mark back nor counts.
TEST(ReadyMarks, AMarkThatComesAnEpochLate) {
  const Shape shape = shapeOf(2, 1, 2);
  Block block(shape);
  ReadyMarks marks(shape, block.words);
  for (uint64_t p : {0, 1})
    markIn(marks, p, 1);
  EXPECT_EQ(markIn(marks, 0, 2), Outcome::Part);
  EXPECT_EQ(markIn(marks, 0, 1), Outcome::Twice);
  EXPECT_TRUE(marks.isMarked(0, 2));
  EXPECT_EQ(block.words[0], 1u);
  EXPECT_EQ(markIn(marks, 1, 2), Outcome::Message);
  EXPECT_EQ(block.words[0], 2u);
}

/// The last of 64 bits.
TEST(ReadyMarks, TheLastEpoch) {
  const Shape shape = shapeOf(3, 1, 1);
  Block block(shape);
  ReadyMarks marks(shape, block.words);
  const uint64_t last = ~uint64_t{0};
  EXPECT_EQ(markIn(marks, 0, last), Outcome::Message);
  EXPECT_EQ(block.words[0], last);
}

/// Another thread may wait for the epoch, and free the request.
TEST(ReadyMarks, AnEpochDoesNotEndBeforeAllOfAListAreLookedAt) {
  for (uint64_t perMessage : {1, 2}) {
    const Shape shape = shapeOf(2, 1, perMessage);
    Block block(shape);
    ReadyMarks marks(shape, block.words);
    MarksInOneGo inOneGo(marks, 1);
    EXPECT_TRUE(inOneGo.mark(0));
    EXPECT_TRUE(inOneGo.mark(1));
    EXPECT_FALSE(inOneGo.mark(1));
    EXPECT_FALSE(inOneGo.mark(0));
    const uint64_t last = shape.messageOf(1);
    EXPECT_EQ(block.words[last], 0u) << "it is still looking";
    EXPECT_TRUE(inOneGo.end());
    EXPECT_EQ(block.words[last], 1u);
    EXPECT_EQ(block.words[0], 1u);
    EXPECT_EQ(marks.firstMissing(0, 1), 2u);
    MarksInOneGo none(marks, 1);
    EXPECT_FALSE(none.mark(0));
    EXPECT_FALSE(none.end());
  }
}

TEST(ReadyMarks, SeveralThreads) {
  const Shape shape = shapeOf(64, 1, 5);
  Block block(shape);
  ReadyMarks marks(shape, block.words);
  for (uint64_t epoch = 1; epoch <= 200; ++epoch) {
    std::atomic<uint64_t> messages{0}, twice{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t) // each partition by two of them
      threads.emplace_back([&, t] {
        for (uint64_t p = 0; p < 64; ++p)
          if (p % 3 != t) {
            const Outcome outcome = markIn(marks, p, epoch);
            messages += outcome == Outcome::Message;
            twice += outcome == Outcome::Twice;
          }
      });
    for (std::thread &thread : threads)
      thread.join();
    ASSERT_EQ(messages, 13u);
    ASSERT_EQ(twice, 64u);
    for (uint64_t m = 0; m < 13; ++m)
      ASSERT_EQ(block.words[m], epoch);
  }
}

uint64_t distance(const Word &a, const Word &b) {
  return reinterpret_cast<uintptr_t>(&b) - reinterpret_cast<uintptr_t>(&a);
}

TEST(SpreadWords, FewHaveALineEach) {
  for (const uint64_t number : {uint64_t{1}, uint64_t{64}, SpreadWords::kMostSpread}) {
    SpreadWords words(number);
    EXPECT_EQ(words.size(), number);
    for (uint64_t i = 0; i < number; ++i) {
      EXPECT_EQ(words[i], 0u);
      if (i > 0) {
        EXPECT_EQ(distance(words[i - 1], words[i]), kCacheLine);
      }
      words[i] = i + 1;
    }
    for (uint64_t i = 0; i < number; ++i)
      EXPECT_EQ(words[i], i + 1);
  }
}

TEST(SpreadWords, ManyTakeNoMoreThanTheyNeed) {
  const SpreadWords words(SpreadWords::kMostSpread + 1);
  EXPECT_EQ(distance(words[0], words[SpreadWords::kMostSpread]),
            SpreadWords::kMostSpread * sizeof(Word));
  EXPECT_EQ(SpreadWords(0).size(), 0u);
}

TEST(SpreadSum, HasWhatThreadsHaveAdded) {
  for (const uint64_t partitions : {0, 1, 3, 1000}) {
    SpreadSum sum(partitions);
    EXPECT_EQ(sum.sum(), 0u);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 10; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t p = 0; p < 100; ++p)
          sum.add(t);
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(sum.sum(), 100u * 45);
  }
}

/// Of all P and Q, in an order of the messages' own: never before, and as soon as, all that overlap
/// have come.
void expectArrivals(const Shape &sender, const Shape &receiver, std::mt19937_64 &random) {
  Arrivals arrivals(receiver);
  arrivals.bind(sender);
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    arrivals.begin(epoch);
    std::vector<uint64_t> order(sender.numMessages());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    std::vector<bool> here(sender.elements());
    for (uint64_t m : order) {
      ASSERT_FALSE(arrivals.isComplete());
      arrivals.add(m);
      const plan::Range elements = sender.elementsOf({m, m + 1});
      std::fill(here.begin() + elements.begin, here.begin() + elements.end, true);
      for (uint64_t q = 0; q < receiver.partitions; ++q) {
        const auto begin = here.begin() + q * receiver.count;
        ASSERT_EQ(arrivals.hasArrived(q, epoch),
                  std::all_of(begin, begin + receiver.count, [](bool is) { return is; }))
            << sender.describe() << " to " << receiver.describe() << ", partition " << q;
      }
    }
    ASSERT_TRUE(arrivals.isComplete());
    ASSERT_EQ(arrivals.firstMissing(), sender.numMessages());
  }
}

TEST(Arrivals, AllOf32AndGroups) {
  std::mt19937_64 random(7);
  for (uint64_t p = 1; p <= 32; ++p)
    for (uint64_t q = 1; q <= 32; q += 1 + q / 8)
      for (uint64_t perMessage : {uint64_t{1}, uint64_t{3}, p})
        if (perMessage <= p)
          expectArrivals(shapeOf(p, q, perMessage), shapeOf(q, p), random);
  expectArrivals(shapeOf(33, 17), shapeOf(17, 33), random);
  expectArrivals(shapeOf(17, 33, 4), shapeOf(33, 17), random);
}

TEST(Arrivals, WithoutElementsTheyAreThereAtOnce) {
  Arrivals arrivals(shapeOf(3, 0));
  arrivals.bind(shapeOf(2, 0));
  arrivals.begin(1);
  EXPECT_TRUE(arrivals.hasArrived(2, 1));
  EXPECT_FALSE(arrivals.isComplete()) << "two are to be marked";
  arrivals.add(0);
  arrivals.add(1);
  EXPECT_TRUE(arrivals.isComplete());
}

} // namespace
} // namespace occl::partitioned
