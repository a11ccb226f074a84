#include "compiler/interchange/synthesis/SynthesisFrontend.h"

#include "compiler/frontend/ChunkDialectBuilder.h"
#include "compiler/interchange/common/SourceHash.h"
#include "compiler/interchange/synthesis/Synthesis.h"

namespace occl::interchange::synthesis {

using namespace frontend;

mlir::OwningOpRef<mlir::ModuleOp> compileFileToChunks(mlir::MLIRContext &context,
                                                      SourceManager &sources,
                                                      const std::string &path,
                                                      DiagnosticEngine &diagnostics) {
  // As the frontend does for a program: text, structure, operations, program.
  std::string reason;
  std::optional<FileId> file = sources.addFile(path, reason);
  if (!file) {
    diagnostics.error(DiagnosticCode::ImportUnreadable, {},
                      "cannot read '" + path + "': " + reason);
    return {};
  }
  std::optional<Algorithm> algorithm = parse(sources, *file, diagnostics);
  if (!algorithm)
    return {};
  ChunkDialectBuilder sink(context, sources, *file);
  std::optional<ProgramInfo> info = emit(*algorithm, *file, sink, diagnostics);
  if (!info)
    return {};
  // Neither the depth nor anything else decides what the program is.
  return sink.finish(*info, hashOf(sources.text(*file), 0, info->root, info->collective));
}

} // namespace occl::interchange::synthesis
