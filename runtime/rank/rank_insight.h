// What a communicator's rank can be asked about: who waits for whom, its counters, its trace.
#pragma once

#include "runtime/observe/report/known_collective.h"
#include "runtime/observe/report/wait_report.h"
#include "runtime/observe/trace/trace.h"
#include "runtime/rank/admission.h"
#include "runtime/sched/core.h"
#include "runtime/sched/watchdog.h"
#include "runtime/sync/mutex.h"

#include <string>
#include <vector>

namespace occl::daemon {

/// Thread safety: any.
class RankInsight {
public:
  RankInsight(Core &core, Admission &admission, Watchdog &watchdog)
      : core(core), admission(admission), watchdog(watchdog) {}

  /// Who waits for whom on all ranks, and who has not submitted what they wait for; see
  /// insight::describeWaits. Takes up to 50 ms if a rank does not answer.
  std::string report();

  /// InvalidArgument if it is on.
  Status startTrace(const std::string &pattern);
  /// Writes the trace: see insight::pathOf. InvalidArgument if it is off, SystemError.
  Status stopTrace();
  /// The same with what others have recorded of this rank, and know of its collectives.
  Status stopTrace(insight::Trace::Recording others, const insight::LookUp &lookUp);
  bool isTracing() const { return core.trace.isOn(); }

private:
  std::vector<insight::RankReport> askAll();
  std::vector<insight::MissingRanks> findMissing(const std::vector<insight::RankReport> &ranks);
  insight::KnownCollective lookUp(uint64_t id) const;
  bool hasSubmitted(uint32_t r, uint64_t collective, uint64_t ordinal) const;

  Core &core;
  Admission &admission;
  Watchdog &watchdog;
  Mutex mutex; // guards the pattern
  std::string tracePattern;
};

} // namespace occl::daemon
