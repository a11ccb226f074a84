// What of a rank's arena is taken. Offsets only: knows neither devices nor their memory.
#pragma once

#include "runtime/memory/arena.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class ArenaSpace {
public:
  struct Piece {
    uint64_t offset, bytes;
  };

  /// More of it, at least so many bytes that others do not know of: where it lies, modulo 2^64, and
  /// how much it is; nothing if there is none.
  using More = std::function<std::optional<Piece>(uint64_t bytes)>;

  /// Of `bytes` from offset `begin` on; `more` is asked by allocate() when none of it is free,
  /// and gives two pieces at most.
  ArenaSpace(uint64_t begin, uint64_t bytes, More more = {})
      : ranges{Range{begin, transport::Arena(bytes)}}, more(std::move(more)) {}

  /// At least `bytes`, aligned to 128; nothing if no range is free now.
  std::optional<Piece> allocate(uint64_t bytes);
  void release(Piece piece);

  /// For a user, who gives it back by its offset alone.
  std::optional<uint64_t> lend(uint64_t bytes);
  /// False: nothing that begins there is lent.
  bool takeBack(uint64_t offset);

private:
  struct Range {
    uint64_t begin;
    transport::Arena free; // counts from zero

    std::optional<Piece> allocate(uint64_t bytes) {
      auto offset = free.allocate(bytes);
      return offset ? std::optional(Piece{begin + *offset, bytes}) : std::nullopt;
    }
    bool has(uint64_t offset) const { return offset - begin < free.size(); }
  };
  std::optional<Piece> allocateLocked(uint64_t bytes);
  void releaseLocked(Piece piece);

  Mutex mutex;               // guards all below
  std::vector<Range> ranges; // the first one is the arena
  const More more;
  std::unordered_map<uint64_t, uint64_t> lent; // bytes, by offset
};

} // namespace occl::cuda
