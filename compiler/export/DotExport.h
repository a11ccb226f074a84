// Plans as pictures.
#pragma once

#include "plan/model/plan.h"

#include <iosfwd>

namespace occl::exporter {

/// Writes the instructions of a verified plan as a Graphviz digraph: a cluster for each rank and
/// thread block, solid edges for the order of a thread block, dashed ones for dependencies, bold
/// ones for messages.
void writeDot(const plan::Plan &plan, std::ostream &out);

} // namespace occl::exporter
