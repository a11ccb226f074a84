// A topology and where it was declared.
#pragma once

#include "compiler/frontend/diagnostics/SourceManager.h"
#include "compiler/topology/Topology.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace occl::frontend {

struct DeclaredTopology {
  topology::Topology topology;
  SourceRange place; // its name
  std::vector<std::string> parameters;
  std::string identity; // all that it depends on

  bool hasParameter(std::string_view name) const {
    return std::find(parameters.begin(), parameters.end(), name) != parameters.end();
  }
};

/// What `topology.name` can ask for.
enum class TopologyQuery : uint8_t {
  Ranks,
  Nodes,
  Gpus,
  Size,
  Node,
  Local,
  Rank,
  HasLink,
  Nics,
  Nic,
  Bandwidth,
  Latency
};

} // namespace occl::frontend
