#include "compiler/frontend/elaborate/TopologyReader.h"

#include "compiler/frontend/elaborate/Elaborator.h"
#include "compiler/frontend/memory/NullChunkSink.h"

#include <algorithm>

namespace occl::frontend {
namespace {

const TopologyDecl *onlyTopology(const Module &module, const std::string &path,
                                 DiagnosticEngine &diagnostics) {
  if (module.topologies.size() == 1)
    return &module.topologies.front();
  SourceRange second = module.topologies.empty() ? SourceRange() : module.topologies[1].nameRange;
  diagnostics.error(
      DiagnosticCode::NoTopology, second,
      "'" + path + (module.topologies.empty() ? "' has no topology" : "' has several topologies"));
  return nullptr;
}

} // namespace

std::optional<DeclaredTopology> readTopology(SourceManager &sources, const std::string &path,
                                             const std::vector<std::string> &defines,
                                             const std::vector<std::string> &importPaths,
                                             DiagnosticEngine &diagnostics) {
  std::string reason;
  // As a program: read, parsed, resolved; a topology file may import functions.
  std::optional<FileId> file = sources.addFile(path, reason);
  if (!file) {
    diagnostics.error(DiagnosticCode::UnreadableFile, {}, "cannot read '" + path + "': " + reason);
    return std::nullopt;
  }
  Program program = loadProgram(sources, *file, importPaths, diagnostics);
  resolve(program, sources, diagnostics);
  if (diagnostics.hasErrors())
    return std::nullopt;
  const TopologyDecl *decl = onlyTopology(program.main(), path, diagnostics);
  if (!decl)
    return std::nullopt;
  DeclaredTopology result;
  result.place = decl->nameRange;
  for (const Param &param : decl->params)
    result.parameters.emplace_back(param.name);
  // Of several definitions, those that are this topology's parameters; the others are the
  // program's.
  ElaborationOptions options;
  for (const std::string &define : defines)
    if (result.hasParameter(define.substr(0, define.find('='))))
      options.defines.push_back(define);
  // What identifies it: all texts but the prelude, and the definitions.
  for (size_t i = 1; i < program.modules.size(); ++i)
    result.identity += std::string(sources.text(program.modules[i]->file)) + '\0';
  std::vector<std::string> ordered = options.defines;
  std::sort(ordered.begin(), ordered.end()); // what is the same in another order is the same
  for (const std::string &define : ordered)
    result.identity += define + '\0';
  NullChunkSink sink;
  if (!Elaborator(program, *decl, options, sources, sink, diagnostics).runTopology(result.topology))
    return std::nullopt;
  return result;
}

} // namespace occl::frontend
