// Where ranks of several machines meet, as their launcher says.
#pragma once

#include "runtime/control/bootstrap/bootstrap.h"

#include <cstdint>
#include <optional>
#include <string>

namespace occl::bootstrap {

/// HOST:PORT: MASTER_ADDR, with a port that follows from MASTER_PORT and is another one, as the
/// launcher itself may use that. Else, if srun has started the ranks and `step` thus differs
/// between its steps: the first machine of SLURM_STEP_NODELIST, on which it starts rank 0 unless it
/// is told otherwise, and a port by `step`. Ranks that Open MPI starts by srun have variables of
/// Slurm, too, but those of a step that lists remote machines alone. Empty: neither is there.
std::string addressFromLauncher(EnvironmentLookup lookup, std::optional<uint64_t> step);

} // namespace occl::bootstrap
