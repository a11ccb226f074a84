// textDocument/definition, references and documentSymbol.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <vector>

namespace occl::lsp {

/// Of a name, where it is declared, also in an imported file; of an import, the file. Nothing of
/// what the language brings along.
std::vector<protocol::Location> definitionAt(Workspace &workspace, Document &document,
                                             protocol::Position position);

/// In the document and in what it imports; the first kMostEntries.
std::vector<protocol::Location> referencesAt(Workspace &workspace, Document &document,
                                             protocol::Position position, bool includeDeclaration);

/// The declarations, and in them parameters, scratch and the variables of the outermost block; the
/// first kMostEntries of either.
std::vector<protocol::DocumentSymbol> symbolsOf(Workspace &workspace, Document &document);

} // namespace occl::lsp
