// The documents that a client has open, and what is known of them.
#pragma once

#include "tools/occl-lsp/workspace/analysis.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::lsp {

/// Of an answer that is a list: the protocol's library needs kilobytes for each entry, and a large
/// file has a million names.
inline constexpr size_t kMostEntries = 5000;

struct Document {
  protocol::URIForFile uri;
  int64_t version = 0;
  Text text;
  std::unique_ptr<Analysis> analysis; // null: of a text before
  bool isPublished = false;           // what is wrong with it, as far as that is known
};

/// Not thread-safe. References to documents stay valid until they are closed, those to what is
/// known of them until something changes.
class Workspace {
public:
  void configure(Settings next);
  const Settings &settings() const { return current; }
  const frontend::Overlay &overlay() const { return unsaved; }

  void open(const protocol::URIForFile &uri, std::string text, int64_t version);
  /// False if the document is not open.
  bool change(const protocol::DidChangeTextDocumentParams &params);
  /// False if the document is not open.
  bool close(const protocol::URIForFile &uri);
  /// Files may have changed on disk.
  void forgetAll();

  /// Null if it is not open.
  Document *find(const protocol::URIForFile &uri);
  /// What is known of the document, after looking at it if need be.
  const Analysis &analyse(Document &document);
  /// Those of which something may have to be published, in the order of their paths.
  std::vector<Document *> unpublished();
  /// The text of a file of the analysis, with positions; of a document that is open, its own.
  Text textOf(const Analysis &analysis, frontend::FileId file) const;

private:
  /// The file, by its path, is not what it was.
  void changed(const std::string &path);

  Settings current;
  frontend::Overlay unsaved;
  std::map<std::string, Document> documents; // by path
};

} // namespace occl::lsp
