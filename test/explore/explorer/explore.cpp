#include "test/explore/explorer/explore.h"

#include "test/explore/explorer/scheduler.h"
#include "test/explore/explorer/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/single_threaded.h>
#include <unistd.h>

namespace occl::explore {

namespace {

const Strategy *activeStrategy = nullptr;

std::string howToRepeat(const Strategy &strategy) {
  const auto *test = ::testing::UnitTest::GetInstance()->current_test_info();
  const char *target = std::getenv("TEST_TARGET");
  std::string name =
      test ? std::string(test->test_suite_name()) + "." + test->name() : std::string("*");
  return "tools/dev/bazel.sh test " + std::string(target ? target : "<this test>") +
         " --test_output=all --test_filter='" + name + "' --test_env=" + strategy.replay();
}

/// A schedule that crashes must be told apart, too. Not safe in theory; it ends the process anyway.
void onCrash(int signal) {
  if (activeStrategy && Scheduler::current())
    std::fprintf(stderr, "signal %d in the schedule of\n  %s\n%s", signal,
                 howToRepeat(*activeStrategy).c_str(),
                 Scheduler::current()->trace().text().c_str());
  _exit(1);
}

void catchCrashes() {
  // On a stack of its own: a fiber's may be what overflowed.
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = onCrash;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE})
    sigaction(signal, &action, nullptr);
}

Settings scaled(Settings settings) {
  if (const char *factor = std::getenv("OCCL_EXPLORE_SCHEDULES"))
    settings.schedules *= std::max(1ull, std::strtoull(factor, nullptr, 10));
  if (const char *every = std::getenv("OCCL_EXPLORE_RACES"))
    settings.racesEvery = std::strtoull(every, nullptr, 10);
  settings.racesEvery = std::max(uint64_t{1}, settings.racesEvery);
  return settings;
}

} // namespace

Outcome explore(const Settings &given, const std::function<void()> &body) {
  Settings settings = scaled(given);
  bool exhaustive = settings.strategy == Settings::Strategy::Exhaustive;
  std::unique_ptr<Strategy> strategy = exhaustive ? makeExhaustive(settings) : makeRandom(settings);
  Scheduler scheduler(settings, *strategy);
  scheduler.trace().setLoud(std::getenv(exhaustive ? "OCCL_EXPLORE_PATH" : "OCCL_EXPLORE_SEED") !=
                            nullptr);
  activeStrategy = strategy.get();
  __libc_single_threaded = false; // else the standard library counts references without atomics
  catchCrashes();
  Outcome outcome;
  const bool failedBefore = ::testing::Test::HasFailure();
  while (outcome.defect.empty() && strategy->begin()) {
    outcome.defect = scheduler.run(body, outcome.schedules % settings.racesEvery == 0);
    if (outcome.defect.empty() && !failedBefore && ::testing::Test::HasFailure())
      outcome.defect = "an expectation of the body failed";
    ++outcome.schedules;
    outcome.steps += scheduler.stepsTaken();
  }
  if (!outcome.defect.empty())
    outcome.defect += "\nto run this schedule again:\n  " + howToRepeat(*strategy) +
                      "\nits last steps:\n" + scheduler.trace().text();
  outcome.all = strategy->isComplete();
  activeStrategy = nullptr;
  return outcome;
}

void require(bool condition, const std::string &defect) {
  const Unobserved own;
  if (!condition)
    Scheduler::current()->fail(defect);
}

void exploreFromHere() { Scheduler::current()->startChoosing(); }

} // namespace occl::explore
