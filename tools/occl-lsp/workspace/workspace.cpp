#include "tools/occl-lsp/workspace/workspace.h"

namespace occl::lsp {

void Workspace::configure(Settings next) {
  current = std::move(next);
  forgetAll();
}

void Workspace::open(const protocol::URIForFile &uri, std::string text, int64_t version) {
  std::string path = uri.file().str();
  Document &document = documents[path];
  document.uri = uri;
  document.version = version;
  document.text = Text(std::move(text));
  // Nothing is analysed before somebody asks for it, or nobody types for a moment.
  document.analysis.reset();
  document.isPublished = false;
  changed(path);
}

bool Workspace::change(const protocol::DidChangeTextDocumentParams &params) {
  Document *document = find(params.textDocument.uri);
  if (!document)
    return false;
  for (const protocol::TextDocumentContentChangeEvent &event : params.contentChanges)
    document->text.apply(event);
  document->version = params.textDocument.version;
  changed(params.textDocument.uri.file().str());
  return true;
}

bool Workspace::close(const protocol::URIForFile &uri) {
  std::string path = uri.file().str();
  if (documents.erase(path) == 0)
    return false;
  unsaved.erase(path);
  // Two paths may lead to one file, by a link: then the other document's text still is the file's
  // unsaved one.
  // It may be open under another path, too.
  std::string identity = frontend::fileIdentity(path);
  for (const auto &[other, document] : documents)
    if (frontend::fileIdentity(other) == identity)
      unsaved.set(other, document.text.bytes());
  changed(path);
  return true;
}

void Workspace::changed(const std::string &path) {
  auto own = documents.find(path);
  // What changed may be imported by others, so their analyses are out of date as well.
  if (own != documents.end())
    unsaved.set(path, own->second.text.bytes());
  std::string identity = frontend::fileIdentity(path);
  for (auto &[other, document] : documents) {
    bool isAffected = other == path || !document.analysis || document.analysis->dependsOn(identity);
    if (!isAffected)
      continue;
    document.analysis.reset();
    document.isPublished = false;
  }
}

void Workspace::forgetAll() {
  for (auto &[path, document] : documents) {
    document.analysis.reset();
    document.isPublished = false;
  }
}

Document *Workspace::find(const protocol::URIForFile &uri) {
  auto found = documents.find(uri.file().str());
  return found == documents.end() ? nullptr : &found->second;
}

const Analysis &Workspace::analyse(Document &document) {
  if (!document.analysis)
    document.analysis = std::make_unique<Analysis>(document.uri.file().str(), document.text.bytes(),
                                                   unsaved, current);
  return *document.analysis;
}

std::vector<Document *> Workspace::unpublished() {
  std::vector<Document *> found;
  for (auto &[path, document] : documents)
    if (!document.isPublished)
      found.push_back(&document);
  return found;
}

Text Workspace::textOf(const Analysis &analysis, frontend::FileId file) const {
  const std::string *open = unsaved.find(std::string(analysis.sources.name(file)));
  return Text(open ? *open : std::string(analysis.sources.text(file)));
}

} // namespace occl::lsp
