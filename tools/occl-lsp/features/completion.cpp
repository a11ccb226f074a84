#include "tools/occl-lsp/features/completion.h"

#include "tools/occl-lsp/features/completion_files.h"
#include "tools/occl-lsp/features/descriptions.h"
#include "tools/occl-lsp/features/syntax_context.h"

#include <algorithm>
#include <set>

namespace occl::lsp {
namespace {

using namespace frontend;
using protocol::CompletionItem;
using protocol::CompletionItemKind;

class Completer {
public:
  Completer(Workspace &workspace, Document &document, uint32_t offset)
      : workspace(workspace), document(document), analysis(workspace.analyse(document)),
        context(analysis, offset) {}

  protocol::CompletionList run() {
    // In comments and texts nothing is offered: there the word is the user's.
    if (context.isInComment())
      return {};
    if (std::optional<std::string> written = context.importPath())
      addFiles(*written);
    else if (!context.isInString())
      addAt(context.before(0));
    return std::move(list);
  }

private:
  /// By what stands before the word that is being written.
  void addAt(std::string_view before) {
    // The more particular places first. Each of them allows few words, and offering others would
    // hide those.
    if (before == ".")
      return addMembers();
    if (before == "implements")
      return addCollectives();
    if (before == "protocol" && !context.isInTopology())
      return addWords({WordKind::ProtocolName});
    if (context.isInModes())
      return addWords({WordKind::ModeName});
    if (before == "when") {
      add("bytes", CompletionItemKind::Keyword, "when bytes in first .. last");
      return;
    }
    // Where only a type can stand.
    if (before == "->" || context.isParameterType())
      return addWords({WordKind::TypeName});
    // Between the parameters and the brace of a declaration, and outside of all declarations, no
    // names can stand.
    if (context.isHead())
      return addWords({WordKind::Clause});
    if (context.isOutside())
      return addWords({WordKind::Declaration});
    addInBody();
  }

  void addInBody() {
    // In a body: hints and statements where they can begin, expressions anywhere.
    if (context.isHintList())
      addWords({WordKind::Hint});
    // Which statements there are depends on the declaration: items of collectives, links of
    // topologies.
    if (context.beginsStatement())
      addWords(context.isInCollective()
                   ? std::initializer_list<WordKind>{WordKind::Item, WordKind::Statement}
               : context.isInTopology()
                   ? std::initializer_list<WordKind>{WordKind::TopologyItem, WordKind::Statement}
                   : std::initializer_list<WordKind>{WordKind::Statement});
    // From here on what an expression can begin with.
    addWords({WordKind::Operator, WordKind::Function});
    for (const char *name : {"input", "output"})
      if (!context.isInTopology())
        addWord(*wordOf(WordKind::Item, name));
    addWord(*wordOf(WordKind::Declaration, "topology"));
    // Variables that are visible at this place, by the frontend's scopes.
    for (const Definition *definition : analysis.names.visibleAt(analysis.file, context.offset()))
      addDefinition(*definition, CompletionItemKind::Variable);
    // Functions are visible everywhere, also those of imports.
    for (const Definition &definition : analysis.names.definitions())
      if (definition.kind == NameKind::Function)
        addDefinition(definition, CompletionItemKind::Function);
  }

  void addCollectives() {
    for (const Definition &definition : analysis.names.definitions())
      if (definition.kind == NameKind::Collective)
        addDefinition(definition, CompletionItemKind::Interface);
  }

  void addMembers() {
    // Of a topology: the questions that can be asked of it.
    if (context.before(1) == "topology")
      return addWords({WordKind::Question});
    // A reduce(...) can only be stored.
    if (context.isAfterReduce())
      return addWord(*wordOf(WordKind::Operation, "into"));
    // By the type of the operand if it is known; the text may be unfinished, and then everything is
    // offered.
    Type type = context.typeBeforeDot(workspace, document);
    bool isChunk = type == Type::Chunk || type == Type::Location;
    for (const Word &word : vocabulary()) {
      bool isOperation = word.kind == WordKind::Operation && word.name != "into";
      bool fits = word.kind == WordKind::Property &&
                  (type == Type::Error || (word.isOfChunk && isChunk) ||
                   (word.isOfList && isList(type)) || (word.isOfOrigin && type == Type::Origin));
      if (fits || (isOperation && (isChunk || type == Type::Error)))
        addWord(word);
    }
  }

  void addFiles(const std::string &written) {
    for (const std::string &name :
         filesToImport(document.uri.file().str(), written, workspace.settings().importPaths))
      add(name, name.ends_with('/') ? CompletionItemKind::Folder : CompletionItemKind::File, "");
  }

  void addWords(std::initializer_list<WordKind> kinds) {
    for (const Word &word : vocabulary())
      if (std::find(kinds.begin(), kinds.end(), word.kind) != kinds.end())
        addWord(word);
  }

  void addWord(const Word &word) {
    CompletionItemKind kind = word.kind == WordKind::Function || word.kind == WordKind::Question
                                  ? CompletionItemKind::Function
                              : word.kind == WordKind::Property  ? CompletionItemKind::Property
                              : word.kind == WordKind::Operation ? CompletionItemKind::Method
                                                                 : CompletionItemKind::Keyword;
    if (CompletionItem *item = add(word.name, kind, word.signature))
      item->documentation = {protocol::MarkupKind::Markdown, std::string(word.summary)};
  }

  void addDefinition(const Definition &definition, CompletionItemKind kind) {
    CompletionItem *item = add(definition.name, kind, signatureOf(analysis, definition));
    if (!item || definition.kind < NameKind::Function)
      return;
    std::string comment = llvm::json::fixUTF8(commentAbove(analysis, definition.owner->range));
    if (!comment.empty())
      item->documentation = {protocol::MarkupKind::Markdown, comment};
  }

  /// Null if it is there already.
  CompletionItem *add(std::string_view label, CompletionItemKind kind, std::string_view detail) {
    list.isIncomplete |= seen.size() >= kMostEntries;
    if (label.empty() || list.isIncomplete || !seen.insert(std::string(label)).second)
      return nullptr;
    CompletionItem &item = list.items.emplace_back(llvm::json::fixUTF8(label), kind);
    item.detail = llvm::json::fixUTF8(detail);
    return &item;
  }

  Workspace &workspace;
  Document &document;
  const Analysis &analysis;
  SyntaxContext context;
  protocol::CompletionList list;
  std::set<std::string> seen;
};

/// "name(a, b)" with the parameters' places in it.
protocol::SignatureInformation signatureWith(std::string head,
                                             const std::vector<std::string> &parameters,
                                             const std::string &tail) {
  protocol::SignatureInformation signature;
  // The label is the whole signature, and each parameter is a part of its text, which editors mark.
  signature.label = std::move(head) + "(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    signature.label += i == 0 ? "" : ", ";
    protocol::ParameterInformation &parameter = signature.parameters.emplace_back();
    parameter.labelString = llvm::json::fixUTF8(parameters[i]);
    signature.label += parameter.labelString;
  }
  signature.label = llvm::json::fixUTF8(signature.label + ")" + tail);
  return signature;
}

/// Of a word whose arguments are named in what it says of itself.
protocol::SignatureInformation signatureOfWord(const Word &word) {
  // The vocabulary's signatures have a second form behind a comma, which would be taken for
  // arguments.
  std::string_view text = word.signature.substr(0, word.signature.find(", reduce("));
  size_t open = text.find('('), close = text.rfind(')');
  std::vector<std::string> parameters;
  // Between the parentheses, at commas.
  while (open != text.npos && open < close) {
    size_t end = std::min(text.find(", ", open), close);
    parameters.emplace_back(text.substr(open + 1, end - open - 1));
    open = end == close ? close : end + 1;
  }
  protocol::SignatureInformation signature =
      signatureWith(std::string(text.substr(0, text.find('('))), parameters,
                    std::string(text.substr(std::min(close + 1, text.size()))));
  signature.documentation = std::string(word.summary);
  return signature;
}

std::optional<protocol::SignatureInformation> signatureOf(const Analysis &analysis,
                                                          const Call &call) {
  // The program's own names first: they may have names that the language has for something else.
  for (const Definition &definition : analysis.names.definitions()) {
    bool isMeant =
        definition.name == call.name &&
        definition.kind == (call.isCollective ? NameKind::Collective : NameKind::Function);
    if (!isMeant)
      continue;
    auto signature =
        signatureWith(std::string(definition.name), parametersOf(analysis, *definition.owner), "");
    signature.documentation = llvm::json::fixUTF8(commentAbove(analysis, definition.owner->range));
    return signature;
  }
  // Then the words of the language that take arguments: those behind a dot are others than those
  // without one.
  const Word *word = call.isMember ? wordOf({WordKind::Operation, WordKind::Question}, call.name)
                                   : wordOf({WordKind::Function, WordKind::Operator}, call.name);
  if (!word)
    return std::nullopt;
  return signatureOfWord(*word);
}

} // namespace

protocol::CompletionList completionAt(Workspace &workspace, Document &document,
                                      protocol::Position position) {
  return Completer(workspace, document, document.text.offsetOf(position)).run();
}

std::optional<protocol::SignatureHelp> signatureAt(Workspace &workspace, Document &document,
                                                   protocol::Position position) {
  const Analysis &analysis = workspace.analyse(document);
  // Up to here the text is looked at as it is, unfinished: it is the tokens that tell in which call
  // this is.
  SyntaxContext context(analysis, document.text.offsetOf(position));
  std::optional<Call> call = context.call();
  if (!call)
    return std::nullopt;
  std::optional<protocol::SignatureInformation> signature = signatureOf(analysis, *call);
  if (!signature)
    return std::nullopt;
  protocol::SignatureHelp help;
  // More arguments than there are parameters: the last one stays marked.
  int last = std::max(static_cast<int>(signature->parameters.size()) - 1, 0);
  help.activeParameter = std::min(call->argument, last);
  help.signatures.push_back(std::move(*signature));
  return help;
}

} // namespace occl::lsp
