// How the executors of a resident daemon leave and come back while streams wait for what is open,
// with one that stays and, in strict mode, without until a stream waits: the daemon's own code, and
// a device that can begin nothing that was launched when a stream waited, or, with one that stays
// from the beginning, two. Whatever the order, everything ends; and the test would see it if it did
// not.
#include "runtime/cuda/resident/executor/executor.h"
#include "runtime/cuda/resident/submission/submission_side.h"
#include "runtime/cuda/resident/testing/host_target.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/thread.h"
#include "test/explore/explorer/explore.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>

namespace occl::explore {
namespace {

using namespace occl::cuda;
using namespace occl::cuda::resident;

constexpr uint32_t kYieldsOfKeeper = 8;
constexpr uint32_t kExecutors = 2, kMostGenerations = 200;
/// Two submissions of this daemon in streams, and a stream of another daemon.
constexpr uint32_t kSubmissions = 2, kOthers = kSubmissions, kStreams = kSubmissions + 1;

/// Time is how often anybody has looked at the clock.
class CountingTarget : public HostTarget {
public:
  static uint64_t now() { return ticks.fetch_add(100, std::memory_order_relaxed) + 100; }
  static uint64_t time() { return now(); }
  /// Not an access at which others may go on.
  static inline std::atomic<uint64_t> ticks = 0;
};

struct Correct {
  static constexpr bool isStrict = true, countsFirst = true, seesToLookouts = true;
};
struct Lookout : Correct {
  static constexpr bool isStrict = false;
};
/// The defects that one could make here.
struct CountsTooLate : Correct {
  static constexpr bool countsFirst = false;
};
struct LeavesAllTheSame : Correct {
  static constexpr bool seesToLookouts = false;
};

struct Collective : CollectiveWords {
  uint64_t doneWord = 0, announcedWords[kMaxRanks] = {};
  Atomic<uint32_t> isReady{0}; // what it waits for is there
};

class Runner : public HostRunnerBase {
public:
  template <class Body> auto visit(const Submission &submission, uint32_t, bool, const Body &body) {
    return body([&](interpreter::BlockContext &, uint32_t) {
      interpreter::StepResult result;
      const auto &collective = static_cast<const Collective &>(*submission.collective);
      const bool isReady = collective.isReady.load(std::memory_order_acquire) != 0;
      result.status =
          isReady ? interpreter::StepStatus::Finished : interpreter::StepStatus::Blocked;
      result.slices = isReady ? 1 : 0;
      if (!isReady)
        yieldProcessor();
      return result;
    });
  }
};

/// The device and the streams.
class Device {
public:
  /// What is launched when so many streams wait cannot begin.
  Device(const resident::Settings &settings, uint32_t mostWaiting)
      : settings(settings), mostWaiting(mostWaiting), board(std::make_unique<Board>()),
        page(std::make_unique<HostPage>()) {}

  /// Executors of the generation, in one of two streams.
  void launch(uint64_t generation, bool beside) {
    require(generation < kMostGenerations, "generations come and go, and nothing moves");
    current = beside ? 1 - current : current;
    Launched &one = launched[generation];
    one.before = last[current];
    last[current] = generation;
    for (uint32_t s = 0; s < kStreams; ++s)
      one.isBehind[s] = isWaiting(s);
    for (uint32_t e = 0; e < kExecutors; ++e)
      one.executors[e] = Thread([this, generation, e] { run(generation, e); });
  }
  /// The stream has come to what waits.
  void hold(uint32_t stream) { holds[stream].store(1, std::memory_order_release); }
  void letGo(uint32_t stream) { holds[stream].store(0, std::memory_order_release); }
  void join(uint64_t generations) {
    for (uint64_t g = 1; g <= generations; ++g)
      for (Thread &executor : launched[g].executors)
        executor.join();
  }

  const resident::Settings settings;
  const uint32_t mostWaiting;
  std::unique_ptr<Board> board;
  std::unique_ptr<HostPage> page;

private:
  struct Launched {
    uint64_t before = 0; // in its stream
    std::array<bool, kStreams> isBehind{};
    std::array<Thread, kExecutors> executors;
    Atomic<uint32_t> numGone{0};
  };

  bool isWaiting(uint32_t stream) const {
    if (stream < kSubmissions &&
        loadShared(&page->completions[stream], std::memory_order_acquire) > stream)
      return false;
    return holds[stream].load(std::memory_order_acquire) != 0;
  }
  bool mayBegin(const Launched &one) const {
    if (one.before != 0 &&
        launched[one.before].numGone.load(std::memory_order_acquire) != kExecutors)
      return false;
    uint32_t waiting = 0;
    for (uint32_t s = 0; s < kStreams; ++s)
      waiting += one.isBehind[s] && isWaiting(s);
    return waiting < mostWaiting;
  }
  void run(uint64_t generation, uint32_t number) {
    Launched &one = launched[generation];
    while (!mayBegin(one))
      yieldProcessor();
    ExecutorArguments arguments{board.get(), page.get(), generation, settings, nullptr};
    CountingTarget target;
    Runner runner;
    auto ledger = std::make_unique<Ledger>();
    Marker<CountingTarget> marker(nullptr, target);
    Executor<CountingTarget, Runner>(arguments, number, target, runner, *ledger, marker).run();
    one.numGone.fetch_add(1, std::memory_order_acq_rel);
  }

  uint32_t current = 0;
  uint64_t last[2] = {};
  Launched launched[kMostGenerations];
  Atomic<uint32_t> holds[kStreams] = {};
};

template <class Protocol> class Daemon : public HeldStreams::StrictDaemon {
public:
  Daemon() : device(executorSettings(), Protocol::isStrict ? 1 : 2) {
    CountingTarget::ticks = 0;
    for (Collective &collective : collectives) {
      collective.done = &collective.doneWord;
      collective.announced = collective.announcedWords;
      collective.announcedAt[0] = &collective.announcedWords[0];
    }
    if (Protocol::isStrict)
      held.attach(*this);
  }
  void letAllLeave(bool may) override { side.stayFor(may ? StayFor::Nothing : StayFor::Anything); }
  bool ensureLookout() override { return !Protocol::seesToLookouts || side.ensureLookout(); }

  /// Its stream is there at once. It waits now, or wait() follows.
  void submit(uint32_t number, bool waits) {
    Submission submission;
    submission.collective = &collectives[number];
    submission.numBlocks = 1;
    submission.isStreamed = true;
    side.enter(submission);
    side.startIfQuit();
    storeShared(side.gateOf(number), uint64_t(number + 1), std::memory_order_release);
    if (waits)
      wait(number);
  }
  void wait(uint32_t number) {
    holdCounted(number, [&] { side.ensureStarted(); });
    isHeld[number].store(1, std::memory_order_release);
  }
  /// A stream of somebody else waits for the first submission, which has been made: what comes to
  /// an idle daemon while a stream waits needs a launch.
  void holdOther() {
    while (side.submitted() == 0)
      yieldProcessor();
    holdCounted(kOthers, [] {});
    hasOther.store(1, std::memory_order_release);
    awaitEnd(0);
    device.letGo(kOthers);
    held.leave(kOthers);
  }
  /// Until executors have left once, and some time more, which is another one in each schedule.
  void awaitQuit() const {
    while (side.submitted() == 0 || (side.starts() < 2 && !side.hasQuit()))
      yieldProcessor();
    const uint64_t ticks = CountingTarget::ticks;
    for (const uint64_t until = ticks + ticks * 7919 % 8000;
         side.anyOpen() && CountingTarget::ticks < until;)
      yieldProcessor();
  }
  void awaitOther() const {
    while (hasOther.load(std::memory_order_acquire) == 0)
      yieldProcessor();
  }
  void letGoOn(uint32_t number) { collectives[number].isReady.store(1, std::memory_order_release); }
  void awaitEnd(uint64_t request) const {
    while (!side.isComplete(request))
      yieldProcessor();
  }
  /// Until both have ended.
  void keep() {
    for (uint32_t next = 0; next < kSubmissions;) {
      side.restartIfOpen();
      for (uint32_t y = 0; y < kYieldsOfKeeper; ++y) // it comes by seldom
        yieldProcessor();
      if (side.submitted() > next && side.isComplete(next) &&
          isHeld[next].load(std::memory_order_acquire) != 0)
        held.leave(next++);
    }
  }
  void end() {
    side.abort();
    device.join(side.starts());
  }

private:
  /// Nothing has moved for long whenever somebody looks.
  static resident::Settings executorSettings() {
    resident::Settings settings;
    settings.numExecutors = kExecutors;
    settings.idleLimit = settings.stuckLimit = 0;
    settings.budgetLimits = {};
    settings.budgetAlone = 0;
    settings.helpAfter = 0;
    return settings;
  }
  template <class Prepare> void holdCounted(uint32_t stream, const Prepare &prepare) {
    if (Protocol::countsFirst)
      held.enter(stream);
    prepare();
    device.hold(stream);
    if (!Protocol::countsFirst)
      held.enter(stream);
  }

  Device device;
  HeldStreams held;
  Atomic<uint32_t> hasOther{0}, isHeld[kSubmissions] = {};
  Collective collectives[kSubmissions];
  SubmissionSide side{*device.page, [this](uint64_t generation, bool beside) {
                        device.launch(generation, beside);
                      }};
};

/// The first submission can move only when the second has ended, as on a rank whose peer's streams
/// come the other way round. The stream of the other daemon comes any time, or in between, when
/// executors have left. The stream of the first waits before the second is there, or, kIsLate, when
/// executors have left.
template <class Protocol, bool kIsBetween, bool kIsLate = false> void submitInStreams() {
  auto daemon = std::make_unique<Daemon<Protocol>>();
  Thread user([&] {
    daemon->submit(0, !kIsLate);
    if (kIsBetween)
      daemon->awaitOther();
    daemon->submit(1, !kIsLate);
    if (kIsLate)
      daemon->awaitQuit();
    for (uint32_t s = 0; kIsLate && s < kSubmissions; ++s)
      daemon->wait(s);
  });
  Thread other([&] {
    if (kIsBetween)
      daemon->awaitQuit();
    daemon->holdOther();
  });
  Thread peer([&] {
    daemon->letGoOn(1);
    daemon->awaitEnd(1);
    daemon->letGoOn(0);
  });
  daemon->keep();
  for (Thread *thread : {&user, &other, &peer})
    thread->join();
  daemon->end();
}

explore::Settings randomly(uint64_t schedules) {
  explore::Settings settings;
  settings.schedules = schedules;
  settings.mostSteps = 200000;
  settings.racesEvery = 64; // each schedule makes and destroys many ledgers, which are large
  return settings;
}

TEST(ResidentLeaving, WithALookoutEverythingEnds) {
  EXPECT_EQ(explore(randomly(1000), submitInStreams<Lookout, false>).defect, "");
  EXPECT_EQ(explore(randomly(1000), submitInStreams<Lookout, true>).defect, "");
}

TEST(ResidentLeaving, InStrictModeEverythingEnds) {
  EXPECT_EQ(explore(randomly(5000), submitInStreams<Correct, false>).defect, "");
  EXPECT_EQ(explore(randomly(10000), submitInStreams<Correct, true>).defect, "");
  EXPECT_EQ(explore(randomly(5000), submitInStreams<Correct, false, true>).defect, "");
}

TEST(ResidentLeaving, DefectsAreSeen) {
  EXPECT_NE(explore(randomly(1000), submitInStreams<CountsTooLate, true>).defect, "");
  EXPECT_NE(explore(randomly(1000), submitInStreams<LeavesAllTheSame, true>).defect, "");
}

} // namespace
} // namespace occl::explore
