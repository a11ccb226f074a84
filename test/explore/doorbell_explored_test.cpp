// No wake-up is lost, whatever the order of sleeping and ringing; and the test would see it if one
// were.
#include "runtime/sync/atomic.h"
#include "runtime/sync/doorbell.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

namespace occl::explore {
namespace {

using namespace std::chrono_literals;

Settings exhaustive() {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.preemptions = 3;
  settings.schedules = 20000;
  return settings;
}

struct Correct {
  static void publish(Atomic<uint32_t> &data, Doorbell &bell) {
    data.store(data.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    bell.ring();
  }
  static void await(Atomic<uint32_t> &data, uint32_t wanted, Doorbell &bell) {
    while (data.load(std::memory_order_acquire) < wanted) {
      uint32_t ticket = bell.prepareSleep();
      if (data.load(std::memory_order_acquire) < wanted)
        bell.sleep(ticket, 20ms);
    }
  }
};

/// The defects that one could make here.
struct NoSecondLook : Correct {
  static void await(Atomic<uint32_t> &data, uint32_t wanted, Doorbell &bell) {
    while (data.load(std::memory_order_acquire) < wanted)
      bell.sleep(bell.prepareSleep(), 20ms);
  }
};

struct RingsFirst : Correct {
  static void publish(Atomic<uint32_t> &data, Doorbell &bell) {
    bell.ring();
    data.store(data.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

struct NoFence : Correct {
  static void publish(Atomic<uint32_t> &data, Doorbell &bell) {
    data.store(data.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    bell.ringFenced();
  }
};

struct TicketTooLate : Correct {
  static void await(Atomic<uint32_t> &data, uint32_t wanted, Doorbell &bell) {
    while (data.load(std::memory_order_acquire) < wanted) {
      bell.prepareSleep();
      if (data.load(std::memory_order_acquire) < wanted)
        bell.sleep(bell.word.load(std::memory_order_acquire), 20ms);
    }
  }
};

/// Two sleepers on one doorbell, and somebody who publishes twice.
template <class Protocol> void twoSleepers() {
  Atomic<uint32_t> data{0};
  Doorbell bell;
  Thread first([&] { Protocol::await(data, 1, bell); });
  Thread second([&] { Protocol::await(data, 2, bell); });
  Protocol::publish(data, bell);
  Protocol::publish(data, bell);
  first.join();
  second.join();
}

TEST(Doorbell, LosesNoWakeUp) {
  Outcome outcome = explore(exhaustive(), twoSleepers<Correct>);
  EXPECT_EQ(outcome.defect, "");
  outcome = explore({}, twoSleepers<Correct>);
  EXPECT_EQ(outcome.defect, "");
}

template <class Protocol> void expectLost() {
  EXPECT_NE(explore(exhaustive(), twoSleepers<Protocol>).defect.find("wake-up was lost"),
            std::string::npos);
  Settings settings;
  settings.schedules = 20000;
  EXPECT_NE(explore(settings, twoSleepers<Protocol>).defect.find("wake-up was lost"),
            std::string::npos);
}

TEST(Doorbell, WithoutTheSecondLookOneIsLost) { expectLost<NoSecondLook>(); }
TEST(Doorbell, RungBeforePublishingOneIsLost) { expectLost<RingsFirst>(); }
TEST(Doorbell, WithoutTheFenceOneIsLost) { expectLost<NoFence>(); }
TEST(Doorbell, WithATicketTakenLateOneIsLost) { expectLost<TicketTooLate>(); }

TEST(Doorbell, LostRingsAreNotMissedWhileSleepsEndByThemselves) {
  Settings settings = exhaustive();
  settings.lostWakeUps = false;
  EXPECT_EQ(explore(settings, twoSleepers<NoSecondLook>).defect, "");
}

} // namespace
} // namespace occl::explore
