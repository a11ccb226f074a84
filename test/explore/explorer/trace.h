// The last steps of a schedule, for people.
#pragma once

#include "runtime/sync/explored.h"

#include <array>
#include <cstdint>
#include <string>

namespace occl::explore {

class Trace {
public:
  void clear() { count = 0; }
  /// Prints every step at once as well.
  void setLoud(bool on) { loud = on; }
  void add(uint32_t thread, const char *operation, const void *address,
           const explored::Where &where, SteadyClock::time_point now);
  /// One line a step, oldest first.
  std::string text() const;

private:
  struct Step {
    uint32_t thread;
    const char *operation;
    const void *address;
    explored::Where where;
    SteadyClock::time_point time;

    std::string line() const;
  };
  static constexpr uint64_t kShown = 120;

  std::array<Step, kShown> steps;
  uint64_t count = 0;
  bool loud = false;
};

/// "doorbell.h:31".
std::string describe(const explored::Where &where);

} // namespace occl::explore
