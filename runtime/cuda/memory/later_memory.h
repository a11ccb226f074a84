// Device memory that the ranks of a communicator take when a call first needs it, in the place of
// all of it at the beginning. docs/decisions/gpu/ordered-connectors.md.
//
// Whoever needs a part says so on its card, waits until the ranks it needs it of have theirs, and
// maps these. Ranks take and map theirs in a thread of their own, whatever their program waits for:
// so a rank waits for no call of another one, and calls may come in any order. Whether a rank has
// got a part is said once, so all that need it come to the same. What all ranks need has been
// mapped by all before anybody uses it, so that a rank may leave once it has done its part.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/cuda/device/control_block.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/memory/shared_allocation.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::cuda {

/// Thread safety: any, but where a function says otherwise.
class LaterMemory {
public:
  using Bytes = std::array<uint64_t, kNumLaterParts>; // of each part, the same on all ranks
  using Patience = std::chrono::milliseconds;

  /// All outlive it; arenas are device memory. patience: with ranks that live and do not take
  /// theirs. Their program may free memory, for which CUDA waits for what is executed, so no
  /// shorter than that of calls. A wait is reported on standard error after longWait().
  LaterMemory(daemon::Fabric &fabric, DeviceMemory &memory, const Bytes &bytes, Patience patience);
  /// Nobody needs any more, nor tends; nothing of this rank is executed.
  ~LaterMemory();
  /// Something of this rank may still be executed: nothing is unmapped, nor freed, ever.
  void abandon();

  /// Of those ranks, as bits: the part is there when this has succeeded, cleared before others knew
  /// of it. Waits for what ranks take, and for no call of theirs. SystemError, on all that need it
  /// of that rank: one of these has not got it, and never will; what has failed: the communicator.
  Status need(LaterPart part, uint32_t ranks);
  /// Of a rank for which need() has succeeded.
  char *begin(LaterPart part, uint32_t rank) const { return at[index(part)][rank]; }
  /// Looks whether others need what this rank has not taken or mapped yet: now and then. Calls
  /// nothing of CUDA.
  void tend();

private:
  static uint32_t index(LaterPart part) { return static_cast<uint32_t>(part); }
  LaterCard &card(LaterPart part, uint32_t rank) const {
    return memory.card(rank).later[index(part)];
  }
  bool isMissing(LaterPart part, uint32_t rank) const {
    return card(part, rank).state.load(std::memory_order_acquire) == DeviceCard::Missing;
  }
  uint32_t all() const { return (1u << fabric.numRanks()) - 1; }
  bool isToBeTaken(LaterPart part) const;
  bool isToBeMapped(LaterPart part) const;
  bool isDue(LaterPart part) const;
  std::optional<uint32_t> findGone(uint32_t ranks) const;
  void work();
  Status doDue(LaterPart part);
  Status take(LaterPart part);
  void tell(LaterPart part, const Status &taken);
  std::string neededBy(LaterPart part) const;
  Status goneWhenNeeded(LaterPart part, uint32_t rank) const;
  /// Without which of these ranks, as bits, it is not there any more.
  template <class Condition>
  Status await(LaterPart part, uint32_t rank, uint32_t whom, const Condition &isThere);
  Status map(LaterPart part, uint32_t ranks);
  Status refusal(LaterPart part, uint32_t rank);

  daemon::Fabric &fabric;
  DeviceMemory &memory;
  const Bytes bytes;
  const Patience patience;

  /// Why this rank has none of a part: said by its worker, before the state that others read.
  std::array<std::string, kNumLaterParts> why;

  Mutex mapping; // never held by who waits; guards `mapped` and changes of the next one
  MappedAllocations mapped;
  std::array<std::array<char *, kMaxRanks>, kNumLaterParts> at{};
  std::array<Atomic<uint32_t>, kNumLaterParts> areThere{}; // ranks, as bits: see need()

  Mutex starting; // guards the next one
  Thread worker;
  Atomic<bool> isWorking{false};
  Atomic<bool> isAbandoned{false}; // set before `mapped` is abandoned
};

} // namespace occl::cuda
