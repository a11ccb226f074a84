// Tasks that are handed to executors of a resident daemon: whatever the order in which they wait,
// look, take other tasks and leave, each task is one executor's, once; and the test would see it if
// it were not.
#include "runtime/cuda/resident/executor/hand_over.h"
#include "runtime/cuda/resident/testing/host_target.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace occl::explore {
namespace {

using namespace occl::cuda::resident;

constexpr uint32_t kTakers = 2, kGiver = kTakers, kSubmissions = 3;
/// Of three executors two prefer its thread blocks: 0 and 1.
constexpr uint32_t kBlocks = 2;

struct Correct {
  static constexpr bool looksOnceMore = true, turnsCount = true;
};
/// The defects that one could make here.
struct LeavesAtOnce : Correct {
  static constexpr bool looksOnceMore = false;
};
struct TakesWhatItHad : Correct {
  static constexpr bool turnsCount = false;
};

struct Shared {
  Hands hands{};
  uint64_t taken[kSubmissions] = {}, claimable[kSubmissions] = {};
  Atomic<uint64_t> isLeaving{0};
  HostTarget target;

  void take(uint64_t sequence, uint32_t block) {
    const uint64_t bit = 1ull << block;
    require((HostTarget::takeBits(&claimable[sequence], 0) & bit) == 0,
            "a task that is somebody's can be claimed");
    uint64_t before = HostTarget::addTo(&taken[sequence], 1ull << 8 * block);
    require((before >> 8 * block & 255) == 0, "a task was taken twice");
  }
};

template <class Protocol> void runTaker(Shared &shared, uint32_t number) {
  HandOver<HostTarget> hand(shared.hands, number, kTakers + 1, shared.target);
  hand.begin();
  uint64_t words[Hand::kWords];
  for (;;) {
    const bool leaves = shared.isLeaving.load(std::memory_order_acquire) != 0;
    if ((!leaves || Protocol::looksOnceMore) && hand.hasCome(hand.look(), words)) {
      if (Protocol::turnsCount)
        hand.accept();
      const auto sequence = HandOver<HostTarget>::sequenceIn(words);
      const auto block = HandOver<HostTarget>::blockIn(words);
      if (leaves)
        HostTarget::giveBits(&shared.claimable[sequence], 1ull << block);
      else
        shared.take(sequence, block);
    }
    if (leaves)
      return hand.end();
    hand.await();
    yieldProcessor();
  }
}

template <class Protocol> void handOver() {
  auto shared = std::make_unique<Shared>();
  auto generation = [&](uint64_t first, uint64_t end) {
    shared->isLeaving.store(0, std::memory_order_release);
    Thread takers[kTakers];
    for (uint32_t t = 0; t < kTakers; ++t)
      takers[t] = Thread([&shared, t] { runTaker<Protocol>(*shared, t); });
    HandOver<HostTarget> hand(shared->hands, kGiver, kTakers + 1, shared->target);
    for (uint64_t s = first; s < end; ++s) {
      Submission submission;
      submission.numBlocks = kBlocks;
      const SubmissionEntry entry = pack(submission, s);
      const uint64_t given = hand.give(hand.lookForTakers(), entry.words, kBlocks, s);
      HostTarget::giveBits(&shared->claimable[s], 3 & ~given);
      if (given != 3)
        yieldProcessor();
    }
    shared->isLeaving.store(1, std::memory_order_release);
    for (Thread &taker : takers)
      taker.join();
  };
  generation(0, 2);
  generation(2, kSubmissions);
  for (uint32_t s = 0; s < kSubmissions; ++s)
    for (uint32_t b = 0; b < kBlocks; ++b)
      require((HostTarget::peek(&shared->taken[s]) >> 8 * b & 255) +
                      (HostTarget::peek(&shared->claimable[s]) >> b & 1) ==
                  1,
              "a task is nobody's, or several executors'");
}

TEST(ResidentHandOver, EveryTaskIsOneExecutorsOnce) {
  Settings exhaustive;
  exhaustive.strategy = Settings::Strategy::Exhaustive;
  exhaustive.preemptions = 2;
  exhaustive.schedules = 20000;
  EXPECT_EQ(explore(exhaustive, handOver<Correct>).defect, "");
  Settings random;
  random.schedules = 5000;
  EXPECT_EQ(explore(random, handOver<Correct>).defect, "");
}

template <class Protocol> void expectDefect() {
  Settings random;
  random.schedules = 5000;
  const std::string seen = explore(random, handOver<Protocol>).defect;
  EXPECT_EQ(seen.find("a task "), 0u) << seen;
}

TEST(ResidentHandOver, DefectsAreSeen) {
  expectDefect<LeavesAtOnce>();
  expectDefect<TakesWhatItHad>();
}

} // namespace
} // namespace occl::explore
