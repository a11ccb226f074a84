// What a rank says to the others when its communicator is divided. One record a rank: those of the
// next division are written when everyone has read those of the last.
#pragma once

#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::transport {

struct SplitRecord {
  /// Number of the division + 1 (they count from 0) once all below is valid.
  alignas(64) Atomic<uint64_t> published{0};
  /// Divisions whose records this rank needs no more.
  Atomic<uint64_t> done{0};
  /// Number + 1 of the last division that this rank gave up before all had come.
  Atomic<uint64_t> abandoned{0};
  /// The same of the first one of those in a row of which that is the last. Stored before it.
  Atomic<uint64_t> abandonedFrom{0};

  Atomic<int32_t> colour{0};
  Atomic<int32_t> key{0};
  Atomic<uint64_t> segmentBytes{0}; // of its segment in the new group
  /// bootstrap::SubgroupOffer::handle(), or the port of a net::DivisionListener; nothing without a
  /// colour.
  Atomic<uint64_t> offer{0};
  Atomic<uint64_t> offerNonce{0};

  /// Whether this rank has given up that division: it may have tried later ones since, in vain, as
  /// nobody gets there before all are through with this one.
  bool hasGivenUp(uint64_t number) const {
    return abandoned.load(std::memory_order_acquire) > number &&
           abandonedFrom.load(std::memory_order_relaxed) <= number + 1;
  }
  void giveUp(uint64_t number) {
    if (abandoned.load(std::memory_order_relaxed) != number || number == 0)
      abandonedFrom.store(number + 1, std::memory_order_relaxed);
    abandoned.store(number + 1, std::memory_order_release);
  }
};

} // namespace occl::transport
