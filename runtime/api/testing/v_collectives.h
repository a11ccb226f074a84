// Collectives with counts by rank, against what their definitions say of each element.
#pragma once

#include "runtime/api/occl.h"

#include <cstdint>
#include <string>

namespace occl::communicator::testing {

/// Runs all of them several times on ranks that say the same, with counts and places at random; ""
/// or what is wrong.
std::string runVCollectives(occlComm_t comm, uint32_t numRanks, uint32_t rank, uint64_t seed);

} // namespace occl::communicator::testing
