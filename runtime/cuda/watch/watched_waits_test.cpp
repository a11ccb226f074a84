#include "runtime/cuda/watch/watched_waits.h"

#include <gtest/gtest.h>

#include <memory>

namespace occl::cuda {
namespace {

using namespace std::chrono_literals;

constexpr SteadyClock::time_point kStart{1000s};

TEST(GoneRanks, OneWordOfAKernelThatHasGotWhatItWaitedForIsNothing) {
  GoneRanks gone(3);
  EXPECT_FALSE(gone.isStillAwaited(1, kStart));
  EXPECT_FALSE(gone.isStillAwaited(1, kStart + 2ms)); // another warp's
  // Much later, for a word of before that was on its way for so long.
  EXPECT_FALSE(gone.isStillAwaited(1, kStart + 10s));
}

TEST(GoneRanks, WordsThatGoOnAreAWait) {
  GoneRanks gone(3);
  bool isAwaited = false;
  auto now = kStart;
  for (; !isAwaited && now < kStart + 1s; now += 2ms)
    isAwaited = gone.isStillAwaited(2, now);
  EXPECT_TRUE(isAwaited);
  EXPECT_GE(now - kStart, 50ms);             // many words at once are nothing, either
  EXPECT_FALSE(gone.isStillAwaited(0, now)); // each rank has its own
}

constexpr uint32_t kRank = 0, kPeer = 1;

class Long : public testing::Test {
protected:
  using Waits = std::vector<LongWaits::Found>;

  /// The place's kernel says so every 2 milliseconds from `begin` to `end`, and the host looks as
  /// often; what it finds. awaited: the ranks that it says, in turn.
  Waits wait(uint32_t place, std::chrono::milliseconds begin, std::chrono::milliseconds end,
             const std::vector<uint32_t> &awaited = {kPeer}) {
    Waits found;
    for (auto now = begin; now < end; now += 2ms) {
      words->waiting[place] = static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
      const auto round = static_cast<size_t>((now - begin) / 2ms);
      for (const LongWaits::Found &one :
           waits.look(*words, awaited[round % awaited.size()], 1s, kStart + now))
        found.push_back(one);
    }
    return found;
  }

  std::unique_ptr<HostWords> words = std::make_unique<HostWords>();
  LongWaits waits{kRank};
};

TEST_F(Long, AreFoundOnceEach) {
  EXPECT_TRUE(waits.look(*words, kPeer, 1s, kStart + 100s).empty());
  EXPECT_TRUE(wait(7, 100s, 100s + 900ms).empty());
  EXPECT_EQ(wait(7, 100s + 900ms, 103s), (Waits{{7, kPeer}}));
  EXPECT_TRUE(wait(7, 103s, 105s).empty());
}

TEST_F(Long, TheNextWaitOfTheSameCollectiveIsAnother) {
  EXPECT_EQ(wait(7, 100s, 102s).size(), 1u);
  EXPECT_TRUE(wait(7, 102s + 12ms, 102s + 900ms).empty());
  EXPECT_EQ(wait(7, 102s + 900ms, 104s).size(), 1u);
}

TEST_F(Long, ManyShortWaitsAreNoLongOne) {
  for (auto begin = 100'000ms; begin < 110'000ms; begin += 100ms)
    EXPECT_TRUE(wait(7, begin, begin + 88ms).empty());
}

TEST_F(Long, AWordThatComesLateDoesNotEndAWait) {
  EXPECT_TRUE(wait(7, 100s, 100s + 500ms).empty());
  words->waiting[7] = 100'100'000'000;
  EXPECT_TRUE(waits.look(*words, kPeer, 1s, kStart + 100s).empty());
  EXPECT_EQ(wait(7, 100s + 500ms, 102s).size(), 1u);
}

TEST_F(Long, PresentWaitsAreCounted) {
  EXPECT_EQ(waits.numWaiting(kStart + 100s), 0u);
  wait(7, 100s, 101s);
  EXPECT_EQ(waits.numWaiting(kStart + 101s), 1u);
  wait(9, 101s, 101s + 4ms);
  EXPECT_EQ(waits.numWaiting(kStart + 101s + 4ms), 2u);
  wait(9, 101s + 4ms, 102s);
  EXPECT_EQ(waits.numWaiting(kStart + 102s), 1u); // the first is over
  EXPECT_EQ(waits.numWaiting(kStart + 103s), 0u);
}

/// Thread blocks that wait for others of their rank have the last word most of the time.
TEST_F(Long, WordsOfTheOwnRankHideNeitherTheWaitNorTheOther) {
  std::vector<uint32_t> awaited(20, kRank);
  awaited[3] = kPeer;
  EXPECT_EQ(wait(7, 100s, 103s, awaited), (Waits{{7, kPeer}}));
  EXPECT_EQ(describeAwaited({7, kPeer}, kRank), "rank 1");
}

TEST_F(Long, WithNothingButWordsOfTheOwnRankThatIsAwaited) {
  EXPECT_EQ(wait(7, 100s, 103s, {kRank}), (Waits{{7, kRank}}));
  EXPECT_EQ(describeAwaited({7, kRank}, kRank), "thread blocks of its own");
}

/// What the wait before waited for is over.
TEST_F(Long, EachHasTheRankThatItWaitedForItself) {
  EXPECT_EQ(wait(7, 100s, 102s).size(), 1u);
  EXPECT_EQ(wait(7, 102s + 12ms, 104s, {kRank}), (Waits{{7, kRank}}));
  EXPECT_EQ(wait(7, 105s, 107s, {2, 2, kRank}), (Waits{{7, 2}}));
}

} // namespace
} // namespace occl::cuda
