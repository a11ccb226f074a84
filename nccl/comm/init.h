// Ranks that come together by an id.
#pragma once

#include "nccl/fallback/decide.h"

#include <optional>

namespace occl::nccl {

/// What OCCL is told of a communicator of so many ranks with that configuration. Waiting for ranks
/// has no deadline that matters: 49 days.
occlConfig_t occlConfig(int device, uint32_t numRanks, const Config &given);

/// For Comm::begin(): waits for the other ranks of the id, and makes OCCL's communicator, or the
/// other library's, as they decide together. `isAsked`: whether there is anything to decide.
Outcome joinRanks(const NewComm &what, bool isAsked, Executor &made);

/// A communicator with a handle, which comes together in the background. `onDevice`: of
/// ncclCommInitAll, where all ranks are in this process, so that nobody has to be asked about
/// machines.
Outcome initRank(ncclComm_t *handle, int numRanks, const ncclUniqueId &id, int rank,
                 const ncclConfig_t *given, std::optional<int> onDevice = std::nullopt);

} // namespace occl::nccl
