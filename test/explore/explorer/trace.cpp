#include "test/explore/explorer/trace.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace occl::explore {

std::string describe(const explored::Where &where) {
  const char *slash = std::strrchr(where.file_name(), '/');
  return std::string(slash ? slash + 1 : where.file_name()) + ":" + std::to_string(where.line());
}

std::string Trace::Step::line() const {
  char text[256];
  std::snprintf(text, sizeof text, "  %10.3f us  thread %u  %-16s %-16p %s\n",
                static_cast<double>(time.time_since_epoch().count()) / 1e3, thread, operation,
                address, describe(where).c_str());
  return text;
}

void Trace::add(uint32_t thread, const char *operation, const void *address,
                const explored::Where &where, SteadyClock::time_point now) {
  Step &step = steps[count++ % kShown];
  step = {thread, operation, address, where, now};
  if (loud)
    std::fputs(step.line().c_str(), stderr);
}

std::string Trace::text() const {
  std::string text;
  for (uint64_t i = count - std::min(count, kShown); i < count; ++i)
    text += steps[i % kShown].line();
  return text;
}

} // namespace occl::explore
