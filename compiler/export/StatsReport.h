// What a plan consists of and how it is predicted to run, for people: `--stats`, `occlc stats`.
#pragma once

#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"
#include "support/status.h"

#include <iosfwd>
#include <vector>

namespace occl::exporter {

/// Writes how many of what a verified plan has, and for each size (bytes of a part) the predicted
/// makespan and what it is bounded by. An error, with nothing written, if the plan does not fit the
/// topology.
support::Status writeStats(const plan::Plan &plan, const topology::Topology &topology,
                           const std::vector<uint64_t> &sizes, std::ostream &out);

} // namespace occl::exporter
