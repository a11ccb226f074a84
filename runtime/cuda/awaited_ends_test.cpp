#include "runtime/cuda/awaited_ends.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kBlocks = 20;

class Ends : public testing::Test {
protected:
  static constexpr uint32_t kWords = AwaitedEnds::wordsFor(kBlocks);
  std::vector<uint64_t> memory = std::vector<uint64_t>(AwaitedEnds::kCalls * kWords, 0);
  AwaitedEnds ends{memory.data(), kWords};
};

TEST(EndWords, OfACallAreWholeLinesWithOneForTheStream) {
  EXPECT_EQ(AwaitedEnds::wordsFor(1), 8u);
  EXPECT_EQ(AwaitedEnds::wordsFor(7), 8u);
  EXPECT_EQ(AwaitedEnds::wordsFor(8), 16u);
  EXPECT_EQ(AwaitedEnds::wordsFor(132), 136u);
}

TEST_F(Ends, EachCallHasWordsOfItsOwnUntilTheyAreGivenBack) {
  std::set<uint64_t *> lent;
  EndWords last;
  for (uint32_t call = 0; call < AwaitedEnds::kCalls; ++call) {
    auto ended = ends.lend();
    ASSERT_TRUE(ended);
    EXPECT_GE(ended->words, memory.data());
    EXPECT_LE(ended->words + kWords, memory.data() + memory.size());
    EXPECT_TRUE(lent.insert(ended->words).second);
    last = *ended;
  }
  for (auto a = lent.begin(), b = std::next(a); b != lent.end(); ++a, ++b)
    EXPECT_GE(*b - *a, static_cast<ptrdiff_t>(kWords));
  EXPECT_FALSE(ends.lend());
  ends.giveBack(last);
  auto again = ends.lend();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->words, last.words);
  EXPECT_FALSE(ends.lend());
}

TEST_F(Ends, WhatEarlierCallsHaveLeftIsNoEnd) {
  for (uint32_t call = 0; call < 3; ++call) {
    auto ended = ends.lend();
    ASSERT_TRUE(ended);
    EndPoll poll(*ended, kBlocks);
    for (uint32_t b = kBlocks; b-- != 0;) { // the first comes last
      EXPECT_FALSE(poll.isOver());
      storeShared(&ended->words[b], ended->ticket, std::memory_order_release);
    }
    EXPECT_TRUE(poll.isOver());
    ends.giveBack(*ended);
  }
}

/// Thread blocks are threads here.
TEST_F(Ends, WhatWasStoredBeforeTheWordsIsThere) {
  constexpr uint32_t kRounds = 2000;
  std::vector<uint32_t> data(kBlocks, 0);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    auto ended = ends.lend();
    ASSERT_TRUE(ended);
    std::thread device([&] {
      for (uint32_t b = 0; b < kBlocks; ++b) {
        data[b] = round;
        storeShared(&ended->words[b], ended->ticket, std::memory_order_release);
      }
    });
    for (EndPoll poll(*ended, kBlocks); !poll.isOver();)
      std::this_thread::yield();
    for (uint32_t value : data)
      EXPECT_EQ(value, round);
    device.join();
    ends.giveBack(*ended);
  }
}

} // namespace
} // namespace occl::cuda
