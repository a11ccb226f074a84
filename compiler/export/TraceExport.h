// The predicted schedule of a plan as a trace for chrome://tracing and Perfetto.
#pragma once

#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <iosfwd>

namespace occl::exporter {

/// Writes the predicted run of a verified plan with parts of `bytes` bytes as a JSON object in the
/// Trace Event Format: a rank is a process, a thread block a thread; an instruction on a tile is an
/// event with its operands and source line; waits are events that say what for; a message is a flow
/// from its send to its receive, each end behind the event that it belongs to; the loads of links
/// are in otherData. Of a plan with many tiles the first ones are written. An error,
/// with nothing written, if the plan does not fit the topology.
support::Status writeTrace(const plan::Plan &plan, const topology::Topology &topology,
                           uint64_t bytes, std::ostream &out);

} // namespace occl::exporter
