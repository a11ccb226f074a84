#include "tools/occl-lsp/features/editing.h"

#include "compiler/format/Formatter.h"
#include "tools/occl-lsp/protocol/messages.h"
#include "tools/occl-lsp/workspace/places.h"

#include <algorithm>
#include <map>

namespace occl::lsp {
namespace {

using namespace frontend;

bool isRenamable(const Definition &definition, const Analysis &analysis) {
  if (definition.range.file != analysis.file)
    return false;
  if (definition.kind != NameKind::Parameter)
    return definition.kind < NameKind::Function;
  // Others name the parameters of algorithms (-D) and collectives.
  const auto &functions = analysis.program.main().functions;
  return std::any_of(functions.begin(), functions.end(),
                     [&](const FunctionDecl &decl) { return &decl == definition.owner; });
}

bool isName(const std::string &text) {
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  std::vector<Token> tokens = lex(sources, sources.addText("", text), diagnostics);
  return tokens.size() == 2 && tokens[0].kind == TokenKind::Identifier &&
         tokens[0].range.end == text.size() && !diagnostics.hasErrors();
}

/// What each name of the file means, as the number of its definition there, in textual order.
std::vector<size_t> meanings(const Analysis &analysis) {
  std::map<const Definition *, size_t> numbers;
  std::vector<size_t> meaning;
  for (const Token &token : analysis.tokens)
    if (const Definition *definition = analysis.names.at(analysis.file, token.range.begin))
      meaning.push_back(numbers.try_emplace(definition, numbers.size()).first->second);
  return meaning;
}

} // namespace

llvm::Expected<protocol::WorkspaceEdit> renameAt(Workspace &workspace, Document &document,
                                                 protocol::Position position,
                                                 const std::string &newName) {
  // Each check has its own message, as a refused renaming is otherwise a riddle.
  const Analysis &analysis = workspace.analyse(document);
  const Definition *definition = analysis.names.at(analysis.file, document.text.offsetOf(position));
  if (!definition)
    return failure("there is no name here");
  if (analysis.hasErrors())
    return failure("names can be changed once the program has no errors");
  if (!isRenamable(*definition, analysis))
    return failure("'" + std::string(definition->name) +
                   "' may be named by other files or on command lines; only variables and "
                   "parameters of functions are renamed");
  if (!isName(newName))
    return failure("'" + newName + "' is no name of the language");
  // Uses and the declaration; replaced from the last to the first, so that offsets before stay
  // valid.
  std::vector<SourceRange> ranges = analysis.names.usesOf(*definition);
  ranges.push_back(definition->range);
  if (ranges.size() > kMostEntries)
    return failure("'" + std::string(definition->name) + "' stands in more than " +
                   std::to_string(kMostEntries) + " places");
  std::sort(ranges.begin(), ranges.end(),
            [](SourceRange a, SourceRange b) { return a.begin > b.begin; });
  // Try it: nothing else may change its meaning.
  std::string text(analysis.sources.text(analysis.file));
  for (SourceRange range : ranges)
    text.replace(range.begin, range.end - range.begin, newName);
  // A second analysis of the changed text: if every name means the declaration that it meant
  // before, and there is no error, the renaming is safe. That covers shadowing without a rule for
  // it.
  Analysis after(document.uri.file().str(), text, workspace.overlay(), workspace.settings());
  if (after.hasErrors() || meanings(after) != meanings(analysis))
    return failure("'" + newName + "' means something else already where '" +
                   std::string(definition->name) + "' is visible");
  protocol::WorkspaceEdit edit;
  for (SourceRange range : ranges)
    edit.changes[document.uri.uri().str()].push_back(
        {document.text.rangeOf(range.begin, range.end), newName});
  return edit;
}

std::vector<protocol::TextEdit> formatted(const Document &document) {
  // By itself and not by the document's analysis: the layout needs tokens alone, and may be asked
  // for with errors elsewhere.
  SourceManager sources;
  DiagnosticEngine diagnostics(sources);
  FileId file = sources.addText("", document.text.bytes());
  std::optional<std::string> text = format::format(sources, file, diagnostics);
  if (!text || *text == sources.text(file))
    return {};
  protocol::Range all = document.text.all();
  all.start = document.text.positionOf(0); // a byte order mark stays
  return {{all, llvm::json::fixUTF8(*text)}};
}

} // namespace occl::lsp
