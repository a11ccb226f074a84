// Processors and memories, by hwloc.
#pragma once

#include "tools/occl-topo/machine.h"

namespace occl::topo {

/// Fills in all but the GPUs; what is wrong, or "". hwloc's environment counts: HWLOC_XMLFILE and
/// HWLOC_FSROOT name a recorded machine.
std::string findCpus(Machine &machine);

} // namespace occl::topo
