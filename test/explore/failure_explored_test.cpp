// Failures under made-up schedules, while a damaged rank takes back the words that tell of them:
// for whoever has seen one it stays.
#include "runtime/base/status.h"
#include "runtime/sync/thread.h"
#include "test/explore/fabrics.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace occl::explore {
namespace {

using daemon::Fabric;

const Status kCause(StatusCode::Aborted, "the cause");

/// It has failed, now and for ever, for that cause.
void expectFailed(const Fabric &fabric) {
  require(fabric.failed(), "well again");
  require(fabric.failure().code() == kCause.code(), "another cause");
  require(fabric.failure().message() == kCause.message(), "another text");
}

/// body(fabrics) on one thread, while another one takes the failure words of all ranks back.
/// All schedules with two preemptions.
void beside(const std::function<void(std::vector<std::unique_ptr<Fabric>> &)> &body) {
  Settings settings;
  settings.strategy = Settings::Strategy::Exhaustive;
  settings.boundsDelays = true;
  settings.preemptions = 2;
  settings.fromMark = true;
  settings.schedules = 1000000;
  Outcome outcome = explore(settings, [&] {
    auto fabrics = makeFabrics();
    exploreFromHere();
    Thread damaged([&] {
      for (auto &fabric : fabrics)
        fabric->own().words().failedBy.store(0);
    });
    body(fabrics);
    damaged.join();
  });
  EXPECT_EQ(outcome.defect, "");
  EXPECT_TRUE(outcome.all);
}

TEST(Failure, OfThisRankIsNotTakenBack) {
  beside([](auto &fabrics) {
    fabrics[1]->fail(kCause);
    expectFailed(*fabrics[1]);
    expectFailed(*fabrics[1]);
  });
}

TEST(Failure, OfAnotherRankIsNotTakenBackOnceSeen) {
  uint32_t numSeen = 0;
  beside([&](auto &fabrics) {
    fabrics[1]->fail(kCause);
    if (!fabrics[0]->failed())
      return;
    ++numSeen;
    expectFailed(*fabrics[0]);
    expectFailed(*fabrics[0]);
  });
  EXPECT_GT(numSeen, 0u);
}

TEST(Failure, ThatIsSpreadIsNotTakenBack) {
  uint32_t numSpread = 0;
  beside([&](auto &fabrics) {
    fabrics[1]->fail(kCause);
    if (!fabrics[0]->spreadFailureOf(1))
      return;
    ++numSpread;
    expectFailed(*fabrics[0]);
  });
  EXPECT_GT(numSpread, 0u);
}

/// Whatever the own word says by then.
TEST(Failure, OfThisRankCanBeSpreadAgain) {
  beside([](auto &fabrics) {
    fabrics[1]->fail(kCause);
    require(fabrics[1]->spreadFailureOf(1), "there is nothing to tell");
  });
}

/// Two threads of a rank; the word may be taken back between their looks.
TEST(Failure, SeenByOneThreadIsSeenByAll) {
  beside([](auto &fabrics) {
    fabrics[1]->fail(kCause);
    bool sawOther = false;
    Thread other([&] { sawOther = fabrics[0]->failed(); });
    const bool saw = fabrics[0]->failed();
    other.join();
    if (saw || sawOther)
      expectFailed(*fabrics[0]);
  });
}

TEST(Failure, KeepsTheCauseThatWasReadFirst) {
  Outcome outcome = explore({.schedules = 1}, [] {
    auto fabrics = makeFabrics();
    fabrics[1]->fail(kCause);
    expectFailed(*fabrics[0]);
    transport::FailureCause &damaged = fabrics[1]->own().header().failure;
    damaged.code = static_cast<uint32_t>(StatusCode::Timeout);
    damaged.text[0] = '?';
    expectFailed(*fabrics[0]);
    damaged.causeState.store(0);
    expectFailed(*fabrics[0]);
    fabrics[0]->own().words().failedBy.store(77);
    expectFailed(*fabrics[0]);
  });
  EXPECT_EQ(outcome.defect, "");
}

} // namespace
} // namespace occl::explore
