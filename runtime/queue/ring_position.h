// Positions in a ring of mask + 1 places, counted over all turns.
#pragma once

#include <cstdint>

namespace occl::queue {

/// Whether the ring has no place for an entry at `position`, as far as `head` tells, which was read
/// after it. With several producers the head may have overtaken the position by then: that is not
/// full, and the position is taken by another one.
inline bool isFull(uint64_t position, uint64_t head, uint64_t mask) {
  return static_cast<int64_t>(position - head) > static_cast<int64_t>(mask);
}

} // namespace occl::queue
