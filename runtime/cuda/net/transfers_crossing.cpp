#include "runtime/cuda/net/transfers_crossing.h"

#include "runtime/base/data_type.h"
#include "runtime/net/network.h"

#include <algorithm>

namespace occl::cuda {

bool TransfersCrossing::put(net::Endpoint &endpoint, const net::Put &what) {
  const bool isPut = endpoint.put(what) != net::Posted::Full;
  moved |= isPut;
  return isPut;
}

/// In their order, though thread blocks may have written a later one first.
bool TransfersCrossing::sendPieces(uint32_t peer, uint32_t way, Progress &progress,
                                   net::Endpoint &endpoint) {
  for (;;) {
    const auto slot = static_cast<uint32_t>(progress.sent & (pairs.numSlots - 1));
    const uint64_t use = progress.sent / pairs.numSlots;
    const SlotHeader *header = pairs.header(arenas.of(peer), way, arenas.rank(), slot);
    const uint64_t filled = acquireFrom(&header->filled), count = acquireFrom(&header->count);
    if (!isFilled(filled, use) || !isOfUse(count, use))
      return true;
    // The count is the whole transfer's.
    if (progress.left == 0)
      progress.left = countIn(count) * sizeOf(static_cast<DataType>(typeIn(filled)));
    const uint64_t bytes = std::min(progress.left, pairs.slotBytes);
    const char *data = pairs.slot(arenas.of(peer), way, arenas.rank(), slot);
    while (progress.ofPiece < bytes) {
      net::Put what;
      what.region = net::kHeapRegion;
      what.offset = arenas.offsetOf(peer, data) + progress.ofPiece;
      what.bytes = {reinterpret_cast<const std::byte *>(data) + progress.ofPiece,
                    std::min<uint64_t>(bytes - progress.ofPiece, net::kMaxPut)};
      if (!put(endpoint, what))
        return false;
      progress.ofPiece += what.bytes.size();
    }
    net::Put what;
    what.region = net::kHeapRegion;
    what.offset = arenas.offsetOf(peer, &header->count);
    what.bytes = std::as_bytes(std::span(&count, 1));
    what.hasWord = true;
    what.wordOffset = arenas.offsetOf(peer, &header->filled);
    what.word = filled;
    if (!put(endpoint, what))
      return false;
    progress.left -= bytes;
    progress.ofPiece = 0;
    ++progress.sent;
  }
}

bool TransfersCrossing::sendEmptied(uint32_t peer, uint32_t way, Progress &progress,
                                    net::Endpoint &endpoint) {
  for (;;) {
    const auto slot = static_cast<uint32_t>(progress.emptied & (pairs.numSlots - 1));
    const uint64_t *word = pairs.emptied(arenas.of(peer), way, arenas.rank(), slot);
    const uint64_t uses = acquireFrom(word);
    if (uses <= progress.emptied / pairs.numSlots)
      return true;
    net::Put what;
    what.region = net::kHeapRegion;
    what.hasWord = true;
    what.wordOffset = arenas.offsetOf(peer, word);
    what.word = uses;
    if (!put(endpoint, what))
      return false;
    ++progress.emptied;
  }
}

bool TransfersCrossing::send(uint32_t peer, net::Endpoint &endpoint) {
  moved = false;
  if (pairs.numSlots == 0)
    return true;
  for (uint32_t way = 0; way < kTransferWays; ++way) {
    Progress &progress = peers[peer].ways[way];
    if (!sendEmptied(peer, way, progress, endpoint) || !sendPieces(peer, way, progress, endpoint))
      return false;
  }
  return true;
}

} // namespace occl::cuda
