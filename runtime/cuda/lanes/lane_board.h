// What the ranks of a communicator share of their calls in lanes: which calls each has made, and
// the order of those that all have made. See docs/decisions/gpu/lanes.md. No CUDA here.
#pragma once

#include "runtime/cuda/tables/limits.h"
#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::cuda {

/// Kernels of the resident daemon, and the most lanes of one: small ones, then large ones.
inline constexpr uint32_t kLaneKernels = 4, kMaxLanes = 64;
inline constexpr uint32_t kMaxLargeLanes = 2, kMaxSmallLanes = kMaxLanes - kMaxLargeLanes;
/// Ids of which calls are in flight, at most; a power of two.
inline constexpr uint32_t kMostIds = 4096;
/// Calls of an id that some rank has made and that are not in the order, at most; a power of two.
inline constexpr uint32_t kMostAhead = 64;
/// Calls in the order that some rank has not gone past, at most; a power of two.
inline constexpr uint32_t kOrderPlaces = 32768;

/// What all ranks must call alike.
struct LaneSignature {
  uint64_t planHash = 0;
  uint64_t count = 0;
  uint32_t root = 0;
  uint8_t kind = 0, type = 0, op = 0; // the API's values
  bool isLarge = false;               // large lanes are for it, which the others say

  bool operator==(const LaneSignature &) const = default;
};

/// Memory that is zero is a board without calls. It lies with rank 0. What is not Atomic is under
/// the lock; what is, is written under it but for what says so.
struct LaneBoard {
  /// As the first rank has made it.
  struct Call {
    LaneSignature signature;
    uint32_t by; // that rank
    uint8_t kernel, lane;
    uint64_t number;
  };
  /// Calls of an id are counted over all that have had the record.
  struct alignas(64) Record {
    uint64_t id;
    uint32_t chained;    // 1 + the next of its hash; 0: none
    uint32_t nextHeldUp; // 1 + the next in that list
    bool isHeldUp;       // it is in it
    uint8_t wantsLarge;  // bits by kernel: the id has had a large call
    /// By size: 1 + the lane of its calls, unless another id holds that; 0: none yet.
    uint8_t lanes[kLaneKernels][2];
    /// 1 + kernel and lane of its last call that has a number, and of that in the order; 0: none.
    uint16_t numberedIn, orderedIn;
    Atomic<uint64_t> numbered; // calls that have a lane and a number
    Atomic<uint64_t> ordered;  // calls that are in the order
    Atomic<uint64_t> made[kMaxRanks];
    /// Complete on the rank, which writes it, at its leisure.
    Atomic<uint64_t> done[kMaxRanks];
    Call calls[kMostAhead];
  };
  struct Lane {
    uint64_t next;   // the number of the next call
    uint32_t holder; // 1 + the record of the id that holds it; 0: none does
    uint64_t until;  // that many of its calls are complete on all ranks
    uint64_t from;   // the first number of the hold
    uint64_t heldAt; // LaneBoard::clock
    // Of its last call: 1 + the record, and how many of that are complete when it is; 0: none.
    uint32_t lastOf;
    uint64_t lastEnds;
  };
  /// A call in the order.
  struct Place {
    Atomic<uint64_t> where; // record, kernel, lane
    Atomic<uint64_t> call, number;
  };
  struct alignas(64) Position {
    Atomic<uint64_t> value;
  };

  /// 0, or 1 + the rank that is changing something.
  alignas(64) Atomic<uint32_t> lock;
  /// Records whose calls all have made, and that lack something to be in the order.
  alignas(64) Atomic<uint32_t> numHeldUp;
  /// Until when somebody is taken to lack a lane, by kernel and size, or a record, or to be in a
  /// small lane for want of a large one; nanoseconds of the steady clock.
  Atomic<int64_t> lanesWanted[kLaneKernels][2], recordsWanted, largeWanted;
  uint32_t firstHeldUp, lastHeldUp; // 1 + a record
  uint32_t numUsed, hand;           // records that were ever used; where the next is looked for
  uint64_t clock;
  uint32_t nextLane[kLaneKernels][2]; // by size
  Lane lanes[kLaneKernels][kMaxLanes];
  uint32_t heads[kMostIds]; // by hash: 1 + the first record
  /// Calls that are in the order.
  alignas(64) Atomic<uint64_t> tail;
  uint64_t freeUntil; // places before that number are free, or hold what comes before the tail
  /// By rank, which writes it: those that it has gone past.
  Position read[kMaxRanks];
  Place order[kOrderPlaces];
  Record records[kMostIds];
};

} // namespace occl::cuda
