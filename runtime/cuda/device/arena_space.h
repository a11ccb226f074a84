// What of a rank's arena is taken. Offsets only: knows neither devices nor their memory.
#pragma once

#include "runtime/memory/arena.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace occl::cuda {

/// Thread safety: any.
class ArenaSpace {
public:
  struct Piece {
    uint64_t offset, bytes;
  };

  /// Of `bytes` from offset `begin` on.
  ArenaSpace(uint64_t begin, uint64_t bytes) : begin(begin), free(bytes) {}

  /// At least `bytes`, aligned to 128; nothing if no range is free now.
  std::optional<Piece> allocate(uint64_t bytes);
  void release(Piece piece);

  /// For a user, who gives it back by its offset alone.
  std::optional<uint64_t> lend(uint64_t bytes);
  /// False: nothing that begins there is lent.
  bool takeBack(uint64_t offset);

private:
  std::optional<Piece> allocateLocked(uint64_t bytes);
  void releaseLocked(Piece piece);

  const uint64_t begin;
  Mutex mutex; // guards all below
  transport::Arena free;
  std::unordered_map<uint64_t, uint64_t> lent; // bytes, by offset
};

} // namespace occl::cuda
