// The explorer itself: it finds what is there, and nothing else.
#include "test/explore/explorer/explore.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <gtest/gtest.h>

#include <mutex>

namespace occl::explore {
namespace {

Settings exhaustive(uint32_t preemptions) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = preemptions;
  settings.schedules = 100000;
  return settings;
}

/// Runs both on threads of their own, then checks.
void runBoth(const std::function<void()> &first, const std::function<void()> &second) {
  Thread a(first), b(second);
  a.join();
  b.join();
}

void countTwice(const std::function<void(Atomic<int> &)> &increment) {
  Atomic<int> counter{0};
  auto body = [&] { increment(counter); };
  runBoth(body, body);
  require(counter.load() == 2, "an increment was lost");
}

TEST(Explore, FindsALostIncrement) {
  auto body = [] { countTwice([](Atomic<int> &counter) { counter.store(counter.load() + 1); }); };
  Outcome outcome = explore(exhaustive(1), body);
  EXPECT_NE(outcome.defect.find("an increment was lost"), std::string::npos);
  EXPECT_NE(outcome.defect.find("OCCL_EXPLORE_PATH="), std::string::npos) << outcome.defect;
  outcome = explore({}, body);
  EXPECT_NE(outcome.defect.find("OCCL_EXPLORE_SEED="), std::string::npos) << outcome.defect;
}

TEST(Explore, NeedsAPreemptionForIt) {
  Outcome outcome = explore(exhaustive(0), [] {
    countTwice([](Atomic<int> &counter) { counter.store(counter.load() + 1); });
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

TEST(Explore, AcceptsAnAtomicIncrement) {
  auto body = [] { countTwice([](Atomic<int> &counter) { counter.fetch_add(1); }); };
  Outcome outcome = explore(exhaustive(3), body);
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
  EXPECT_GT(outcome.schedules, 10u);
  EXPECT_EQ(explore({}, body).defect, "");
}

TEST(Explore, AcceptsAnIncrementUnderALock) {
  Outcome outcome = explore(exhaustive(2), [] {
    Mutex mutex;
    countTwice([&](Atomic<int> &counter) {
      std::lock_guard lock(mutex);
      counter.store(counter.load() + 1, std::memory_order_relaxed);
    });
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

TEST(Explore, FindsLocksTakenInOppositeOrder) {
  Outcome outcome = explore(exhaustive(1), [] {
    Mutex a, b;
    runBoth(
        [&] {
          std::lock_guard first(a);
          std::lock_guard second(b);
        },
        [&] {
          std::lock_guard first(b);
          std::lock_guard second(a);
        });
  });
  EXPECT_NE(outcome.defect.find("all threads sleep"), std::string::npos) << outcome.defect;
}

/// Each stores its word and reads the other's. Returns whether both read the old value.
bool bothMiss(std::memory_order storeOrder) {
  Atomic<int> x{0}, y{0};
  int sawX = 0, sawY = 0;
  runBoth(
      [&] {
        x.store(1, storeOrder);
        sawY = y.load(std::memory_order_acquire);
      },
      [&] {
        y.store(1, storeOrder);
        sawX = x.load(std::memory_order_acquire);
      });
  return sawX == 0 && sawY == 0;
}

TEST(Explore, SeesStoresThatBecomeVisibleLate) {
  auto released = [] { require(!bothMiss(std::memory_order_release), "both miss"); };
  EXPECT_NE(explore(exhaustive(2), released).defect, "");
  EXPECT_NE(explore({}, released).defect, "");
  auto inOrder = [] { require(!bothMiss(std::memory_order_seq_cst), "both miss"); };
  EXPECT_EQ(explore(exhaustive(2), inOrder).defect, "");
  EXPECT_EQ(explore({}, inOrder).defect, "");
}

TEST(Explore, WithoutStoreBuffersItDoesNot) {
  Settings settings = exhaustive(2);
  settings.storeBuffers = false;
  Outcome outcome =
      explore(settings, [] { require(!bothMiss(std::memory_order_release), "both miss"); });
  EXPECT_EQ(outcome.defect, "");
}

/// Two wait for different things on one condition variable, and one call is for one of them.
void callOne(bool forAll) {
  Mutex mutex;
  ConditionVariable changed;
  bool first = false, second = false;
  auto await = [&](bool &condition) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(10), [&] { return condition; });
  };
  Thread a([&] { await(first); }), b([&] { await(second); });
  for (bool *condition : {&first, &second}) {
    std::lock_guard lock(mutex);
    *condition = true;
    forAll ? changed.notify_all() : changed.notify_one();
  }
  a.join();
  b.join();
}

TEST(Explore, FindsACallThatTheWrongOneHears) {
  for (const Settings &settings : {exhaustive(2), Settings{}}) {
    Outcome outcome = explore(settings, [] { callOne(false); });
    EXPECT_NE(outcome.defect.find("wake-up was lost"), std::string::npos) << outcome.defect;
    EXPECT_EQ(explore(settings, [] { callOne(true); }).defect, "");
  }
}

TEST(Explore, AcceptsASleepThatTimeHasToEnd) {
  Outcome outcome = explore(exhaustive(2), [] {
    Mutex mutex;
    ConditionVariable changed;
    std::unique_lock lock(mutex);
    require(!changed.wait_for(lock, std::chrono::milliseconds(10), [] { return false; }), "false");
  });
  EXPECT_EQ(outcome.defect, "");
}

TEST(Explore, FindsAnEndlessLoop) {
  Settings settings;
  settings.mostSteps = 10000;
  Outcome outcome = explore(settings, [] {
    Atomic<int> word{0};
    while (word.load() == 0)
      relax();
  });
  EXPECT_NE(outcome.defect.find("no end after"), std::string::npos);
}

TEST(Explore, OneSeedIsOneSchedule) {
  Settings settings;
  settings.schedules = 1;
  settings.seed = 12345;
  auto body = [] {
    countTwice([](Atomic<int> &counter) { counter.fetch_add(1); });
    require(false, "always");
  };
  std::string first = explore(settings, body).defect, second = explore(settings, body).defect;
  auto threadsOf = [](const std::string &text) {
    std::string threads;
    for (size_t at = text.find("thread "); at != std::string::npos;
         at = text.find("thread ", at + 1))
      threads += text[at + 7];
    return threads;
  };
  EXPECT_EQ(threadsOf(first), threadsOf(second));
}

} // namespace
} // namespace occl::explore
