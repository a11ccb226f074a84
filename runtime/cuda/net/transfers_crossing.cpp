// Pieces of transfers go to the peer in their order, each with its header behind it, and the uses
// of slots that are over come back.
#include "runtime/cuda/net/transfers_crossing.h"

#include "runtime/base/data_type.h"
#include <algorithm>
#include <span>

namespace occl::cuda {

/// In their order, though kernels may have written a later one first.
bool TransfersCrossing::sendPieces(uint32_t peer, Progress &progress) {
  for (;;) {
    const auto slot = static_cast<uint32_t>(progress.sent & (pairs.numSlots - 1));
    const uint64_t use = progress.sent / pairs.numSlots;
    const SlotHeader *header = pairs.header(arenas.of(peer), arenas.rank(), slot);
    const uint64_t filled = acquireFrom(&header->filled), count = acquireFrom(&header->count);
    if (!isFilled(filled, use) || !isOfUse(count, use))
      return true;
    // The count is the whole transfer's.
    const uint64_t all = countIn(count) * sizeOf(static_cast<DataType>(typeIn(filled)));
    if (progress.left == 0)
      progress.left = all;
    const uint64_t bytes = std::min(progress.left, pairs.pieceBytes(all, false));
    const auto data =
        std::as_bytes(std::span(pairs.slot(arenas.of(peer), peer, arenas.rank(), slot), bytes));
    // The data first, in puts of limited size; where there is no room the rest follows later.
    while (progress.ofPiece < bytes) {
      const auto part = data.subspan(progress.ofPiece,
                                     std::min<uint64_t>(bytes - progress.ofPiece, net::kMaxPut));
      if (!puts.bytes(part))
        return false;
      progress.ofPiece += part.size();
    }
    // Nobody writes the header before this piece was received.
    if (!puts.wordBehind(std::as_bytes(std::span(&header->count, 1)), &header->filled, filled))
      return false;
    progress.left -= bytes;
    progress.ofPiece = 0;
    ++progress.sent;
  }
}

bool TransfersCrossing::sendEmptied(uint32_t peer, Progress &progress) {
  for (;;) {
    const auto slot = static_cast<uint32_t>(progress.emptied & (pairs.numSlots - 1));
    const uint64_t *word = pairs.emptied(arenas.of(peer), arenas.rank(), slot);
    // The slots of a pair are emptied in order, too.
    const uint64_t uses = acquireFrom(word);
    if (uses <= progress.emptied / pairs.numSlots)
      return true;
    if (!puts.word(word, uses))
      return false;
    ++progress.emptied;
  }
}

bool TransfersCrossing::send(uint32_t peer, net::Endpoint &endpoint) {
  // Credit first: the peer may be waiting for it with all slots full.
  puts.begin(peer, endpoint);
  if (pairs.numSlots == 0)
    return true;
  return sendEmptied(peer, peers[peer]) && sendPieces(peer, peers[peer]);
}

} // namespace occl::cuda
