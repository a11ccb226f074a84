#include "tools/occl-lsp/features/hover.h"

#include "tools/occl-lsp/features/descriptions.h"
#include "tools/occl-lsp/workspace/places.h"

#include <iterator>

namespace occl::lsp {
namespace {

using namespace frontend;

std::string code(std::string_view text) { return "```coll\n" + std::string(text) + "\n```\n"; }

class Describer {
public:
  Describer(Workspace &workspace, Document &document)
      : document(document), analysis(workspace.analyse(document)),
        places(workspace, document, analysis) {}

  std::optional<protocol::Hover> at(uint32_t offset) {
    // From the most particular to the most general: a name, an import's path, a word of the
    // language, an expression.
    const Token *token = analysis.tokenAt(offset);
    if (!token)
      return std::nullopt;
    if (const Definition *definition = analysis.names.at(analysis.file, offset))
      return hover(token->range, ofDefinition(*definition));
    if (std::optional<std::string> text = ofImport(token->range))
      return hover(token->range, *text);
    const Expr *expr = expressionAt(token->range);
    if (const Word *word = wordAt(*token))
      return hover(token->range, ofWord(*word) + ofPlaces(expr));
    if (!expr)
      return std::nullopt;
    // Where nothing else is known: the whole expression and its type, with values if the algorithm
    // was executed.
    SourceRange whole = withParentheses(expr->range);
    return hover(whole,
                 code(std::string(analysis.sources.text(whole)) + ": " + nameOf(expr->type)) +
                     ofPlaces(expr));
  }

private:
  std::optional<protocol::Hover> hover(SourceRange range, const std::string &text) {
    protocol::Hover result(places.own(range));
    result.contents.value = llvm::json::fixUTF8(text);
    return result;
  }

  std::string ofDefinition(const Definition &definition) {
    // Signature, comment, values, file: what there is of these.
    std::string text = code(signatureOf(analysis, definition));
    bool isDecl = definition.kind >= NameKind::Function;
    std::string comment =
        commentAbove(analysis, isDecl ? definition.owner->range : definition.range);
    if (!comment.empty())
      text += "\n" + comment;
    text += ofValues(definition);
    // Only declarations come from other files; the prelude's name begins with '<'.
    std::string file(analysis.sources.name(definition.range.file));
    if (isDecl && definition.range.file != analysis.file)
      text += file.starts_with('<') ? "\nEvery program has it.\n" : "\nIn `" + file + "`.\n";
    return text;
  }

  /// What a variable was, also where it was assigned to.
  std::string ofValues(const Definition &definition) {
    // At the declaration first, then wherever it got another value.
    std::string values = analysis.observations.at(definition.range);
    for (SourceRange use : analysis.names.usesOf(definition)) {
      std::string assigned = analysis.observations.at(use);
      if (!assigned.empty() && assigned != values)
        values += (values.empty() ? "" : ", then ") + assigned;
    }
    return values.empty() ? "" : "\nHere: `" + values + "`\n";
  }

  std::string ofWord(const Word &word) {
    return code(word.signature) + "\n" + std::string(word.summary) + "\n";
  }

  std::optional<std::string> ofImport(SourceRange token) {
    for (const ImportDecl &import : analysis.program.main().imports)
      if (import.range.begin <= token.begin && token.end <= import.range.end &&
          import.file != SourceRange::kNoFile)
        return "`" + std::string(analysis.sources.name(import.file)) + "`\n";
    return std::nullopt;
  }

  /// Which rank's which chunks of which buffer.
  std::string ofPlaces(const Expr *expr) {
    // Of a place in the source's words: the values below may be many.
    if (!expr)
      return "";
    std::string text;
    // buffer[rank][chunk], or with a second chunk, which is not included.
    if (expr->kind == ExprKind::Location) {
      auto textOf = [&](const Expr &part) {
        return std::string(analysis.sources.text(part.range));
      };
      std::string chunks =
          expr->d ? "chunks `" + textOf(*expr->c) + "` to, without it, `" + textOf(*expr->d) + "`"
                  : "chunk `" + textOf(*expr->c) + "`";
      text += "\nA place: " + chunks + " of `" + textOf(*expr->a) + "` on rank `" +
              textOf(*expr->b) + "`.\n";
    }
    std::string values = analysis.observations.at(expr->range);
    return values.empty() ? text : text + "\nHere: `" + values + "`\n";
  }

  /// The word of the language that the token is in its place; null for names.
  const Word *wordAt(const Token &token) const {
    // Keywords are tokens of their own kind; other words are identifiers that mean something in
    // their place.
    std::string_view name = analysis.textOf(token);
    if (token.kind >= TokenKind::KwAggregate)
      return wordOf({WordKind::Operator, WordKind::Clause, WordKind::Declaration, WordKind::Item,
                     WordKind::Statement},
                    name);
    if (token.kind != TokenKind::Identifier)
      return nullptr;
    // The frontend has resolved the name: what kind of expression it is the name of tells which
    // word of that spelling is meant.
    for (const Expr &expr : analysis.program.main().expressions) {
      if (expr.nameRange != token.range)
        continue;
      if (expr.kind == ExprKind::Builtin)
        return wordOf(WordKind::Function, name);
      if (expr.kind == ExprKind::TopologyQuery)
        return wordOf(WordKind::Question, name);
      if (expr.kind == ExprKind::Member)
        return wordOf(WordKind::Property, name);
      if (expr.kind == ExprKind::Copy || expr.kind == ExprKind::Has)
        return wordOf(WordKind::Operation, name);
    }
    // Words that are no expressions; a name of the program would have been found before.
    const WordKind other[] = {WordKind::TypeName, WordKind::ModeName,  WordKind::ProtocolName,
                              WordKind::Hint,     WordKind::Operation, WordKind::TopologyItem};
    for (WordKind kind : other)
      if (const Word *word = wordOf(kind, name))
        return word;
    return nullptr;
  }

  /// An operand's parentheses are not its own: what begins with one begins behind '('.
  SourceRange withParentheses(SourceRange range) const {
    // Goes over the tokens of the expression and counts parentheses: each that is closed and not
    // opened belongs to an operand that stands first.
    int open = 0;
    auto first = analysis.tokens.begin();
    for (auto token = first; token != analysis.tokens.end() && token->range.end <= range.end;
         ++token) {
      if (token->range.begin == range.begin)
        first = token;
      if (token->range.begin >= range.begin)
        open += (token->kind == TokenKind::LeftParen) - (token->kind == TokenKind::RightParen);
    }
    // So many to the left, as long as there are parentheses.
    for (; open < 0 && first != analysis.tokens.begin() &&
           std::prev(first)->kind == TokenKind::LeftParen;
         ++open)
      range.begin = (--first)->range.begin;
    return range;
  }

  /// The innermost expression with a type around the token; of a place, the whole place.
  const Expr *expressionAt(SourceRange token) const {
    // The innermost is the shortest that contains the token; parts of places have types without
    // meaning for people.
    const Expr *found = nullptr;
    for (const Expr &expr : analysis.program.main().expressions) {
      bool isAround = expr.range.begin <= token.begin && token.end <= expr.range.end;
      bool isPart = expr.type == Type::Row || expr.type == Type::Buffer;
      if (!isAround || isPart || expr.type == Type::Error || expr.type == Type::Void)
        continue;
      if (!found || expr.range.end - expr.range.begin <= found->range.end - found->range.begin)
        found = &expr;
    }
    return found;
  }

  Document &document;
  const Analysis &analysis;
  Places places;
};

} // namespace

std::optional<protocol::Hover> hoverAt(Workspace &workspace, Document &document,
                                       protocol::Position position) {
  return Describer(workspace, document).at(document.text.offsetOf(position));
}

} // namespace occl::lsp
