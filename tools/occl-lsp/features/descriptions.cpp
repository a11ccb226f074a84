#include "tools/occl-lsp/features/descriptions.h"

#include <algorithm>

namespace occl::lsp {

using namespace frontend;

namespace {

const char *wordFor(NameKind kind) {
  // Without a default case: the compiler names the kind that is missing.
  switch (kind) {
  case NameKind::Parameter:
    return "parameter";
  case NameKind::Let:
    return "let";
  case NameKind::Var:
    return "var";
  case NameKind::Loop:
    return "loop variable";
  case NameKind::Rank:
    return "rank";
  case NameKind::Scratch:
    return "scratch";
  case NameKind::Function:
    return "function";
  case NameKind::Collective:
    return "collective";
  case NameKind::Algorithm:
    return "algorithm";
  case NameKind::Topology:
    return "topology";
  }
  return "";
}

/// What stands between the parameters and the body, on one line.
std::string tailOf(const Analysis &analysis, const Decl &decl, const Definition &definition) {
  // Of a function: its result; of an algorithm: what it implements, with arguments as they are
  // written.
  if (definition.kind == NameKind::Function) {
    Type result = static_cast<const FunctionDecl &>(decl).result;
    return result == Type::Void ? "" : std::string(" -> ") + nameOf(result);
  }
  if (definition.kind != NameKind::Algorithm)
    return "";
  const auto &algorithm = static_cast<const AlgorithmDecl &>(decl);
  std::string text;
  for (const Argument &argument : algorithm.arguments)
    text += (text.empty() ? "" : ", ") +
            (argument.name.empty() ? "" : std::string(argument.name) + " = ") +
            std::string(analysis.sources.text(argument.expr->range));
  return " implements " + std::string(algorithm.collectiveName) + "(" + text + ")";
}

} // namespace

std::vector<std::string> parametersOf(const Analysis &analysis, const Decl &decl) {
  std::vector<std::string> parameters;
  // As in the source: a default value is shown as it was written, not as it evaluates.
  for (const Param &param : decl.params) {
    std::string text = std::string(param.name) + ": " + nameOf(param.type);
    if (param.defaultValue)
      text += " = " + std::string(analysis.sources.text(param.defaultValue->range));
    parameters.push_back(std::move(text));
  }
  return parameters;
}

std::string signatureOf(const Analysis &analysis, const Definition &definition) {
  std::string head = std::string(wordFor(definition.kind)) + " " + std::string(definition.name);
  if (definition.kind == NameKind::Scratch)
    return head;
  // Variables have a type behind the name, if the program is far enough that it is known;
  // declarations have parameters.
  if (definition.kind < NameKind::Function)
    return head +
           (definition.type == Type::Error ? "" : std::string(": ") + nameOf(definition.type));
  std::string text;
  for (const std::string &parameter : parametersOf(analysis, *definition.owner))
    text += (text.empty() ? "" : ", ") + parameter;
  return head + "(" + text + ")" + tailOf(analysis, *definition.owner, definition);
}

std::string commentAbove(const Analysis &analysis, SourceRange declaration) {
  std::string_view text = analysis.sources.text(declaration.file).substr(0, declaration.begin);
  std::vector<std::string_view> lines;
  // From the line of the declaration upwards, as long as there are comments.
  size_t end = text.rfind('\n');
  while (end != text.npos && end > 0) {
    size_t begin = text.rfind('\n', end - 1);
    std::string_view line = text.substr(begin + 1, end - begin - 1);
    if (begin == text.npos)
      line = text.substr(0, end);
    size_t first = line.find_first_not_of(" \t");
    if (first == line.npos || !line.substr(first).starts_with("//"))
      break;
    line.remove_prefix(std::min(line.size(), first + 2));
    lines.push_back(line.starts_with(' ') ? line.substr(1) : line);
    end = begin;
  }
  // The lines were found from below.
  std::string comment;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    comment += std::string(*line) + "\n";
  return comment;
}

const Word *wordOf(WordKind kind, std::string_view name) {
  std::span<const Word> words = vocabulary();
  auto found = std::find_if(words.begin(), words.end(), [&](const Word &word) {
    return word.kind == kind && word.name == name;
  });
  return found == words.end() ? nullptr : &*found;
}

const Word *wordOf(std::initializer_list<WordKind> kinds, std::string_view name) {
  for (WordKind kind : kinds)
    if (const Word *word = wordOf(kind, name))
      return word;
  return nullptr;
}

} // namespace occl::lsp
