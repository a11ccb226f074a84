// Writes what was recorded in the format of Chrome's and Perfetto's trace viewers.
#pragma once

#include "runtime/observe/report/known_collective.h"
#include "runtime/observe/trace/trace.h"

#include <cstdint>
#include <iosfwd>

namespace occl::insight {

struct TraceHeader {
  uint32_t rank = 0;
  uint32_t numRanks = 1;
  uint64_t origin = 0; // nanoseconds of std::chrono::steady_clock at which the trace's time is 0
};

/// A process is the rank; threads are the thread blocks of its collectives, in the order of the
/// collectives' ids, then "requests" and the threads that
/// execute or call back. Times are microseconds on
/// a clock that processes of a machine share, so that their traces fit together.
void writeTrace(std::ostream &out, const TraceHeader &header, const Trace::Recording &recording,
                const LookUp &lookUp);

} // namespace occl::insight
