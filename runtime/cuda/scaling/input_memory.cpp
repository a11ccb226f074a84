// Pieces of memory for copies of inputs, of the arena or of CUDA's.
#include "runtime/cuda/scaling/input_memory.h"

#include <algorithm>
#include <bit>
#include <string>

namespace occl::cuda {

namespace {

/// Up to there a piece is a power of two.
constexpr uint64_t kMostRoundedUp = 64 << 20;

} // namespace

char *InputMemory::take(uint64_t bytes) {
  const auto offset = space.lend(bytes);
  return offset ? memory.onDevice() + *offset : nullptr;
}

void InputMemory::giveBack(const char *taken) {
  space.takeBack(static_cast<uint64_t>(taken - memory.onDevice()));
}

/// Calls run one after the other, so any piece that is large enough will do.
StatusOr<char *> OrderedScaledInputs::memoryFor(const Call &call, uint64_t bytes) {
  for (Piece &piece : pieces)
    if (piece.bytes >= bytes && suits(piece, call)) {
      piece.lastCall = call.number;
      piece.isCaptured |= call.isCaptured;
      return piece.begin;
    }
  // No piece fits: pieces of calls that are over go first.
  if (Status given = pieces.empty() ? Status() : giveBackUnused(call); !given.ok())
    return given;
  auto made = makePiece(call, bytes);
  if (!made.ok())
    return made.status();
  // The piece is free again once this call is over, unless a graph has it.
  pieces.push_back(*made);
  return made->begin;
}

/// What CUDA has given stays: to give it back may take as long as anything on the device does.
Status OrderedScaledInputs::giveBackUnused(const Call &call) {
  const auto finished = call.numFinished();
  if (!finished.ok())
    return finished.status();
  std::erase_if(pieces, [&](const Piece &piece) {
    const bool isFree = !piece.own && !piece.isCaptured && piece.lastCall < *finished;
    if (isFree)
      inputs.giveBack(piece.begin);
    return isFree;
  });
  return {};
}

/// Of inputs that grow not each is to have a piece of its own: a piece is at least half as large
/// again as those before it.
uint64_t OrderedScaledInputs::largerFor(const Call &call, uint64_t bytes) const {
  if (bytes <= kMostRoundedUp)
    return std::bit_ceil(bytes);
  uint64_t largest = 0;
  for (const Piece &piece : pieces)
    if (suits(piece, call))
      largest = std::max(largest, piece.bytes);
  return std::max(bytes, largest + largest / 2);
}

/// What is left of the arena first: that takes no time, and no call of CUDA that may wait. Other
/// memory of the device will do, unless other ranks access it. Without so much, no more than
/// needed.
StatusOr<OrderedScaledInputs::Piece> OrderedScaledInputs::makePiece(const Call &call,
                                                                    uint64_t bytes) {
  const uint64_t sizes[] = {largerFor(call, bytes), bytes};
  for (const uint64_t size : sizes)
    if (char *taken = inputs.take(size))
      return Piece{taken, size, nullptr, call.number, call.isCaptured};
  for (const uint64_t size : sizes) {
    void *begin = nullptr;
    if (call.isDirect)
      break;
    if (cudaMalloc(&begin, size) == cudaSuccess) {
      auto own = std::make_shared<DeviceAllocation>(inputs.device(), static_cast<char *>(begin));
      return Piece{own->begin, size, own, call.number, call.isCaptured};
    }
    (void)cudaGetLastError();
  }
  return Status(StatusCode::Again, "no " + std::to_string(bytes) +
                                       " bytes of device memory are free for a copy of an "
                                       "input; free memory of occlMemAlloc, or set heapBytes "
                                       "higher");
}

void OrderedScaledInputs::abandon() {
  for (const Piece &piece : pieces)
    if (piece.own)
      piece.own->isLeft = true;
}

} // namespace occl::cuda
