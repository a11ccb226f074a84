#include "tools/occl-run/insight.h"

#include "support/writable.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <fstream>
#include <vector>

namespace occl::run {
namespace {

/// More than a communicator has.
constexpr uint32_t kMaxRanks = 1024;

std::string partOf(const std::string &path, uint32_t rank) {
  return fmt::format("{}.{}.part", path, rank);
}

/// `text` as part of a pattern.
std::string escaped(const std::string &text) {
  std::string pattern;
  for (char c : text)
    pattern += c == '%' ? std::string("%%") : std::string(1, c);
  return pattern;
}

struct Events {
  std::vector<std::string> texts;
  bool isWhole = false;
};

/// The events of a rank's trace, which has one a line between its first and its last line. What is
/// no whole line is none.
Events eventsIn(std::ifstream &file) {
  Events events;
  std::string line;
  // The first line opens the array.
  std::getline(file, line);
  while (std::getline(file, line)) {
    events.isWhole = line == "]}";
    // The last one closes it; without it the rank did not come to its end.
    if (events.isWhole || file.eof())
      break;
    if (line.ends_with(','))
      line.pop_back();
    events.texts.push_back(std::move(line));
  }
  return events;
}

bool failToWrite(const std::string &path, const std::string &why) {
  fmt::print(stderr, "occl-run: cannot write '{}': {} [E027]\n", path, why);
  return false;
}

} // namespace

bool askForInsight(const InsightOptions &options) {
  // What the user has set for the ranks stays; only the trace's place is this program's.
  constexpr int kKeep = 0, kOverwrite = 1;
  setenv("OCCL_REPORT_SIGNAL", "USR1", kKeep);
  if (options.stats)
    setenv("OCCL_STATS", "-", kKeep);
  if (options.trace.empty())
    return true;
  // Now, and not after a run of hours.
  if (const std::string why = whyNotWritable(options.trace); !why.empty())
    return failToWrite(options.trace, why);
  // Parts of an earlier run would be taken for this one's. The number of ranks may be another one.
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank)
    std::remove(partOf(options.trace, rank).c_str());
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  // %r is the rank's number: each writes a part of its own.
  setenv("OCCL_TRACE", (escaped(options.trace) + ".%r.part").c_str(), kOverwrite);
  // One origin for all clocks, so that events of different ranks can be compared. steady_clock is
  // the machine's.
  setenv("OCCL_TRACE_ORIGIN", std::to_string(now.count()).c_str(), kOverwrite);
  return true;
}

bool collectInsight(const InsightOptions &options) {
  if (options.trace.empty())
    return true;
  // The parts are joined as texts, without being parsed: each event is a line.
  std::ofstream out(options.trace);
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char *separator = "\n";
  bool isAny = false;
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank) {
    std::ifstream file(partOf(options.trace, rank));
    if (!file)
      continue;
    isAny = true;
    const Events events = eventsIn(file);
    for (const std::string &event : events.texts) {
      out << separator << event;
      separator = ",\n";
    }
    // Killed ranks leave a part without an end; what there is of it is shown.
    if (!events.isWhole)
      fmt::print(stderr,
                 "occl-run: the trace of rank {} breaks off, and its last events are missing\n",
                 rank);
    std::remove(partOf(options.trace, rank).c_str());
  }
  // A valid file in any case, also without events.
  out << "\n]}\n";
  out.close();
  if (!out)
    return failToWrite(options.trace, std::strerror(errno));
  if (!isAny)
    fmt::print(stderr, "occl-run: no rank has written a trace: they make none of OCCL's "
                       "communicators, or did not destroy them\n");
  return isAny;
}

} // namespace occl::run
