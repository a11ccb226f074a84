#include "tools/occl-lsp/workspace/places.h"

namespace occl::lsp {

using protocol::URIForFile;

bool Places::isOwn(frontend::SourceRange range) const {
  // A topology is read once more, under a number of its own.
  return range.isValid() &&
         analysis.sources.name(range.file) == analysis.sources.name(analysis.file);
}

std::optional<protocol::Location> Places::locationOf(frontend::SourceRange range) {
  if (isOwn(range))
    return protocol::Location(document.uri, own(range));
  // Diagnostics without a place, and texts without a file such as the prelude, have no location
  // that an editor could open.
  if (!range.isValid())
    return std::nullopt;
  std::string name(analysis.sources.name(range.file));
  llvm::Expected<URIForFile> uri = URIForFile::fromFile(name);
  if (name.starts_with('<') || !uri) {
    if (!uri)
      llvm::consumeError(uri.takeError());
    return std::nullopt;
  }
  const Document *open = workspace.find(*uri); // known by the client's own spelling
  // Positions are in lines and UTF-16 units, so the text of the other file is needed; each is
  // indexed once a request.
  auto [text, isNew] = texts.try_emplace(range.file);
  if (isNew)
    text->second = workspace.textOf(analysis, range.file);
  return protocol::Location(open ? open->uri : *uri, text->second.rangeOf(range.begin, range.end));
}

} // namespace occl::lsp
