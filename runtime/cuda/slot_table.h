// Which registered collective is which on all devices of a communicator: ranks register in any
// order, and agree on a number, the collective's slot, in memory that they share.
//
// A slot is given when the first rank registers its collective and comes back when all ranks have
// registered and deregistered it. Until then a rank that has deregistered it cannot register it
// again: others may still execute what was paired with it.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/deadline.h"
#include "runtime/base/status.h"
#include "runtime/cuda/device_collective.h"
#include "runtime/transport/announce.h"

#include <cstdint>
#include <functional>
#include <utility>

namespace occl::cuda {

/// Memory that is zero is a table without collectives. It lies with rank 0.
struct SlotBoard {
  struct Entry {
    uint64_t id;
    uint32_t instance;
    uint32_t registered; // ranks that have it now
    uint32_t retired;    // ranks that have had it
    uint32_t isClearing; // the last rank is about to give it back
    transport::CollectiveTraits traits;
    uint32_t traitsOf; // the rank that said so first
  };

  /// 0, or 1 + the rank that is changing something.
  alignas(64) Atomic<uint32_t> lock;
  Entry entries[kSlots];
  /// By slot: how often it has come back.
  Atomic<uint64_t> generations[kSlots];
};

/// kOrdered, with id 0: ordered connectors. kLane: those of a lane, whose number over all kernels
/// is the id.
struct SlotKey {
  static constexpr uint32_t kOrdered = 1, kLane = 2;

  uint64_t id = 0;
  uint32_t instance = 0;
};

/// One rank's side of the table. Thread safety: any. Every call is bounded: Timeout if another rank
/// does not give the lock back.
class SlotTable {
public:
  /// failure: why the communicator has failed, if it has. A rank that dies with the lock makes it
  /// fail: nobody waits for the lock then.
  SlotTable(
      SlotBoard &board, uint32_t rank, uint32_t numRanks,
      std::function<Status()> failure = [] { return Status(); })
      : board(board), failure(std::move(failure)), rank(rank), numRanks(numRanks) {}

  /// Mismatch if another rank has registered it with other traits; Again if this rank has had it
  /// and others still do, or no slot is free.
  StatusOr<uint32_t> claim(SlotKey key, const transport::CollectiveTraits &traits);
  /// The rank has deregistered it. True: it is the last one; then it clears the records of all
  /// ranks and calls release().
  StatusOr<bool> retire(uint32_t slot);
  Status release(uint32_t slot);
  /// How often the slot has come back: while it stays the same, a collective that has been claimed
  /// with it has not been retired by all ranks. Takes no lock.
  uint64_t generation(uint32_t slot) const {
    return board.generations[slot].load(std::memory_order_acquire);
  }

private:
  class Lock;
  Status take();
  Status checkTraits(const SlotBoard::Entry &entry,
                     const transport::CollectiveTraits &traits) const;

  SlotBoard &board;
  const std::function<Status()> failure;
  const uint32_t rank, numRanks;
};

} // namespace occl::cuda
