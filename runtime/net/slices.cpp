// Puts slices of a flow in pieces that fit into puts.
#include "runtime/net/slices.h"

#include <algorithm>

namespace occl::net {

bool putSlices(Endpoint &endpoint, const Crossing &crossing, const Outgoing &flow,
               const FlowBlock &block, uint64_t tail, FlowProgress &progress) {
  while (progress.done < tail) {
    // Of signals only the last counts.
    const uint64_t slice = flow.slotBytes == 0 ? tail - 1 : progress.done;
    const uint64_t bytes = crossing.bytesOf(flow, slice), offset = crossing.slotOf(flow, slice);
    // Only the last piece of a slice brings the tail.
    const uint64_t piece = std::min<uint64_t>(bytes - progress.ofSlice, kMaxPut);
    Put put;
    put.region = block.region;
    put.offset = block.offset + offset + progress.ofSlice;
    put.bytes = {block.memory + offset + progress.ofSlice, piece};
    put.hasWord = progress.ofSlice + piece == bytes;
    put.wordOffset = block.offset + flow.tailOffset;
    put.word = block.wordBase + slice + 1;
    if (endpoint.put(put) == Posted::Full)
      return false;
    progress.ofSlice = put.hasWord ? 0 : progress.ofSlice + piece;
    progress.done = put.hasWord ? slice + 1 : progress.done;
  }
  return true;
}

} // namespace occl::net
