#include "runtime/cuda/watch/held_streams.h"

#include <gtest/gtest.h>

using namespace occl::cuda;

namespace {

struct Daemon : HeldStreams::StrictDaemon {
  void letAllLeave(bool may) override { mayLeave = may; }
  void ensureLookout() override {
    EXPECT_FALSE(mayLeave) << "it is told before";
    ++lookouts;
  }
  bool mayLeave = false;
  uint32_t lookouts = 0;
};

TEST(HeldStreams, TheLastConnectionIsTakenWhenDaemonsHaveSomebodyStay) {
  HeldStreams held(3);
  Daemon daemon, other;
  EXPECT_FALSE(held.isWatched());
  held.attach(daemon);
  EXPECT_TRUE(held.isWatched());
  EXPECT_TRUE(daemon.mayLeave);
  held.enter(7);
  held.enter(8);
  EXPECT_TRUE(daemon.mayLeave);
  EXPECT_EQ(daemon.lookouts, 0u);
  held.enter(9);
  EXPECT_FALSE(daemon.mayLeave);
  EXPECT_EQ(daemon.lookouts, 1u);
  held.attach(other);
  EXPECT_FALSE(other.mayLeave) << "who comes later";
  held.enter(10);
  EXPECT_EQ(daemon.lookouts, 2u) << "it may have had nothing open";
  EXPECT_EQ(other.lookouts, 1u);
  held.leave(8);
  EXPECT_FALSE(daemon.mayLeave);
  held.leave(10);
  EXPECT_TRUE(daemon.mayLeave);
  EXPECT_TRUE(other.mayLeave);
  held.detach(daemon);
  held.enter(11);
  EXPECT_TRUE(daemon.mayLeave) << "it is told nothing any more";
  EXPECT_FALSE(other.mayLeave);
}

TEST(HeldStreams, AStreamCountsOnceHoweverMuchIsInIt) {
  HeldStreams held(2);
  Daemon daemon;
  held.attach(daemon);
  for (int i = 0; i < 5; ++i)
    held.enter(7);
  EXPECT_EQ(held.count(), 1u);
  EXPECT_TRUE(daemon.mayLeave);
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
  HeldStreams held(2);
  Daemon daemon;
  held.attach(daemon);
  bool isFirstOver = false, isSecondOver = false;
  held.enterUntil(7, [&] { return isFirstOver; });
  held.enter(7);
  held.enterUntil(8, [&] { return isSecondOver; });
  EXPECT_FALSE(daemon.mayLeave);
  held.leave(7);
  EXPECT_EQ(held.count(), 2u);
  isSecondOver = true;
  EXPECT_EQ(held.count(), 2u);
  held.sweep();
  EXPECT_EQ(held.count(), 1u);
  EXPECT_TRUE(daemon.mayLeave);
  isFirstOver = true;
  held.enter(9); // full, if nobody looked
  EXPECT_EQ(held.count(), 1u);
  EXPECT_TRUE(daemon.mayLeave);
  EXPECT_EQ(daemon.lookouts, 1u);
  held.enterUntil(7, [] { return false; });
  held.enterUntil(7, [] { return true; }); // the last one says for all
  held.sweep();
  EXPECT_EQ(held.count(), 1u);
}

} // namespace
