// What a trace says of the marks that a program makes.
#pragma once

#include "runtime/observe/trace/trace.h"

#include <cstdint>

namespace occl::partitioned {

/// Partitions that a thread marks in one call, neighbours together. Records nothing if the trace is
/// off when it is made. Thread safety: none.
class MarksTrace {
public:
  /// Before the first mark: it is the marks' time.
  MarksTrace(insight::Trace &trace, uint64_t collective, uint64_t ordinal)
      : trace(trace), collective(collective), ordinal(ordinal), isOn(trace.isOn()),
        time(isOn ? ticks() : 0) {}

  /// Only of a mark that is made: one that is refused makes nothing ready.
  void add(uint64_t p) {
    if (!isOn)
      return;
    if (number != 0 && p != first + number)
      end();
    if (number++ == 0)
      first = p;
  }
  /// Records those that were added since.
  void end() {
    if (number == 0)
      return;
    insight::TraceEvent event;
    event.kind = insight::TraceKind::Mark;
    event.collective = collective;
    event.ordinal = ordinal;
    event.begin = event.end = time;
    event.detail[0] = first;
    event.detail[1] = number;
    trace.record(event);
    number = 0;
  }

private:
  insight::Trace &trace;
  const uint64_t collective, ordinal;
  const bool isOn;
  const uint64_t time;
  uint64_t first = 0, number = 0;
};

} // namespace occl::partitioned
