// What of a rank's arena is taken. Offsets only: knows neither devices nor their memory.
#pragma once

#include "runtime/base/mutex.h"
#include "runtime/cuda/slot_table.h"
#include "runtime/transport/arena.h"

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class ArenaSpace {
public:
  struct Piece {
    uint64_t offset, bytes;
  };

  /// Of `bytes` from offset `begin` on. slots: outlives it.
  ArenaSpace(uint64_t begin, uint64_t bytes, const SlotTable &slots)
      : begin(begin), slots(slots), free(bytes) {}

  /// At least `bytes`, aligned to 128; nothing if no range is free now.
  std::optional<Piece> allocate(uint64_t bytes);
  void release(Piece piece);
  /// Pieces of the collective with this slot, which this rank has claimed and not yet retired. The
  /// other ranks may still store into them, in invocations that are over here: they are free when
  /// all ranks have retired the slot.
  void releaseWithSlot(uint32_t slot, const std::vector<Piece> &pieces);

  /// For a user, who gives it back by its offset alone.
  std::optional<uint64_t> lend(uint64_t bytes);
  /// False: nothing that begins there is lent.
  bool takeBack(uint64_t offset);

private:
  struct Pending {
    uint32_t slot;
    uint64_t generation; // the slot's when it was claimed
    Piece piece;
  };
  std::optional<Piece> allocateLocked(uint64_t bytes);
  void releaseLocked(Piece piece);
  void releasePending();

  const uint64_t begin;
  const SlotTable &slots;
  Mutex mutex; // guards all below
  transport::Arena free;
  std::vector<Pending> pending;
  std::unordered_map<uint64_t, uint64_t> lent; // bytes, by offset
};

} // namespace occl::cuda
