// Puts what a rank has sent on the connections of an invocation to a rank of another island.
#pragma once

#include "runtime/net/crossing.h"
#include "runtime/net/transport/transport.h"

#include <cstddef>
#include <cstdint>

namespace occl::net {

/// Of one flow of an invocation.
struct FlowProgress {
  uint64_t done = 0;    // the tail or head that the peer knows
  uint64_t ofSlice = 0; // bytes of the next slice that it has
};

/// The memory in which a flow's slots and tail lie, at the same place in a region of the peer.
struct FlowBlock {
  const std::byte *memory = nullptr;
  uint32_t region = 0;
  uint64_t offset = 0;   // in the region
  uint64_t wordBase = 0; // what its words have more than counts
};

/// Puts the slices below `tail`, which was acquired, each with the tail that ends it. False: there
/// is no room now.
bool putSlices(Endpoint &endpoint, const Crossing &crossing, const Outgoing &flow,
               const FlowBlock &block, uint64_t tail, FlowProgress &progress);

} // namespace occl::net
