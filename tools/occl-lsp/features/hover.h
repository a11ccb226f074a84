// textDocument/hover: types, values and places, and what a word means.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <optional>

namespace occl::lsp {

/// Nothing where there is nothing to say. Values and places are those of a run with the defaults of
/// the parameters, or what the settings define.
std::optional<protocol::Hover> hoverAt(Workspace &workspace, Document &document,
                                       protocol::Position position);

} // namespace occl::lsp
