#include "runtime/cuda/watch/held_streams.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"

#include <gtest/gtest.h>

using namespace occl;
using namespace occl::cuda;

namespace {

struct Daemon : HeldStreams::StrictDaemon {
  void letAllLeave(bool may) override { mayLeave = may; }
  bool ensureLookout() override {
    EXPECT_FALSE(mayLeave) << "it is told before";
    ++lookouts;
    return !isHeldOff;
  }
  bool mayLeave = false, isHeldOff = false;
  uint32_t lookouts = 0;
};

TEST(HeldStreams, TheFirstStreamWaitsWhenDaemonsHaveSomebodyStay) {
  HeldStreams held;
  Daemon daemon, other;
  EXPECT_FALSE(held.isWatched());
  held.attach(daemon);
  EXPECT_TRUE(held.isWatched());
  EXPECT_TRUE(daemon.mayLeave);
  held.enter(7);
  EXPECT_FALSE(daemon.mayLeave);
  EXPECT_EQ(daemon.lookouts, 1u);
  held.attach(other);
  EXPECT_FALSE(other.mayLeave) << "who comes later";
  held.enter(8);
  EXPECT_EQ(daemon.lookouts, 1u) << "somebody stays already";
  EXPECT_EQ(other.lookouts, 0u) << "it had nothing open";
  held.leave(7);
  EXPECT_FALSE(daemon.mayLeave);
  held.leave(8);
  EXPECT_TRUE(daemon.mayLeave);
  EXPECT_TRUE(other.mayLeave);
  held.enter(7);
  EXPECT_EQ(daemon.lookouts, 2u) << "all may have left";
  EXPECT_EQ(other.lookouts, 1u);
  held.leave(7);
  held.detach(daemon);
  held.enter(9);
  EXPECT_TRUE(daemon.mayLeave) << "it is told nothing any more";
  EXPECT_FALSE(other.mayLeave);
}

/// Who comes while others see to it does not put anything that waits into his stream before.
TEST(HeldStreams, AStreamThatComesMeanwhileWaitsToo) {
  struct Slow : HeldStreams::StrictDaemon {
    void letAllLeave(bool) override {}
    bool ensureLookout() override {
      isAt.store(1, std::memory_order_release);
      while (isAllowed.load(std::memory_order_acquire) == 0)
        yieldProcessor();
      ++lookouts;
      return true;
    }
    Atomic<uint32_t> isAt{0}, isAllowed{0}, lookouts{0};
  };
  HeldStreams held;
  Slow daemon;
  held.attach(daemon);
  uint32_t seenBySecond = 0, wasAllowed = 0;
  Thread first([&] { held.enter(7); });
  while (daemon.isAt.load(std::memory_order_acquire) == 0)
    yieldProcessor();
  Thread second([&] {
    held.enter(8);
    wasAllowed = daemon.isAllowed.load();
    seenBySecond = daemon.lookouts.load();
  });
  while (held.count() != 2)
    yieldProcessor();
  daemon.isAllowed.store(1, std::memory_order_release);
  first.join();
  second.join();
  EXPECT_EQ(wasAllowed, 1u);
  EXPECT_EQ(seenBySecond, 1u) << "nobody asks again";
}

TEST(HeldStreams, ADaemonThatIsHeldOffIsAskedAgain) {
  HeldStreams held;
  Daemon daemon;
  held.attach(daemon);
  daemon.isHeldOff = true;
  held.enter(7);
  held.enter(8);
  EXPECT_EQ(daemon.lookouts, 2u);
  daemon.isHeldOff = false;
  held.enter(9);
  held.enter(10);
  EXPECT_EQ(daemon.lookouts, 3u);
}

TEST(HeldStreams, AStreamCountsOnceHoweverMuchIsInIt) {
  HeldStreams held;
  for (int i = 0; i < 5; ++i)
    held.enter(7);
  EXPECT_EQ(held.count(), 1u);
  for (int i = 0; i < 4; ++i)
    held.leave(7);
  EXPECT_EQ(held.count(), 1u);
  held.leave(7);
  EXPECT_EQ(held.count(), 0u);
  held.leave(7); // of nobody
  EXPECT_EQ(held.count(), 0u);
}

/// Kernels do not say when they are over: somebody has to ask.
TEST(HeldStreams, KernelsCountUntilTheyAreSeenToBeOver) {
  HeldStreams held;
  Daemon daemon;
  held.attach(daemon);
  bool isFirstOver = false, isSecondOver = false;
  held.enterUntil(7, [&] { return isFirstOver; });
  held.enter(7);
  held.enterUntil(8, [&] { return isSecondOver; });
  held.leave(7);
  EXPECT_EQ(held.count(), 2u);
  isSecondOver = true;
  EXPECT_EQ(held.count(), 2u);
  held.sweep();
  EXPECT_EQ(held.count(), 1u);
  EXPECT_FALSE(daemon.mayLeave);
  isFirstOver = true;
  held.sweep();
  EXPECT_EQ(held.count(), 0u);
  EXPECT_TRUE(daemon.mayLeave);
  // Two threads put something into one stream: whichever says so last.
  bool isOver = false;
  held.enterUntil(7, [&] { return isOver; });
  held.enterUntil(7, [] { return true; });
  held.sweep();
  EXPECT_EQ(held.count(), 1u);
  isOver = true;
  held.sweep();
  EXPECT_EQ(held.count(), 0u);
}

TEST(HeldStreams, FinishedStreamsAreForgottenWithoutASweep) {
  HeldStreams held;
  uint32_t asked = 0;
  for (uint32_t i = 0; i < 1000; ++i)
    held.enterUntil(7, [&asked] { return ++asked > 0; });
  EXPECT_GT(asked, 900u);
}

} // namespace
