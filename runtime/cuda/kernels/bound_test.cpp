// What a warp that waits says and does, as host code: a warp of one lane, and a clock that the test
// moves on.
#include "runtime/cuda/tables/bound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names
#define __device__

namespace occl::cuda {
namespace {

uint64_t nanoseconds = 1'000'000'000;
uint64_t deviceClock() { return nanoseconds; }

struct {
  uint32_t x = 0;
} threadIdx;
void __threadfence_system() {}
template <class T> T __shfl_sync(uint32_t, T value, int) { return value; }
bool __any_sync(uint32_t, bool value) { return value; }
uint32_t atomicExch(uint32_t *word, uint32_t value) { return std::exchange(*word, value); }

} // namespace
} // namespace occl::cuda
// NOLINTEND(bugprone-reserved-identifier)

#include "runtime/cuda/kernels/bound.cuh"

namespace occl::cuda {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kPlace = 5, kPeer = 1;

class Bound : public ::testing::Test {
protected:
  /// Looks every millisecond, the last time at the end of so many.
  Verdict wait(uint32_t milliseconds, bool progresses = false) {
    Verdict verdict = Verdict::GoOn;
    for (uint32_t i = 0; i < milliseconds && verdict == Verdict::GoOn; ++i) {
      nanoseconds += kMillisecond;
      if (progresses)
        watch.progressed();
      verdict = watch.look(kPeer);
    }
    return verdict;
  }
  bool hasSaidThatItWaits() const { return words->waitsFor != 0 && words->waiting[kPlace] != 0; }

  std::unique_ptr<HostWords> words = std::make_unique<HostWords>();
  uint32_t hasGivenUp = 0;
  WaitBound bound = {words.get(), &hasGivenUp, 300 * kMillisecond, kPlace};
  WarpWatch watch{bound};
};

TEST_F(Bound, ABlockThatMovesDoesNotReportAWait) {
  EXPECT_EQ(wait(200, true), Verdict::GoOn);
  EXPECT_EQ(words->waiting[kPlace], 0u);
  EXPECT_EQ(words->waitsFor, 0u);
  EXPECT_EQ(wait(20), Verdict::GoOn);
  EXPECT_TRUE(hasSaidThatItWaits());
  EXPECT_EQ(words->waitsFor, kPeer + 1);
}

TEST_F(Bound, ABlockThatWaitsReportsItAgainAndAgain) {
  EXPECT_EQ(wait(9), Verdict::GoOn);
  EXPECT_FALSE(hasSaidThatItWaits());
  EXPECT_EQ(wait(8), Verdict::GoOn);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(hasSaidThatItWaits());
    words->waitsFor = 0;
    EXPECT_EQ(wait(8), Verdict::GoOn);
  }
}

/// It is that of the whole call.
TEST_F(Bound, TheDeadlineCountsWhetherItMovesOrNot) {
  EXPECT_EQ(wait(299, true), Verdict::GoOn);
  EXPECT_EQ(wait(10, true), Verdict::Late);
}

TEST_F(Bound, ABlockThatIsStuckMakesWay) {
  bound.leaveAfter = 50 * kMillisecond;
  EXPECT_EQ(wait(200, true), Verdict::GoOn);
  EXPECT_EQ(wait(100), Verdict::Leave);
  EXPECT_EQ(hasGivenUp, 0u);
}

TEST_F(Bound, TheEndOfEverythingCountsFirst) {
  words->abort = 1;
  EXPECT_EQ(wait(400), Verdict::Abort);
  EXPECT_EQ(hasGivenUp, 1u);
}

} // namespace
} // namespace occl::cuda
