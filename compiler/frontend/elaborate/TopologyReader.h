// From the text of a topology file to the topology.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/sema/DeclaredTopology.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::frontend {

/// Parses, checks and executes the topology in the file, which declares exactly one. Of `defines`
/// ("name=value") those count that name a parameter of it. nullopt after an error, which is in
/// `diagnostics`. Time and memory are bounded by what a topology may have (Topology.h).
std::optional<DeclaredTopology> readTopology(SourceManager &sources, const std::string &path,
                                             const std::vector<std::string> &defines,
                                             const std::vector<std::string> &importPaths,
                                             DiagnosticEngine &diagnostics);

} // namespace occl::frontend
