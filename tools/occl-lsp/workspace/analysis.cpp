#include "tools/occl-lsp/workspace/analysis.h"

#include "compiler/frontend/elaborate/TopologyReader.h"
#include "compiler/frontend/memory/NullChunkSink.h"

#include <algorithm>
#include <filesystem>

namespace occl::lsp {
namespace {

using namespace frontend;

/// Of all runs while somebody types: larger programs are for the compiler.
constexpr uint64_t kMaxOps = 1u << 16, kMaxSteps = 1u << 18, kMaxChunks = 1u << 18;
/// Of algorithms and their versions.
constexpr size_t kMaxRuns = 16;

} // namespace

std::vector<std::string> definesFor(const AlgorithmDecl &algorithm, const Settings &settings) {
  std::vector<std::string> defines;
  for (const std::string &define : settings.defines)
    for (const Param &param : algorithm.params)
      if (define.starts_with(std::string(param.name) + "="))
        defines.push_back(define);
  return defines;
}

Analysis::Analysis(const std::string &path, const std::string &text, const Overlay &overlay,
                   const Settings &settings)
    : sources(&overlay) {
  // Diagnostics of the text, before those of its executions: each stage has its own engine, so that
  // the same mistake in two versions is told apart.
  DiagnosticEngine &engine = diagnostics.emplace_back(sources);
  // As the compiler: larger files are refused before they are read.
  bool isTooLarge = text.size() > SourceManager::kMaxFileBytes;
  file = sources.addText(path, isTooLarge ? "" : text);
  if (isTooLarge)
    engine.error(DiagnosticCode::UnreadableFile, {file, 0, 0},
                 "cannot check this: it is larger than 16 MiB");
  DiagnosticEngine ignored(sources); // the parser says the same
  tokens = lex(sources, file, ignored);
  // With errors everything up to here still is of use: names, tokens and types for what is around
  // them.
  program = loadProgram(sources, file, settings.importPaths, engine);
  resolve(program, sources, engine, &names);
  if (!engine.hasErrors())
    run(settings);
}

void Analysis::run(const Settings &settings) {
  // A topology file is executed by itself, so mistakes in it show without a program.
  if (!program.main().topologies.empty())
    readTopology(sources, std::string(sources.name(file)), {}, settings.importPaths,
                 diagnostics.emplace_back(sources));
  if (program.main().algorithms.empty())
    return;
  if (!settings.topology.empty())
    topology = readTopology(sources, settings.topology, settings.defines, settings.importPaths,
                            diagnostics.emplace_back(sources));
  runAlgorithms(settings);
}

void Analysis::runAlgorithms(const Settings &settings) {
  // All runs share one budget: with many versions each gets less, so that the answer comes in time.
  size_t numRuns = 0;
  for (const AlgorithmDecl &algorithm : program.main().algorithms)
    numRuns += std::max<size_t>(algorithm.versions.size(), 1);
  ElaborationOptions options;
  options.maxOps = kMaxOps / std::clamp<size_t>(numRuns, 1, kMaxRuns);
  options.maxSteps = kMaxSteps / std::clamp<size_t>(numRuns, 1, kMaxRuns);
  options.maxChunks = kMaxChunks / std::clamp<size_t>(numRuns, 1, kMaxRuns);
  options.topology = topology ? &*topology : nullptr;
  // Records what names and places were, for hover.
  options.observer = &observations;
  for (const AlgorithmDecl &algorithm : program.main().algorithms)
    if (algorithm.collective && !runAlgorithm(algorithm, settings, options))
      return;
}

bool Analysis::runAlgorithm(const AlgorithmDecl &algorithm, const Settings &settings,
                            ElaborationOptions options) {
  NullChunkSink sink;
  options.defines = definesFor(algorithm, settings);
  const size_t numVersions = std::max<size_t>(algorithm.versions.size(), 1);
  // The number of runs is limited too, over all algorithms of the file; the first one that is left
  // out says so.
  for (; options.version < numVersions; ++options.version) {
    DiagnosticEngine &engine = diagnostics.emplace_back(sources);
    if (++runs > kMaxRuns) {
      engine.error(DiagnosticCode::BudgetSpent, algorithm.nameRange,
                   "of the algorithms of a file and their versions, the first " +
                       std::to_string(kMaxRuns) + " are executed");
      return false;
    }
    elaborate(program, algorithm, options, sources, sink, engine);
  }
  return true;
}

bool Analysis::mayImport(const std::string &identity) const {
  // By the file's name alone: where it lies is known only once it has been found, and this one may
  // be about to appear.
  const std::filesystem::path name = std::filesystem::path(identity).filename();
  auto isMeant = [&](const ImportDecl &import) {
    return import.file == SourceRange::kNoFile ||
           std::filesystem::path(import.path).filename() == name;
  };
  return std::any_of(program.modules.begin(), program.modules.end(), [&](const auto &module) {
    return std::any_of(module->imports.begin(), module->imports.end(), isMeant);
  });
}

bool Analysis::dependsOn(const std::string &identity) const {
  if (mayImport(identity))
    return true;
  for (FileId id = 0; id < sources.numFiles(); ++id)
    if (fileIdentity(std::string(sources.name(id))) == identity)
      return true;
  return false;
}

const Token *Analysis::tokenAt(uint32_t offset) const {
  // The last token that begins at or before the offset.
  auto next = std::partition_point(tokens.begin(), tokens.end(),
                                   [&](const Token &token) { return token.range.begin <= offset; });
  if (next == tokens.begin())
    return nullptr;
  const Token &token = *std::prev(next);
  bool isAfter = token.range.begin == offset && next - tokens.begin() > 1;
  // Between two tokens, a word is meant rather than punctuation behind it.
  if (isAfter && token.kind < TokenKind::KwAggregate && token.kind > TokenKind::Reserved) {
    const Token &before = *(std::prev(next) - 1);
    if (before.range.end == offset)
      return &before;
  }
  return offset <= token.range.end && token.kind != TokenKind::End ? &token : nullptr;
}

const Decl *Analysis::declAt(uint32_t offset) const {
  // Declarations do not overlap; at a border the later one counts.
  const Decl *found = nullptr;
  auto look = [&](const auto &declarations) {
    for (const Decl &decl : declarations)
      if (decl.range.begin <= offset && offset <= decl.range.end)
        found = &decl;
  };
  look(program.main().functions);
  look(program.main().collectives);
  look(program.main().algorithms);
  look(program.main().topologies);
  return found;
}

} // namespace occl::lsp
