// All files of a compilation: the prelude, the program and what it imports.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/sema/Names.h"
#include "compiler/frontend/syntax/AST.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace occl::frontend {

struct Program {
  /// The first is the prelude, the second the program itself; then its imports in order of
  /// discovery.
  std::vector<std::unique_ptr<Module>> modules;
  std::unordered_map<std::string_view, const FunctionDecl *> functions;
  std::unordered_map<std::string_view, const CollectiveDecl *> collectives;

  const Module &main() const { return *modules[1]; }
  Module &main() { return *modules[1]; }
};

/// The text of the standard collectives.
std::string_view preludeText();

/// Parses the prelude, the file and, once each, all that they import, and collects the
/// declarations. An import is looked for beside the file that contains it, then in `importPaths`.
Program loadProgram(SourceManager &sources, FileId file,
                    const std::vector<std::string> &importPaths, DiagnosticEngine &diagnostics);

/// Resolves names, checks types and assigns slots, in all modules. `names`, unless null, is told of
/// all names, also of a program with errors.
void resolve(Program &program, const SourceManager &sources, DiagnosticEngine &diagnostics,
             NameTable *names = nullptr);

} // namespace occl::frontend
