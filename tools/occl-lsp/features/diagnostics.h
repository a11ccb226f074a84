// textDocument/publishDiagnostics, and the replacements that mend errors.
#pragma once

#include "tools/occl-lsp/protocol/messages.h"
#include "tools/occl-lsp/workspace/workspace.h"

#include <vector>

namespace occl::lsp {

/// What is wrong with the document, in the order of discovery. Mistakes in imported files are shown
/// at the import. What an algorithm needs before it can be executed at all, and the end of the
/// budget while somebody types, are information.
std::vector<Diagnostic> diagnosticsOf(Workspace &workspace, Document &document);

/// The replacements that the compiler proposes for errors that touch the range.
std::vector<protocol::CodeAction> fixesOf(Workspace &workspace, Document &document,
                                          protocol::Range range);

} // namespace occl::lsp
