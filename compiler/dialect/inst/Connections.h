// The flat form of the connections of an inst.program.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::inst {

/// A FIFO or counter from one rank to others; destinations ascend.
struct Connection {
  uint32_t source = 0;
  uint32_t channel = 0;
  llvm::SmallVector<uint32_t, 2> destinations;
  bool isCounter = false;

  bool operator==(const Connection &) const = default;
};

/// source, channel (-1 for a counter), number of destinations, destinations, for each connection.
std::vector<int32_t> flatten(llvm::ArrayRef<Connection> connections);

/// The inverse; nothing if `flat` ends in the middle of a connection or has another negative
/// number.
std::optional<std::vector<Connection>> unflattenConnections(llvm::ArrayRef<int32_t> flat);

} // namespace occl::inst
