// CudaParts: how the two sides of a request find each other.
#include "runtime/cuda/partitioned/cuda_parts.h"
#include "runtime/cuda/partitioned/part_layout.h"

#include <memory>
#include <mutex>
#include <new>

namespace occl::cuda {

using partitioned::Counterpart;

/// Null: another process has said so, and it is nothing of its arena.
char *CudaParts::inArena(uint32_t rank, uint64_t offsetAndOne, uint64_t bytes) const {
  const uint64_t size = memory.bytes();
  if (offsetAndOne == 0 || bytes > size || offsetAndOne - 1 > size - bytes)
    return nullptr;
  return memory.arena(rank) + (offsetAndOne - 1);
}

/// The same of words, which are aligned.
template <class Words>
Words *CudaParts::wordsIn(uint32_t rank, uint64_t offsetAndOne, uint64_t number) const {
  if (offsetAndOne % sizeof(uint64_t) != 1)
    return nullptr;
  return reinterpret_cast<Words *>(inArena(rank, offsetAndOne, number * sizeof(Words)));
}

Status CudaParts::damaged(const PairPart &part) const {
  return {StatusCode::InternalError, describe(part) + ": what the other side says is damaged"};
}

/// What the peer's addresses are is in its place: kernels may look.
void CudaParts::connected(PairPart &part) {
  storeShared(&part.peer->isConnected, 1, std::memory_order_release);
  part.isConnected = true;
}

Status CudaParts::connectReceive(PairPart &part, const Counterpart &sender) {
  auto *theirs = wordsIn<device::State>(part.party.peer, sender.onDevice.words, 1);
  const device::Cut cut = cutOf(sender.shape);
  if (!theirs || !words->canEverFit(cut.units())) // its own rank has refused so many
    return damaged(part);
  const auto taken = words->take(cut.units());
  part.lacksWords = !taken;
  if (!taken)
    return {}; // until others are freed
  part.party.kept.push_back(std::shared_ptr<const void>(
      part.onDevice, [this, range = *taken](const void *) { words->giveBack(range); }));
  const uint64_t offset = wordsPiece.offset + taken->offset;
  part.peer->arrived = reinterpret_cast<uint64_t *>(memory.onDevice() + offset);
  part.peer->started = &theirs->peerStarted;
  part.peer->cut = cut;
  // Nothing of this may come to nothing: it is not tried again.
  connected(part);
  matching.bind(part.party, offset);
  return {};
}

Status CudaParts::connectSend(PairPart &part, const Counterpart &receiver) {
  // The receiver has not taken words of arrival yet.
  const uint64_t arrivals = receiver.arrivals.load(std::memory_order_acquire);
  if (arrivals == 0)
    return {};
  const uint32_t peer = part.party.peer;
  const uint64_t bytes = part.cut.bytes;
  // Another process says where these are, so all of it is checked.
  auto *theirs = wordsIn<device::State>(peer, receiver.onDevice.words, 1);
  auto *arrived = wordsIn<uint64_t>(peer, arrivals, part.cut.units());
  char *const buffer = bytes == 0 ? nullptr : inArena(peer, receiver.onDevice.buffer, bytes);
  if (!theirs || !arrived || (bytes != 0 && !buffer))
    return damaged(part);
  part.peer->epoch = &theirs->epoch;
  part.peer->arrived = arrived;
  part.peer->buffer = buffer;
  connected(part);
  return {};
}

/// Under the lock.
Status CudaParts::connect(PairPart &part) {
  const Counterpart *other = part.party.counterpart.load(std::memory_order_acquire);
  if (!other)
    return {};
  const bool isFreed = other->isFreed.load(std::memory_order_acquire);
  Status status;
  if (!part.isConnected && !isFreed && part.party.shape.fits(other->shape))
    status = part.party.isSend ? connectSend(part, *other) : connectReceive(part, *other);
  if (isFreed && !part.isFreedTold) {
    storeShared(&part.peer->isFreed, 1, std::memory_order_release);
    part.isFreedTold = true;
  }
  return status;
}

void CudaParts::connect() {
  try {
    Status status = matching.lookAtAll();
    for (const auto &[key, part] : all)
      if (Status connected = connect(*part); status.ok())
        status = connected;
    if (!status.ok())
      fabric.fail(status);
  } catch (const std::bad_alloc &) { // the next look goes on with it
  }
}

void CudaParts::tidy() {
  std::lock_guard lock(mutex);
  if (words) // there has been a request
    connect();
}

/// Before work of a request: that it has not found its other side may have changed.
Status CudaParts::tend(const PairPart &part) {
  {
    std::lock_guard lock(mutex);
    if (part.isConnected)
      return {};
    if (!part.lacksWords) {
      connect();
      return {};
    }
  }
  // It lacks words: those that came back are cleared, which takes a call of CUDA.
  Status status = clearWords();
  std::lock_guard lock(mutex);
  if (status.ok())
    connect();
  return status;
}

} // namespace occl::cuda
