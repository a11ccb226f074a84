// What the frontend knows of a document: program, names, values, what is wrong.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/elaborate/Elaborate.h"
#include "compiler/frontend/sema/Program.h"
#include "compiler/frontend/syntax/Lexer.h"
#include "tools/occl-lsp/workspace/observations.h"
#include "tools/occl-lsp/workspace/text.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::lsp {

/// What a client says of its programs when it starts the server.
struct Settings {
  std::vector<std::string> importPaths;
  std::string topology; // a file; may be empty
  std::vector<std::string>
      defines; // "name=value"; those that an algorithm does not have do not count
};

/// Those of the defines that the algorithm has a parameter for.
std::vector<std::string> definesFor(const frontend::AlgorithmDecl &algorithm,
                                    const Settings &settings);

/// Of one text and the files that it imports, as they were when it was made. Does not change and
/// cannot be moved: what it has refers to each other. Not thread-safe.
class Analysis {
public:
  /// `text` is that of the file `path`; `overlay` has what else is not saved, and lives longer.
  Analysis(const std::string &path, const std::string &text, const frontend::Overlay &overlay,
           const Settings &settings);
  Analysis(const Analysis &) = delete;

  frontend::SourceManager sources;
  frontend::FileId file = 0;
  std::vector<frontend::Token> tokens; // of the file
  frontend::Program program;
  frontend::NameTable names;
  Observations observations;
  std::optional<frontend::DeclaredTopology> topology; // the settings', if it was needed

  /// Of the frontend, then, if that found no errors, of each run of an algorithm or topology.
  std::deque<frontend::DiagnosticEngine> diagnostics;

  bool hasErrors() const { return diagnostics.front().hasErrors(); }
  /// Whether it would be another one if this file, by its identity, changed.
  bool dependsOn(const std::string &identity) const;
  /// The token that covers this byte, or ends there; null if there is none.
  const frontend::Token *tokenAt(uint32_t offset) const;
  std::string_view textOf(const frontend::Token &token) const { return sources.text(token.range); }
  /// The innermost declaration of the file around this byte; null if there is none.
  const frontend::Decl *declAt(uint32_t offset) const;

private:
  void run(const Settings &settings);
  void runAlgorithms(const Settings &settings);
  /// False if there were too many already.
  bool runAlgorithm(const frontend::AlgorithmDecl &algorithm, const Settings &settings,
                    frontend::ElaborationOptions options);
  size_t runs = 0; // of algorithms

  /// Whether an import is missing, or has the name of this file: which of several it is may change.
  bool mayImport(const std::string &identity) const;
};

} // namespace occl::lsp
