// What a collective of the .coll language promises, for algorithms that come without: --implements.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/memory/ChunkSink.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::interchange {

struct PostconditionRequest {
  /// "name" of a standard collective, "file.coll" with one collective, or "file.coll:name".
  std::string collective;
  /// "name=value", one for each -D: parameters of the collective.
  std::vector<std::string> defines;
  std::vector<std::string> importPaths;
};

/// The collective for `ranks` ranks and `chunks` chunks, unless the request's defines say
/// otherwise. Of the result everything but name, parameters and scratch counts. nullopt after
/// errors, which are in `diagnostics`.
std::optional<frontend::ProgramInfo>
instantiatePostcondition(const PostconditionRequest &request, uint32_t ranks, uint32_t chunks,
                         frontend::SourceManager &sources, frontend::DiagnosticEngine &diagnostics);

} // namespace occl::interchange
