#include "runtime/cuda/arena_space.h"

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

void ArenaSpace::releaseWithSlot(uint32_t slot, const std::vector<Piece> &pieces) {
  uint64_t generation = slots.generation(slot);
  std::lock_guard lock(mutex);
  for (const Piece &piece : pieces)
    pending.push_back({slot, generation, piece});
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
  releasePending();
  auto offset = free.allocate(bytes);
  if (!offset)
    return std::nullopt;
  return Piece{begin + *offset, bytes};
}

void ArenaSpace::releaseLocked(Piece piece) { free.release(piece.offset - begin, piece.bytes); }

void ArenaSpace::releasePending() {
  std::erase_if(pending, [&](const Pending &waiting) {
    if (slots.generation(waiting.slot) == waiting.generation)
      return false;
    releaseLocked(waiting.piece);
    return true;
  });
}

} // namespace occl::cuda
