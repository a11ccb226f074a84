// How a host thread that waits for an invocation in a stream learns that it has ended on its rank:
// each of its thread blocks stores a ticket in a word of its own, in pinned memory that both map.
// One word for all would take the thread blocks 2 us to agree on.
#pragma once

#include <cstdint>

namespace occl::cuda {

struct EndWords {
  uint64_t *words = nullptr; // by thread block; null: nobody waits
  uint64_t ticket = 0;
};

} // namespace occl::cuda
