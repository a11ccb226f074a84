// Where ranks of several machines meet, as their launcher says.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"

#include <cstdint>
#include <string>

namespace occl::bootstrap {

/// HOST:PORT: MASTER_ADDR and the port behind MASTER_PORT, which the launcher itself may use; else
/// the first machine of SLURM_STEP_NODELIST, on which srun starts rank 0 unless it is told
/// otherwise, and a port by `job`, which differs between steps. Empty: neither is set.
std::string addressFromLauncher(EnvironmentLookup lookup, uint64_t job);

} // namespace occl::bootstrap
