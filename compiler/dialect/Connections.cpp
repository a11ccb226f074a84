#include "compiler/dialect/Connections.h"

namespace occl::inst {

std::vector<int32_t> flatten(llvm::ArrayRef<Connection> connections) {
  std::vector<int32_t> flat;
  for (const Connection &connection : connections) {
    flat.insert(flat.end(),
                {static_cast<int32_t>(connection.source), static_cast<int32_t>(connection.channel),
                 static_cast<int32_t>(connection.destinations.size())});
    flat.insert(flat.end(), connection.destinations.begin(), connection.destinations.end());
  }
  return flat;
}

std::optional<std::vector<Connection>> unflattenConnections(llvm::ArrayRef<int32_t> flat) {
  std::vector<Connection> connections;
  for (int32_t value : flat)
    if (value < 0)
      return std::nullopt;
  while (!flat.empty()) {
    if (flat.size() < 3 || flat.size() - 3 < static_cast<size_t>(flat[2]))
      return std::nullopt;
    Connection &connection = connections.emplace_back();
    connection.source = static_cast<uint32_t>(flat[0]);
    connection.channel = static_cast<uint32_t>(flat[1]);
    llvm::ArrayRef<int32_t> destinations = flat.slice(3, static_cast<size_t>(flat[2]));
    connection.destinations.assign(destinations.begin(), destinations.end());
    flat = flat.drop_front(3 + destinations.size());
  }
  return connections;
}

} // namespace occl::inst
