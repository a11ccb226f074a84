// textDocument/rename and formatting: requests whose answers are edits.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::lsp {

/// Of a variable, or of a parameter of a function: what nobody names from another file. An error,
/// which says why, where the program has errors, for other names, and where any name would mean
/// something else afterwards.
llvm::Expected<protocol::WorkspaceEdit> renameAt(Workspace &workspace, Document &document,
                                                 protocol::Position position,
                                                 const std::string &newName);

/// What occlc fmt does, as one replacement; none if that is nothing, or if there are syntax errors.
std::vector<protocol::TextEdit> formatted(const Document &document);

} // namespace occl::lsp
