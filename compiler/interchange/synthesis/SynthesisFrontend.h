// From a synthesizer's file to the chunk dialect: what the frontend is for .coll files.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace occl::interchange::synthesis {

/// A module of one chunk.program, or null if there were errors, which are then in `diagnostics`.
/// Loads the chunk dialect into the context.
mlir::OwningOpRef<mlir::ModuleOp> compileFileToChunks(mlir::MLIRContext &context,
                                                      frontend::SourceManager &sources,
                                                      const std::string &path,
                                                      frontend::DiagnosticEngine &diagnostics);

} // namespace occl::interchange::synthesis
