// What a trace says of the marks that a program makes.
#pragma once

#include "runtime/observe/trace/trace.h"

#include <cstdint>

namespace occl::partitioned {

/// Partitions that a thread marks in one call, neighbours together. Only if the trace is on.
template <class Partitions>
void recordMarks(insight::Trace &trace, uint64_t collective, uint64_t ordinal,
                 const Partitions &partitions) {
  insight::TraceEvent event;
  event.kind = insight::TraceKind::Mark;
  event.collective = collective;
  event.ordinal = ordinal;
  event.begin = event.end = ticks();
  auto &[first, number] = event.detail;
  for (const auto p : partitions) {
    if (number != 0 && static_cast<uint64_t>(p) != first + number) {
      trace.record(event);
      number = 0;
    }
    if (number++ == 0)
      first = static_cast<uint64_t>(p);
  }
  if (number != 0)
    trace.record(event);
}

} // namespace occl::partitioned
