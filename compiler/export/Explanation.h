// What a plan does and why it waits, for people: `occlc explain`.
#pragma once

#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <iosfwd>
#include <optional>

namespace occl::exporter {

struct ExplainOptions {
  std::optional<uint32_t> rank;        // below the plan's; nothing: all
  std::optional<uint32_t> threadBlock; // of each of those ranks that has it; nothing: all
  uint64_t bytes = 0;                  // of a part
};

/// Writes the head of a verified plan and, an instruction a line, its thread blocks; under each
/// instruction when it is predicted to begin and to end on the first tile, and what it waits for.
/// An error, with nothing written, if the plan does not fit the topology.
support::Status writeExplanation(const plan::Plan &plan, const topology::Topology &topology,
                                 const ExplainOptions &options, std::ostream &out);

} // namespace occl::exporter
