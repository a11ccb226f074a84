// What a communicator does for those who watch it, as the environment says: OCCL_REPORT_SIGNAL,
// OCCL_TRACE, OCCL_STATS and OCCL_METRICS.
#pragma once

#include "runtime/api/capi/metrics_file.h"
#include "runtime/api/occl.h"
#include "runtime/observe/report/report_signal.h"

#include <memory>

namespace occl::communicator {

/// From the start of a communicator's rank to its end. Complains on standard error about what it
/// cannot do: nobody's program fails for being watched.
class Watching {
public:
  Watching(occlComm &comm, bool tracesIfAsked);

  /// To be called once nothing is in flight, before the daemon goes: writes trace, statistics
  /// and metrics.
  void end();

private:
  occlComm &comm;
  MetricsFile metrics;
  std::unique_ptr<insight::ReporterRegistration> reporter;
};

} // namespace occl::communicator
