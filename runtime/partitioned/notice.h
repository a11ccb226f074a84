// What ranks tell each other of their partitioned requests, by a ring of each ordered pair.
#pragma once

#include "runtime/transfer/pair_ring.h"

#include <cstdint>

namespace occl::partitioned {

/// One of the writer's requests with the reader. All of a request have its serial number, which is
/// the writer's own, but LetGo and Bound, which have that of the reader's.
struct alignas(2 * transfer::kLineBytes) Notice {
  enum Kind : uint64_t {
    Made = 1,  // the next one of its tag
    Freed = 2, // its epochs are over: it starts none any more
    LetGo = 3, // the writer does not access the words and the buffer of it any more
    Bound = 4, // on devices: the writer's receive of it has words of arrival
  };

  uint64_t kind = 0;
  uint64_t serial = 0;
  // Of Made alone.
  uint64_t isSend = 0;
  uint64_t tag = 0;
  uint64_t partitions = 0, count = 0, type = 0, perMessage = 0;
  uint64_t block = 0;     // where its words begin, in bytes from the begin of the segment's
  uint64_t reference = 0; // to the sender's buffer
  // On devices (DevicePlace in matching.h). Of Bound: the words of arrival.
  uint64_t deviceWords = 0, deviceBuffer = 0;
};
static_assert(sizeof(Notice) == 2 * transfer::kLineBytes);

} // namespace occl::partitioned
