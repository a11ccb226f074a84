#include "tools/occl-lsp/features/navigation.h"

#include "tools/occl-lsp/features/descriptions.h"
#include "tools/occl-lsp/workspace/places.h"

#include <algorithm>
#include <map>

namespace occl::lsp {
namespace {

using namespace frontend;
using protocol::DocumentSymbol;
using protocol::Location;
using protocol::SymbolKind;

class SymbolCollector {
public:
  SymbolCollector(Workspace &workspace, Document &document)
      : analysis(workspace.analyse(document)), places(workspace, document, analysis) {}

  std::vector<DocumentSymbol> all() {
    // Kinds of declarations are lists of their own in a module; the map puts them in the order of
    // the text.
    const Module &module = analysis.program.main();
    for (const FunctionDecl &decl : module.functions)
      add(decl, NameKind::Function, SymbolKind::Function, decl.body);
    for (const CollectiveDecl &decl : module.collectives)
      add(decl, NameKind::Collective, SymbolKind::Interface, decl.bindings);
    for (const AlgorithmDecl &decl : module.algorithms)
      add(decl, NameKind::Algorithm, SymbolKind::Class, decl.body);
    for (const TopologyDecl &decl : module.topologies)
      add(decl, NameKind::Topology, SymbolKind::Struct, decl.body);
    std::vector<DocumentSymbol> inOrder;
    for (auto &[begin, symbol] : symbols)
      inOrder.push_back(std::move(symbol));
    return inOrder;
  }

private:
  void add(const Decl &decl, NameKind kind, SymbolKind symbolKind,
           const std::vector<Stmt *> &statements) {
    // Without a name it is not finished; and clients need not get more than they can show.
    if (decl.name.empty() || symbols.size() >= kMostEntries)
      return;
    DocumentSymbol symbol(llvm::StringRef(decl.name), symbolKind, places.own(decl.range),
                          places.own(decl.nameRange));
    // The detail is what hover would say.
    symbol.detail = llvm::json::fixUTF8(
        signatureOf(analysis, {kind, Type::Error, decl.name, decl.nameRange, {}, &decl}));
    // Parameters and the body's own variables are its children. Assignments name a variable again.
    for (const Param &param : decl.params)
      addVariable(symbol, param.name, param.nameRange, param.nameRange, nameOf(param.type),
                  SymbolKind::Property);
    for (const Stmt *statement : statements)
      if (!statement->name.empty() && statement->kind != StmtKind::Assign)
        addVariable(symbol, statement->name, statement->range, statement->nameRange,
                    statement->expr ? nameOf(statement->expr->type) : "",
                    statement->kind == StmtKind::Scratch ? SymbolKind::Array
                                                         : SymbolKind::Variable);
    symbols.emplace(decl.range.begin, std::move(symbol));
  }

  void addVariable(DocumentSymbol &parent, std::string_view name, SourceRange range,
                   SourceRange nameRange, const char *detail, SymbolKind kind) {
    if (++count > kMostEntries)
      return;
    // A statement that is not finished may end before its name does.
    DocumentSymbol &symbol = parent.children.emplace_back(
        llvm::StringRef(name), kind, places.own(join(range, nameRange)), places.own(nameRange));
    symbol.detail = detail;
  }

  const Analysis &analysis;
  Places places;
  std::map<uint32_t, DocumentSymbol> symbols; // by where they begin
  size_t count = 0;                           // of variables
};

} // namespace

std::vector<Location> definitionAt(Workspace &workspace, Document &document,
                                   protocol::Position position) {
  const Analysis &analysis = workspace.analyse(document);
  Places places(workspace, document, analysis);
  // A name leads to its declaration, an import's path to the file.
  uint32_t offset = document.text.offsetOf(position);
  std::vector<Location> found;
  auto add = [&](SourceRange range) {
    if (std::optional<Location> location = places.locationOf(range))
      found.push_back(*location);
  };
  if (const Definition *definition = analysis.names.at(analysis.file, offset))
    add(definition->range);
  for (const ImportDecl &import : analysis.program.main().imports)
    if (import.range.begin <= offset && offset <= import.range.end &&
        import.file != SourceRange::kNoFile)
      add({import.file, 0, 0});
  return found;
}

std::vector<Location> referencesAt(Workspace &workspace, Document &document,
                                   protocol::Position position, bool includeDeclaration) {
  const Analysis &analysis = workspace.analyse(document);
  Places places(workspace, document, analysis);
  const Definition *definition = analysis.names.at(analysis.file, document.text.offsetOf(position));
  if (!definition)
    return {};
  std::vector<SourceRange> ranges = analysis.names.usesOf(*definition);
  if (includeDeclaration)
    ranges.insert(ranges.begin(), definition->range);
  std::vector<Location> found;
  // Cut before places are looked up, as that may read files.
  ranges.resize(std::min(ranges.size(), kMostEntries));
  for (SourceRange range : ranges)
    if (std::optional<Location> location = places.locationOf(range))
      found.push_back(*location);
  return found;
}

std::vector<DocumentSymbol> symbolsOf(Workspace &workspace, Document &document) {
  return SymbolCollector(workspace, document).all();
}

} // namespace occl::lsp
