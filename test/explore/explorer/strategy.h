// Who goes on: the choices of one schedule after the other.
#pragma once

#include "test/explore/explorer/explore.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace occl::explore {

/// Why a thread is to be chosen.
enum class Occasion {
  Access, // the running thread is at a shared word
  Yield,  // it lets others run
  Leave,  // it sleeps or has ended
  Wake,   // it wakes one of several, which are the runnable ones then
};

/// Pure: no clocks, no state but its own. One thread at a time.
class Strategy {
public:
  virtual ~Strategy() = default;
  /// The next schedule begins; false if there is none.
  virtual bool begin() = 0;
  /// A thread has been started; numbers ascend from 0.
  virtual void started(uint32_t thread) = 0;
  /// One of `runnable` (numbers, ascending, not empty; `running` is among them but on Leave and
  /// Wake).
  virtual uint32_t choose(Occasion occasion, uint32_t running,
                          std::span<const uint32_t> runnable) = 0;
  /// After how many steps a store becomes visible; 0 at once.
  virtual uint64_t storeDelay() = 0;
  /// Assignments to environment variables that make the same schedule run again.
  virtual std::string replay() const = 0;
  /// There is no schedule that has not been run.
  virtual bool isComplete() const { return false; }
};

std::unique_ptr<Strategy> makeRandom(const Settings &settings);
std::unique_ptr<Strategy> makeExhaustive(const Settings &settings);

} // namespace occl::explore
