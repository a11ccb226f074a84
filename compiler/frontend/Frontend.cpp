#include "compiler/frontend/Frontend.h"

#include "compiler/frontend/ChunkDialectBuilder.h"
#include "compiler/frontend/elaborate/Elaborate.h"
#include "compiler/frontend/sema/Program.h"
#include "support/suggestion.h"

#include <cstdio>

namespace occl::frontend {
namespace {

const AlgorithmDecl *chooseAlgorithm(const Module &module, const std::string &wanted,
                                     const SourceManager &sources, DiagnosticEngine &diagnostics) {
  // One algorithm needs no name; with several the user has to choose.
  std::vector<std::string_view> names;
  std::string list;
  for (const AlgorithmDecl &algorithm : module.algorithms) {
    if (algorithm.name == wanted || (wanted.empty() && module.algorithms.size() == 1))
      return &algorithm;
    names.push_back(algorithm.name);
    list += (list.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  std::string file(sources.name(module.file));
  // Each of the three mistakes has its own message, with what could have been meant.
  std::string message =
      names.empty() ? "'" + file + "' has no algorithm"
      : wanted.empty()
          ? "'" + file + "' has several algorithms; choose one with --algorithm: " + list
          : "'" + file + "' has no algorithm '" + wanted + "'" +
                support::didYouMean(support::suggest(wanted, names));
  diagnostics.error(DiagnosticCode::NoAlgorithm, {}, message);
  return nullptr;
}

/// FNV-1a over the texts and parameters: all that the result depends on.
class SourceHash {
public:
  void add(std::string_view text) {
    for (char c : text)
      addByte(static_cast<unsigned char>(c));
    addByte(0);
  }
  std::string digits() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(state));
    return text;
  }

private:
  void addByte(unsigned char byte) { state = (state ^ byte) * 0x100000001b3; }
  uint64_t state = 0xcbf29ce484222325;
};

std::string hashOf(const Program &program, const ProgramInfo &info, const SourceManager &sources,
                   const DeclaredTopology *topology) {
  // What decides the program: topology, all texts, the algorithm and its parameters. Locations of
  // the files do not.
  SourceHash hash;
  if (topology)
    hash.add(topology->identity);
  for (const std::unique_ptr<Module> &module : program.modules)
    hash.add(sources.text(module->file));
  hash.add(info.name);
  for (const auto &[name, value] : info.parameters) {
    hash.add(name);
    hash.add(std::to_string(value));
  }
  return hash.digits();
}

} // namespace

mlir::OwningOpRef<mlir::ModuleOp> compileToChunks(mlir::MLIRContext &context,
                                                  SourceManager &sources, FileId file,
                                                  const FrontendOptions &options,
                                                  DiagnosticEngine &diagnostics,
                                                  VersionInfo *version) {
  // Each stage only if the one before had no errors: an unresolved name would make ten more.
  Program program = loadProgram(sources, file, options.importPaths, diagnostics);
  resolve(program, sources, diagnostics);
  if (diagnostics.hasErrors())
    return {};
  // Which of the file's algorithms.
  const AlgorithmDecl *algorithm =
      chooseAlgorithm(program.main(), options.algorithm, sources, diagnostics);
  if (!algorithm)
    return {};
  ChunkDialectBuilder sink(context, sources, file);
  // The elaboration executes the algorithm and hands what it does to the builder.
  ElaborationOptions elaboration{options.defines, options.maxOps, options.bytes, options.version,
                                 options.topology};
  std::optional<ProgramInfo> info =
      elaborate(program, *algorithm, elaboration, sources, sink, diagnostics);
  if (!info)
    return {};
  if (version)
    *version = {info->numVersions, info->minBytes, info->maxBytes};
  return sink.finish(*info, hashOf(program, *info, sources, options.topology));
}

mlir::OwningOpRef<mlir::ModuleOp>
compileFileToChunks(mlir::MLIRContext &context, SourceManager &sources, const std::string &path,
                    const FrontendOptions &options, DiagnosticEngine &diagnostics,
                    VersionInfo *version) {
  std::string reason;
  std::optional<FileId> file = sources.addFile(path, reason);
  if (file)
    return compileToChunks(context, sources, *file, options, diagnostics, version);
  diagnostics.error(DiagnosticCode::UnreadableFile, {}, "cannot read '" + path + "': " + reason);
  return {};
}

} // namespace occl::frontend
