// What the explorer takes for a data race, and what not.
#include "test/explore/explorer/explore.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace occl::explore {
namespace {

using Order = std::memory_order;

Settings randomly() {
  Settings settings;
  settings.racesEvery = 1;
  return settings;
}

Settings exhaustive() {
  Settings settings = randomly();
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 2;
  settings.schedules = 100000;
  return settings;
}

void expectRace(const std::function<void()> &body) {
  for (const Settings &settings : {exhaustive(), randomly()}) {
    const std::string defect = explore(settings, body).defect;
    EXPECT_NE(defect.find("a data race"), std::string::npos) << defect;
  }
}

void expectNone(const std::function<void()> &body) {
  for (const Settings &settings : {exhaustive(), randomly()})
    EXPECT_EQ(explore(settings, body).defect, "");
}

/// Runs both on threads of their own.
void runBoth(const std::function<void()> &first, const std::function<void()> &second) {
  Thread a(first), b(second);
  a.join();
  b.join();
}

/// `send` and `receive` hand over a plain word by a flag; `receive` says whether it is there.
void handOver(const std::function<void(Atomic<int> &)> &send,
              const std::function<bool(Atomic<int> &)> &receive) {
  int data = 0;
  Atomic<int> flag{0};
  runBoth(
      [&] {
        data = 1;
        send(flag);
      },
      [&] {
        if (receive(flag))
          require(data == 1, "old data");
      });
}

void storeReleased(Atomic<int> &flag) { flag.store(1, Order::release); }
void storeRelaxed(Atomic<int> &flag) { flag.store(1, Order::relaxed); }
bool loadAcquired(Atomic<int> &flag) { return flag.load(Order::acquire) != 0; }
bool loadRelaxed(Atomic<int> &flag) { return flag.load(Order::relaxed) != 0; }

TEST(Races, FindsTwoWrites) {
  expectRace([] {
    int word = 0;
    runBoth([&] { word = 1; }, [&] { word = 2; });
  });
}

TEST(Races, FindsAReadBesideAWriteWhicheverIsFirst) {
  expectRace([] {
    int word = 0, read = 0;
    runBoth([&] { word = 1; }, [&] { read = word; });
  });
  expectRace([] {
    int word = 0, read = 0;
    runBoth([&] { read = word; }, [&] { word = 1; });
  });
}

TEST(Races, SaysWhoAndWhereAndHowToRepeat) {
  int word = 0;
  const std::string defect =
      explore(exhaustive(), [&] { runBoth([&] { word = 1; }, [&] { word = 2; }); }).defect;
  for (const char *part : {"write of thread 1 at races_test.cpp:", "write of thread 2 at",
                           "OCCL_EXPLORE_PATH=", "its last steps"})
    EXPECT_NE(defect.find(part), std::string::npos) << defect;
}

TEST(Races, AcceptsReadsAndOtherBytes) {
  expectNone([] {
    int word = 1, sum[2] = {};
    char bytes[2] = {};
    runBoth(
        [&] {
          sum[0] = word;
          bytes[0] = 1;
        },
        [&] {
          sum[1] = word;
          bytes[1] = 1;
        });
  });
}

TEST(Races, FindsOverlappingCopies) {
  expectRace([] {
    char from[64] = {}, to[64] = {};
    runBoth([&] { std::memcpy(to, from, 40); }, [&] { std::memset(to + 36, 1, 20); });
  });
}

TEST(Races, AcceptsALock) {
  expectNone([] {
    int word = 0;
    Mutex mutex;
    auto body = [&] {
      std::lock_guard lock(mutex);
      ++word;
    };
    runBoth(body, body);
  });
}

TEST(Races, FindsWhatHasAnotherLock) {
  expectRace([] {
    int word = 0;
    Mutex mutexes[2];
    auto body = [&](Mutex &mutex) {
      std::lock_guard lock(mutex);
      ++word;
    };
    runBoth([&] { body(mutexes[0]); }, [&] { body(mutexes[1]); });
  });
}

TEST(Races, AcceptsReleaseAndAcquire) {
  expectNone([] { handOver(storeReleased, loadAcquired); });
}

TEST(Races, FindsAMissingReleaseOrAcquire) {
  expectRace([] { handOver(storeRelaxed, loadAcquired); });
  expectRace([] { handOver(storeReleased, loadRelaxed); });
}

TEST(Races, AcceptsFencesBesideRelaxedAccesses) {
  expectNone([] {
    handOver(
        [](Atomic<int> &flag) {
          threadFence(Order::release);
          storeRelaxed(flag);
        },
        [](Atomic<int> &flag) {
          const bool there = loadRelaxed(flag);
          threadFence(Order::acquire);
          return there;
        });
  });
}

TEST(Races, FindsFencesOnTheWrongSide) {
  expectRace([] {
    handOver(
        [](Atomic<int> &flag) {
          storeRelaxed(flag);
          threadFence(Order::release);
        },
        loadAcquired);
  });
  expectRace([] {
    handOver(storeReleased, [](Atomic<int> &flag) {
      threadFence(Order::acquire);
      return loadRelaxed(flag);
    });
  });
}

/// A third thread changes the flag from 1 to 2 between the two.
void passOn(const std::function<void(Atomic<int> &)> &change) {
  int data = 0;
  Atomic<int> flag{0};
  Thread between([&] {
    if (flag.load(Order::relaxed) == 1)
      change(flag);
  });
  runBoth(
      [&] {
        data = 1;
        storeReleased(flag);
      },
      [&] {
        if (flag.load(Order::acquire) == 2)
          require(data == 1, "old data");
      });
  between.join();
}

TEST(Races, AReadModifyWriteGoesOnWithARelease) {
  expectNone([] { passOn([](Atomic<int> &flag) { flag.fetch_add(1, Order::relaxed); }); });
}

TEST(Races, AStoreDoesNot) {
  expectRace([] { passOn([](Atomic<int> &flag) { flag.store(2, Order::relaxed); }); });
}

TEST(Races, FindsWhatOnlySomeSchedulesHave) {
  const auto body = [] {
    int data = 0;
    Atomic<int> turn{0};
    runBoth(
        [&] {
          if (turn.fetch_add(1, Order::relaxed) == 1)
            data = 1;
        },
        [&] {
          data = 2;
          turn.fetch_add(1, Order::relaxed);
        });
  };
  expectRace(body);
  Settings inOrder = exhaustive();
  inOrder.preemptions = 0;
  inOrder.schedules = 1;
  EXPECT_EQ(explore(inOrder, body).defect, "");
}

TEST(Races, FindsPlainAccessesBesideAtomicOnes) {
  expectRace([] {
    uint64_t word = 0;
    runBoth([&] { storeShared(&word, 1, Order::release); }, [&] { word = 2; });
  });
  expectNone([] {
    uint64_t word = 0;
    runBoth([&] { storeShared(&word, 1, Order::relaxed); },
            [&] { loadShared(&word, Order::relaxed); });
  });
}

TEST(Races, AcceptsMemoryThatIsTakenAgain) {
  expectNone([] {
    Atomic<int> count{0};
    auto body = [&] {
      for (int i = 0; i < 3; ++i) {
        const auto block = std::make_unique<int>(i);
        count.fetch_add(*block, Order::relaxed);
      }
    };
    runBoth(body, body);
  });
}

TEST(Races, FindsAUseThatNothingOrdersBeforeTheEnd) {
  expectRace([] {
    auto word = std::make_unique<int>(1);
    Atomic<int> flag{0}, seen{0};
    runBoth(
        [&] {
          seen.store(*word, Order::relaxed);
          storeRelaxed(flag);
        },
        [&] {
          if (loadAcquired(flag))
            word.reset();
        });
  });
}

TEST(Races, AcceptsWhatIsOrderedByStartAndJoin) {
  expectNone([] {
    int word = 1;
    Thread thread([&] { ++word; });
    thread.join();
    ++word;
    require(word == 3, "three");
  });
}

TEST(Races, FindsWhatIsDoneBetweenStartAndJoin) {
  expectRace([] {
    int word = 1;
    Thread thread([&] { ++word; });
    ++word;
    thread.join();
  });
}

/// Made by whichever thread is first.
const std::string &made() {
  static const std::string text(100, 'x');
  return text;
}

TEST(Races, AcceptsStaticVariables) {
  expectNone([] { runBoth([] { made().size(); }, [] { made().size(); }); });
}

} // namespace
} // namespace occl::explore
