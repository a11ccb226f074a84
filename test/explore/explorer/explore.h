// Runs a body again and again, each time under another schedule of its threads. The body uses the
// types of runtime/base (Thread, Mutex, Atomic ...), built with -DOCCL_EXPLORE: every access to a
// shared word is a point at which the scheduler chooses who goes on. Time is virtual.
//
// What it sees: interleavings, stores that become visible late (store buffers, as in x86 and as far
// as release stores go in C++), and data races: accesses of plain memory that no order which C++
// knows of puts before or after each other (races.h). What it cannot see: loads that are satisfied
// early, stores that overtake each other, but for the races that they make possible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace occl::explore {

struct Settings {
  enum class Strategy {
    Random,    // half of them by priorities that change at a few points (PCT), half by random walks
    Exhaustive // all schedules with at most `preemptions` switches that no thread asked for
  };
  Strategy strategy = Strategy::Random;
  /// Random: so many. Exhaustive: no more than so many.
  uint64_t schedules = 1000;
  uint64_t seed = 1; // of the first; the others follow
  uint32_t preemptions = 1;
  /// Exhaustive: when a thread leaves, another one than the first of those that may go on costs as
  /// much as such a switch (delay bounding): far fewer schedules.
  bool boundsDelays = false;
  /// Exhaustive: until the body calls exploreFromHere(), there is one schedule only.
  bool fromMark = false;
  /// Stores become visible late. Exhaustive: as late as possible.
  bool storeBuffers = true;
  /// A sleep that somebody ought to have ended and only time could is a defect.
  bool lostWakeUps = true;
  /// Data races are looked for in one of so many schedules, which take some five times as long:
  /// what one schedule orders, most do.
  uint64_t racesEvery = 32;
  /// Accesses of one schedule; more is a defect: something spins for ever.
  uint64_t mostSteps = 500000;
};

struct Outcome {
  uint64_t schedules = 0; // that were run
  uint64_t steps = 0;     // of all of them
  bool all = false;       // Exhaustive: there are no more
  /// Empty, or what went wrong, how to run the schedule again, and its last steps.
  std::string defect;
};

/// Runs body() on a first thread of its own under schedules until one has a defect. Environment:
/// OCCL_EXPLORE_SEED runs the schedule of this seed alone, OCCL_EXPLORE_PATH that of this path, and
/// both print all of its steps; OCCL_EXPLORE_SCHEDULES multiplies the number of schedules, and
/// OCCL_EXPLORE_RACES is Settings::racesEvery. One thread at a time; not from inside of body.
Outcome explore(const Settings &settings, const std::function<void()> &body);

/// Inside of body, see Settings::fromMark.
void exploreFromHere();

/// Inside of body: ends the schedule, with this defect, unless `condition` holds.
void require(bool condition, const std::string &defect);

} // namespace occl::explore
