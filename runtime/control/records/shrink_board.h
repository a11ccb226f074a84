// Words by which the living ranks of a communicator agree who goes on without the others. The
// memory of a dead rank stays mapped by all, so one word in rank 0's segment can decide.
#pragma once

#include "runtime/control/records/rank_set.h"
#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::transport {

/// Lies in the segment of every rank, written by its owner. Attempts are numbered from 1; sets of
/// an attempt are written before what makes them valid, and again two attempts later.
struct ShrinkBoard {
  static constexpr uint32_t kGenerations = 2;

  /// The last attempt that the rank takes part in; makes excluded[attempt % kGenerations] valid.
  alignas(64) Atomic<uint32_t> entered{0};
  /// The last attempt whose smaller group this rank has joined.
  Atomic<uint32_t> joined{0};
  RankSet excluded[kGenerations]; // whom it wants to be left out
  /// The segment that it offers for the smaller group: what bootstrap::SubgroupOffer calls its
  /// handle, and its size.
  Atomic<uint64_t> offer[kGenerations];
  Atomic<uint64_t> offerNonce[kGenerations];
  Atomic<uint64_t> offeredBytes[kGenerations];
  RankSet proposed[kGenerations]; // who goes on, as it sees it
};

/// Of rank 0's segment, written by all ranks, by compare-and-swap.
struct ShrinkWords {
  /// attempt << 32 | 1 + the rank whose proposal counts.
  alignas(64) Atomic<uint64_t> decision{0};
  /// attempt << 32 | 1: all have joined; or 2: somebody cannot, all try again.
  Atomic<uint64_t> verdict{0};
};

} // namespace occl::transport
