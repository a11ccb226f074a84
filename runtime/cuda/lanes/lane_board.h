// Which id has which lane, agreed by all ranks of a communicator in memory that they share. See
// docs/decisions/lanes.md. No CUDA here.
#pragma once

#include "runtime/cuda/tables/limits.h"
#include "runtime/sync/atomic.h"

#include <cstdint>

namespace occl::cuda {

/// Kernels of the resident daemon, and the most lanes of one.
inline constexpr uint32_t kLaneKernels = 4, kMaxLanes = 64;
/// Calls of a lane of which a rank's signature can be read; a power of two.
inline constexpr uint32_t kLaneHistory = 256;

/// What all ranks must call alike.
struct LaneSignature {
  uint64_t planHash = 0;
  uint64_t count = 0;
  uint32_t root = 0;
  uint8_t kind = 0, type = 0, op = 0; // the API's values

  bool operator==(const LaneSignature &) const = default;
};

/// Memory that is zero is a board without lanes in use. It lies with rank 0.
struct LaneBoard {
  /// A rank's call. Its owner writes it, again after kLaneHistory calls; `number` first and last.
  struct Call {
    Atomic<uint64_t> number; // + 1; 0: it is being written
    Atomic<uint64_t> planHash, count, rest;
  };
  /// Written by one rank.
  struct alignas(64) Member {
    /// Calls that it has made in the lane, of whatever ids.
    Atomic<uint64_t> started;
    Call calls[kLaneHistory];
  };
  /// What is not Atomic is under the lock.
  struct alignas(64) Lane {
    uint64_t id;     // that has it, or has had it last
    uint64_t from;   // calls in it when that began
    uint64_t left;   // when it became free: LaneBoard::clock
    uint32_t joined; // ranks, as bits
    /// It was left as others lacked one: they may open it before the id that has had it.
    bool wasYielded;
    /// 1 + the id that it is open for; 0: it is free. Changed under the lock.
    Atomic<uint64_t> openFor;
    /// Another lane, of another kernel, is open for the same id.
    Atomic<uint32_t> hasSibling;
    Member members[kMaxRanks];
  };

  /// 0, or 1 + the rank that is changing something.
  alignas(64) Atomic<uint32_t> lock;
  /// Ranks that lack a lane, as bits: kernel * kMaxRanks + rank.
  alignas(64) Atomic<uint32_t> wanted;
  alignas(64) uint64_t clock; // under the lock
  Lane lanes[kLaneKernels][kMaxLanes];
};
static_assert(kLaneKernels * kMaxRanks <= 32, "see LaneBoard::wanted");

} // namespace occl::cuda
