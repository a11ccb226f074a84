// Which words and slots of a shape's arena blocks ranks of other islands read or write.
#pragma once

#include "runtime/exec/bind/bind.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::net {

/// Slices of one connection that go to one rank of another island: its tail and slots, in this
/// rank's block, or with Placement::AtDestination in the peer's.
struct Outgoing {
  uint32_t peer = 0;
  uint64_t tailOffset = 0, slotsOffset = 0, slotBytes = 0; // no slots: a signal's
  /// By message of a tile: the instruction that sends it.
  std::shared_ptr<const std::vector<uint32_t>> instructions;
};

/// The head that this rank stores for one connection from a rank of another island, in the block of
/// that rank.
struct Incoming {
  uint32_t peer = 0;
  uint64_t headOffset = 0; // from the heads of the peer's block
};

/// Indices of consecutive flows.
struct Flows {
  size_t first = 0, end = 0;
};

/// Of one rank. Immutable. The binding is bound for protocol Simple.
class Crossing {
public:
  /// isRemote: by rank. `headsDistance` as in the BindRequest.
  Crossing(std::shared_ptr<const interpreter::Binding> binding, const std::vector<bool> &isRemote,
           uint64_t headsDistance);

  /// Ordered by peer; those of one peer in the order of their connections in the program.
  const std::vector<Outgoing> &outgoing() const { return sent; }
  const std::vector<Incoming> &incoming() const { return received; }
  /// Those of one rank, by index, without a look at the others.
  Flows outgoingTo(uint32_t peer) const { return {firstSent[peer], firstSent[peer + 1]}; }
  Flows incomingFrom(uint32_t peer) const { return {firstReceived[peer], firstReceived[peer + 1]}; }
  const interpreter::Binding &binding() const { return *bound; }
  /// Where the slice lies whose tail is `slice` + 1, from the begin of the block.
  uint64_t slotOf(const Outgoing &flow, uint64_t slice) const;
  /// How many bytes it has.
  uint64_t bytesOf(const Outgoing &flow, uint64_t slice) const;

private:
  const std::shared_ptr<const interpreter::Binding> bound;
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  std::vector<size_t> firstSent, firstReceived; // by rank, and how many there are at the end
};

} // namespace occl::net
