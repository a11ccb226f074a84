// The frontend as a whole: from the text of a .coll file to the chunk dialect.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/sema/DeclaredTopology.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::frontend {

struct FrontendOptions {
  /// "name=value", one for each -D.
  std::vector<std::string> defines;
  /// Folders in which imports are looked for, after the importing file's own.
  std::vector<std::string> importPaths;
  /// Which algorithm of the file; may be empty if there is only one.
  std::string algorithm;
  /// Reads, copies and reductions that a program may consist of; without it defaultMaxOps().
  std::optional<uint64_t> maxOps = {};
  /// Which version of the algorithm: the one for this size, or else by number.
  std::optional<uint64_t> bytes = {};
  size_t version = 0;
  /// What the program is for, if that is known: it can ask about it, and moves chunks only along
  /// its links. Definitions that name parameters of the topology are meant for it, too.
  const DeclaredTopology *topology = nullptr;
};

/// Which of an algorithm's versions was compiled.
struct VersionInfo {
  size_t count = 1; // of versions that the algorithm has
  uint64_t minBytes = 0;
  uint64_t maxBytes = ~uint64_t{0};
};

/// Parses, checks and executes the program in `file` and returns a module of one chunk.program, or
/// null if there were errors, which are then in `diagnostics`. Loads the chunk dialect into the
/// context. The same file name, text and options give the same module. Not thread-safe in its
/// arguments. `version`, unless null, is filled in if a module is returned.
mlir::OwningOpRef<mlir::ModuleOp> compileToChunks(mlir::MLIRContext &context,
                                                  SourceManager &sources, FileId file,
                                                  const FrontendOptions &options,
                                                  DiagnosticEngine &diagnostics,
                                                  VersionInfo *version = nullptr);

/// The same for a file on disk.
mlir::OwningOpRef<mlir::ModuleOp>
compileFileToChunks(mlir::MLIRContext &context, SourceManager &sources, const std::string &path,
                    const FrontendOptions &options, DiagnosticEngine &diagnostics,
                    VersionInfo *version = nullptr);

} // namespace occl::frontend
