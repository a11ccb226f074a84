// A machine as a `.topo` file (docs/topology.md).
#pragma once

#include "tools/occl-topo/machine.h"

namespace occl::topo {

/// Ranks are the GPUs if there are some, else processes, one for each core. In the layout of
/// `occlc fmt`.
std::string topologyText(const Machine &machine, const std::string &name);

} // namespace occl::topo
