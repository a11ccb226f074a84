// One schedule: its threads, its time, and the switches between them.
#pragma once

#include "test/explore/explorer/access_observer.h"
#include "test/explore/explorer/explore.h"
#include "test/explore/explorer/fiber.h"
#include "test/explore/explorer/races.h"
#include "test/explore/explorer/strategy.h"
#include "test/explore/explorer/trace.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace occl::explore {

class Scheduler final : public AccessObserver {
public:
  Scheduler(const Settings &settings, Strategy &strategy);
  ~Scheduler();

  /// Runs body under the strategy's present schedule; the defect or "".
  std::string run(const std::function<void()> &body, bool looksForRaces);
  uint64_t stepsTaken() const { return steps; }
  Trace &trace() { return lastSteps; }
  /// The one that runs now; nullptr outside of run().
  static Scheduler *current() { return active; }
  /// The same while the code of one of its threads runs, and not the explorer's; nullptr, too, if
  /// it does not look for races.
  static Scheduler *observed() { return observing; }
  void startChoosing() { chooses = true; }
  uint32_t currentThread() const { return running->number; }

  // What explored.h declares, for the running fiber.
  void reach(const char *operation, const void *address, const explored::Where &where);
  bool keepStore(void *address, uint64_t value, size_t bytes, std::memory_order order,
                 const void *place);
  bool findStore(const void *address, uint64_t &value) const;
  void drain() { makeVisible(*running, ~uint64_t{0}); }
  void begin(const void *word) { gone.erase(word); }
  void end(const void *word, const void *place);
  void use(const void *word);
  bool park(const void *key, SteadyClock::time_point deadline, explored::Sleep kind,
            const explored::Where &where);
  void wake(const void *key);
  void wakeOne(const void *key);
  void foundUnwoken(const explored::Where &where);
  void yield(std::chrono::nanoseconds time, const explored::Where &where);
  uint32_t spawn(std::function<void()> body);
  bool hasEnded(uint32_t thread);
  const Fiber &fiber(uint32_t number) const { return *fibers[number]; }
  SteadyClock::time_point now() const { return time; }

  // The accesses of the running fiber, which returns to `place` (races.h).
  void access(const void *address, size_t bytes, AccessKind kind, const void *place) override;
  void giveBack(const void *block, size_t bytes, const void *place);
  void load(const void *word, size_t bytes, std::memory_order order, const void *place) override;
  void store(const void *word, size_t bytes, std::memory_order order, const void *place) override;
  void update(const void *word, size_t bytes, std::memory_order order, const void *place) override;
  void fence(std::memory_order order) override;
  void forget(const void *address, size_t bytes);
  /// As a lock does.
  void acquire(const void *word);
  void release(const void *word);

  /// Ends the schedule: does not return.
  [[noreturn]] void fail(const std::string &text);

private:
  friend class Unobserved;
  static void enterFiber();
  void runFiber();
  Fiber &add(std::function<void()> body);
  void step(const char *operation, const void *address, const explored::Where &where);
  void makeVisible(Fiber &fiber, uint64_t until);
  void endOverdueSleeps();
  void collectRunnable();
  /// Chooses who goes on and switches to it. Returns when the running fiber is chosen again.
  void choose(Occasion occasion);
  void awaitSomebody();
  std::string describeSleepers() const;
  void switchTo(Fiber &next);

  const Settings &settings;
  Strategy &strategy;
  StackPool stacks;
  std::vector<std::unique_ptr<Fiber>> fibers; // by number
  std::vector<uint32_t> runnable;
  Fiber *running = nullptr;
  ucontext_t outside{};
  SteadyClock::time_point time{};
  uint64_t steps = 0;
  uint32_t numKeeping = 0; // fibers with stores that are not visible
  bool chooses = true;     // else nobody is asked who goes on
  std::string defect;
  Trace lastSteps;
  std::unordered_set<const void *> gone; // words whose life has ended
  bool seesRaces = false;
  Races races;

  static Scheduler *active, *observing;
};

/// The explorer's own code runs: what it accesses is not looked at. Of the running fiber: others
/// may run meanwhile.
class Unobserved {
public:
  Unobserved() : before(std::exchange(Scheduler::observing, nullptr)) {}
  Unobserved(const Unobserved &) = delete;
  Unobserved &operator=(const Unobserved &) = delete;
  ~Unobserved() { Scheduler::observing = before; }

private:
  Scheduler *const before;
};

} // namespace occl::explore
