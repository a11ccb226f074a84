// What is said of a thread block's waits, or of those of several that one takes the steps of: there
// is one word for all that is missing, and who is late is another rank. Thread blocks also wait for
// others of their own rank, which in the end wait for other ranks.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::cuda {

/// Whether a thread block of rank `rank` waits for another rank.
OCCL_INLINE bool isOfPeer(const interpreter::Obstacle &obstacle, uint32_t rank) {
  return obstacle.reason != interpreter::BlockReason::None && obstacle.peer != rank;
}

/// Whether `found` is to be said instead of `said`: the first one is, unless it is of the own rank
/// and a later one of another.
OCCL_INLINE bool saysMore(const interpreter::Obstacle &found, const interpreter::Obstacle &said,
                          uint32_t rank) {
  return said.reason == interpreter::BlockReason::None ||
         (isOfPeer(found, rank) && !isOfPeer(said, rank));
}

} // namespace occl::cuda
