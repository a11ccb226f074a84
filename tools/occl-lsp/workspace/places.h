// From bytes of files to what the protocol calls them.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <map>
#include <optional>

namespace occl::lsp {

/// Of one analysis, which lives longer, as its document does. Not thread-safe.
class Places {
public:
  Places(Workspace &workspace, const Document &document, const Analysis &analysis)
      : workspace(workspace), document(document), analysis(analysis) {}

  /// Whether it is in the document's own text.
  bool isOwn(frontend::SourceRange range) const;
  /// Of the document's own text.
  protocol::Range own(frontend::SourceRange range) const {
    return document.text.rangeOf(range.begin, range.end);
  }
  /// Nothing of what is in no file: the prelude, a command line.
  std::optional<protocol::Location> locationOf(frontend::SourceRange range);

private:
  Workspace &workspace;
  const Document &document;
  const Analysis &analysis;
  std::map<frontend::FileId, Text> texts;
};

} // namespace occl::lsp
