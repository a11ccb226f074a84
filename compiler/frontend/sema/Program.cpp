#include "compiler/frontend/sema/Program.h"

#include "compiler/frontend/syntax/Parser.h"

#include <filesystem>
#include <map>

namespace occl::frontend {
namespace {

namespace fs = std::filesystem;

/// Bounds the work for files that import each other.
constexpr size_t kMaxModules = 256;

class Loader {
public:
  Loader(SourceManager &sources, const std::vector<std::string> &importPaths,
         DiagnosticEngine &diagnostics)
      : sources(sources), importPaths(importPaths), diagnostics(diagnostics) {}

  Program run(FileId file) {
    // The prelude is a module like any other, and comes first: its names are known to all.
    FileId prelude = sources.addText("<prelude>", std::string(preludeText()));
    program.modules.push_back(parse(sources, prelude, diagnostics));
    program.modules.push_back(parse(sources, file, diagnostics));
    seen.emplace(fileIdentity(std::string(sources.name(file))), file);
    // Imports of imports are appended to the list that is gone through.
    for (size_t i = 1; i < program.modules.size(); ++i)
      for (ImportDecl &import : program.modules[i]->imports)
        load(import);
    for (const std::unique_ptr<Module> &module : program.modules)
      declare(*module);
    return std::move(program);
  }

private:
  std::string find(const ImportDecl &import) {
    // Beside the importing file, then in the import paths in order: as C's #include "...".
    std::vector<fs::path> folders{fs::path(sources.name(import.range.file)).parent_path()};
    folders.insert(folders.end(), importPaths.begin(), importPaths.end());
    for (const fs::path &folder : folders) {
      fs::path path = folder / fs::path(import.path);
      if (sources.hasFile(path.string()))
        return path.lexically_normal().string();
    }
    return "";
  }

  void load(ImportDecl &import) {
    // A file is loaded once, whatever paths lead to it: its identity is that of the file.
    std::string path = find(import);
    if (path.empty()) {
      diagnostics.error(DiagnosticCode::BadImport, import.range,
                        "there is no file '" + std::string(import.path) +
                            "' beside this one or in the import paths");
      return;
    }
    std::string identity = fileIdentity(path);
    if (auto known = seen.find(identity); known != seen.end()) {
      import.file = known->second;
      return;
    }
    std::string reason;
    std::optional<FileId> file;
    // A limit, so that a chain of generated imports ends.
    if (program.modules.size() < kMaxModules)
      file = sources.addFile(path, reason);
    else
      reason = "a program has at most " + std::to_string(kMaxModules) + " files";
    // Also remembered if it could not be read: one error is enough.
    import.file = seen[identity] = file.value_or(SourceRange::kNoFile);
    if (file)
      program.modules.push_back(parse(sources, *file, diagnostics));
    else
      diagnostics.error(DiagnosticCode::BadImport, import.range,
                        "cannot read '" + path + "': " + reason);
  }

  template <typename DeclType>
  void declareIn(std::unordered_map<std::string_view, const DeclType *> &known,
                 const DeclType &decl, const char *what) {
    if (decl.name.empty())
      return;
    auto [earlier, isNew] = known.try_emplace(decl.name, &decl);
    if (!isNew)
      diagnostics
          .error(DiagnosticCode::Redefinition, decl.nameRange,
                 std::string("the ") + what + " '" + std::string(decl.name) +
                     "' is defined already")
          .note(earlier->second->nameRange, "first here");
  }

  void declare(const Module &module) {
    for (const FunctionDecl &decl : module.functions)
      declareIn(program.functions, decl, "function");
    for (const CollectiveDecl &decl : module.collectives)
      declareIn(program.collectives, decl, "collective");
    std::unordered_map<std::string_view, const AlgorithmDecl *> algorithms;
    for (const AlgorithmDecl &decl : module.algorithms)
      declareIn(algorithms, decl, "algorithm");
  }

  SourceManager &sources;
  const std::vector<std::string> &importPaths;
  DiagnosticEngine &diagnostics;
  Program program;
  std::map<std::string, FileId> seen; // by identity; no file if it cannot be read
};

} // namespace

Program loadProgram(SourceManager &sources, FileId file,
                    const std::vector<std::string> &importPaths, DiagnosticEngine &diagnostics) {
  return Loader(sources, importPaths, diagnostics).run(file);
}

} // namespace occl::frontend
