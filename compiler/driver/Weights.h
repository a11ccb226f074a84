// How long steps take on a machine: the constants of a topology as the passes that choose among
// schedules want them.
#pragma once

#include "compiler/analysis/StepWeights.h"
#include "compiler/dialect/chunk/Chunk.h"
#include "compiler/topology/Topology.h"

#include <utility>
#include <vector>

namespace occl::driver {

/// Of the weights.
inline constexpr topology::Picoseconds kWeightUnit = 10 * topology::kNanosecond;

/// For chunks of one tile, messages by this protocol, and ways between these ranks of `machine`:
/// pairs in any order, from and to. What takes longer than 2^24 units counts as that long.
analysis::StepWeights weightsOf(const topology::Topology &machine, plan::Protocol protocol,
                                std::vector<std::pair<uint32_t, uint32_t>> pairs);

/// For the program's protocol and the ways that it uses; the usual ones if `machine` has another
/// number of ranks. The program is verified.
analysis::StepWeights weightsOf(chunk::ProgramOp program, const topology::Topology &machine);

} // namespace occl::driver
