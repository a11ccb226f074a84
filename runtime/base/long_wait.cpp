// How long a wait is before it is reported.
#include "runtime/base/long_wait.h"

#include <cstdio>
#include <cstdlib>

namespace occl {

std::chrono::milliseconds longWait() {
  constexpr std::chrono::milliseconds kUsual{30000};
  // The variable is read once, as every long wait asks.
  static const std::chrono::milliseconds wait = [&] {
    const char *given = std::getenv("OCCL_LONG_WAIT_MS");
    const long number = given ? std::strtol(given, nullptr, 10) : 0;
    return number > 0 ? std::chrono::milliseconds(number) : kUsual;
  }();
  return wait;
}

std::string describeLongWait() { return std::to_string(longWait().count()) + " ms"; }

void reportLongWait(const std::string &text) { std::fprintf(stderr, "occl: %s\n", text.c_str()); }

} // namespace occl
