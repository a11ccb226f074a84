// NVIDIA GPUs and the links between them, by NVML, which is opened when it is needed.
#pragma once

#include "tools/occl-topo/machine.h"

namespace occl::topo {

/// Adds the GPUs, none where there is no driver; what is wrong with the driver, or "".
std::string findGpus(Machine &machine);

} // namespace occl::topo
