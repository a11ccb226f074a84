// What occl-run asks the library in the ranks for, through their environment: statistics, traces,
// reports on a signal.
#pragma once

#include <string>

namespace occl::run {

struct InsightOptions {
  bool stats = false;
  std::string trace; // path; empty: none
};

/// Sets the environment of this process, which the ranks inherit. What the user has set stays. Call
/// it before the ranks start. False, and says so, if the trace cannot be written.
bool askForInsight(const InsightOptions &options);

/// After the ranks have ended: makes one trace of those that they wrote. False, and says why, if it
/// cannot be written or none of them wrote one. Of a rank that was killed while it wrote, it has
/// what is whole, and says that the rest is missing.
bool collectInsight(const InsightOptions &options);

} // namespace occl::run
