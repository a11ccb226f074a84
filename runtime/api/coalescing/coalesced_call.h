// Which of several calls on devices are executed as one collective, and which one that is. The
// same on all ranks that give the same calls, as long as their buffers lie as differently.
#pragma once

#include "runtime/api/occl_types.h"
#include "runtime/cuda/packing/packed_calls.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::communicator {

/// Where the calls are made.
struct CoalescingRank {
  uint32_t rank = 0, numRanks = 1;
};

/// How many calls, from the first one on, are one collective: at least 1. All are right by
/// themselves (`size` included); there is one or more.
size_t numCoalesced(std::span<const occlCall_t *const> calls, const CoalescingRank &where);

/// Those calls, two or more, as one.
struct CoalescedCall {
  occlCall_t call; // without buffers
  cuda::PackedCalls packed;
};
CoalescedCall coalesce(std::span<const occlCall_t *const> calls, const CoalescingRank &where);

} // namespace occl::communicator
