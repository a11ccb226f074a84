// textDocument/completion and signatureHelp.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <optional>

namespace occl::lsp {

/// What can be written here: words of the language where they have a meaning, the names that are
/// visible, properties and operations of what stands before a dot, files to import. The client
/// chooses by what is written already.
protocol::CompletionList completionAt(Workspace &workspace, Document &document,
                                      protocol::Position position);

/// Of the innermost call around the position: a function, a built-in one, a collective, copy,
/// reduce or into. Nothing outside of calls.
std::optional<protocol::SignatureHelp> signatureAt(Workspace &workspace, Document &document,
                                                   protocol::Position position);

} // namespace occl::lsp
