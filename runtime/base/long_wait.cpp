// How long a wait is before it is reported.
#include "runtime/base/long_wait.h"

#include "runtime/base/environment_number.h"

#include <cstdint>
#include <cstdio>

namespace occl {

std::chrono::milliseconds longWait() {
  constexpr uint64_t kUsual = 30000,
                     kMost = 1'000'000'000'000; // years: for who wants to hear nothing
  // The variable is read once, as every long wait asks.
  static const std::chrono::milliseconds wait(
      environmentNumber("OCCL_LONG_WAIT_MS", 1, kMost, kUsual));
  return wait;
}

std::string describeLongWait() { return std::to_string(longWait().count()) + " ms"; }

void reportLongWait(const std::string &text) { std::fprintf(stderr, "occl: %s\n", text.c_str()); }

} // namespace occl
