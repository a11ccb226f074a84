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
  auto piece = allocateLocked(bytes);
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
  // The allocator counts from zero, pieces from the begin of the arena.
  auto offset = free.allocate(bytes);
  if (!offset)
    return std::nullopt;
  return Piece{begin + *offset, bytes};
}

void ArenaSpace::releaseLocked(Piece piece) { free.release(piece.offset - begin, piece.bytes); }

} // namespace occl::cuda
