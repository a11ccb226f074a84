// A rank's arena with a lock around it; pieces that are lent remember their size.
#include "runtime/cuda/device/arena_space.h"

#include <mutex>

namespace occl::cuda {

std::optional<ArenaSpace::Piece> ArenaSpace::allocate(uint64_t bytes) {
  std::lock_guard lock(mutex);
  return allocateLocked(bytes);
}

void ArenaSpace::release(Piece piece) {
  std::lock_guard lock(mutex);
  releaseLocked(piece);
}

std::optional<uint64_t> ArenaSpace::lend(uint64_t bytes) {
  std::lock_guard lock(mutex);
  auto piece = ranges.front().allocate(bytes);
  if (!piece)
    return std::nullopt;
  lent[piece->offset] = bytes;
  return piece->offset;
}

bool ArenaSpace::takeBack(uint64_t offset) {
  std::lock_guard lock(mutex);
  auto found = lent.find(offset);
  if (found == lent.end())
    return false;
  releaseLocked({offset, found->second});
  lent.erase(found);
  return true;
}

std::optional<ArenaSpace::Piece> ArenaSpace::allocateLocked(uint64_t bytes) {
  for (Range &range : ranges)
    if (auto piece = range.allocate(bytes))
      return piece;
  // What asks forgets what it has not used for long when there is no more, and would never.
  constexpr size_t kMostRanges = 3;
  const auto taken = more && ranges.size() < kMostRanges ? more(bytes) : std::nullopt;
  if (!taken)
    return std::nullopt;
  ranges.push_back({taken->offset, transport::Arena(taken->bytes)});
  return ranges.back().allocate(bytes);
}

void ArenaSpace::releaseLocked(Piece piece) {
  // Offsets wrap, so each range looks for itself.
  for (Range &range : ranges)
    if (range.has(piece.offset)) {
      range.free.release(piece.offset - range.begin, piece.bytes);
      return;
    }
}

} // namespace occl::cuda
