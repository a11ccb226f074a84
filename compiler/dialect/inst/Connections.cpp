#include "compiler/dialect/inst/Connections.h"

#include <algorithm>

namespace occl::inst {

std::vector<int32_t> flatten(llvm::ArrayRef<Connection> connections) {
  std::vector<int32_t> flat;
  // Three numbers and then the destinations. A counter has no channel: -1 says that it is one.
  for (const Connection &connection : connections) {
    int32_t channel = connection.isCounter ? -1 : static_cast<int32_t>(connection.channel);
    flat.insert(flat.end(), {static_cast<int32_t>(connection.source), channel,
                             static_cast<int32_t>(connection.destinations.size())});
    flat.insert(flat.end(), connection.destinations.begin(), connection.destinations.end());
  }
  return flat;
}

std::optional<std::vector<Connection>> unflattenConnections(llvm::ArrayRef<int32_t> flat) {
  // From an attribute, so any number may be wrong: signs and lengths are checked before they are
  // used.
  std::vector<Connection> connections;
  while (!flat.empty()) {
    if (flat.size() < 3 || flat[0] < 0 || flat[1] < -1 || flat[2] < 0 ||
        flat.size() - 3 < static_cast<size_t>(flat[2]))
      return std::nullopt;
    Connection &connection = connections.emplace_back();
    connection.source = static_cast<uint32_t>(flat[0]);
    connection.isCounter = flat[1] == -1;
    connection.channel = static_cast<uint32_t>(std::max(0, flat[1]));
    llvm::ArrayRef<int32_t> destinations = flat.slice(3, static_cast<size_t>(flat[2]));
    for (int32_t rank : destinations)
      if (rank < 0)
        return std::nullopt;
    connection.destinations.assign(destinations.begin(), destinations.end());
    flat = flat.drop_front(3 + destinations.size());
  }
  return connections;
}

} // namespace occl::inst
