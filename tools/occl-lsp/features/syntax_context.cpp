#include "tools/occl-lsp/features/syntax_context.h"

#include <algorithm>

namespace occl::lsp {

using namespace frontend;

namespace {

bool isWordLike(TokenKind kind) {
  return kind == TokenKind::Identifier || kind == TokenKind::Reserved ||
         kind >= TokenKind::KwAggregate;
}

bool opens(TokenKind kind) {
  return kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket ||
         kind == TokenKind::LeftBrace;
}

bool closes(TokenKind kind) {
  return kind == TokenKind::RightParen || kind == TokenKind::RightBracket ||
         kind == TokenKind::RightBrace;
}

} // namespace

SyntaxContext::SyntaxContext(const Analysis &analysis, uint32_t offset)
    : analysis(analysis), place(offset) {
  // The tokens that end before the place; a word that is being written is not among them, since it
  // is what completion is about.
  const std::vector<Token> &tokens = analysis.tokens;
  while (count < tokens.size() && tokens[count].range.end <= offset &&
         tokens[count].kind != TokenKind::End)
    ++count;
  bool isWord = count > 0 && at(count - 1).range.end == offset && isWordLike(at(count - 1).kind);
  if (isWord)
    --count;
  // The declaration around: a keyword begins one, and its closing brace ends it. `topology` also
  // stands in expressions, so it begins one only outside of others.
  for (size_t i = 0; i < count; ++i) {
    TokenKind kind = at(i).kind;
    bool begins = kind == TokenKind::KwAlgorithm || kind == TokenKind::KwFunction ||
                  kind == TokenKind::KwCollective ||
                  (kind == TokenKind::KwTopology && depth == 0 && declWord() == TokenKind::End) ||
                  (kind == TokenKind::KwTopology && isClosed);
    if (begins) {
      declaration = i;
      depth = 0;
      isClosed = false;
    }
    // Braces decide: what is open here is a body.
    depth += kind == TokenKind::LeftBrace;
    if (kind == TokenKind::RightBrace && depth > 0)
      isClosed = --depth == 0;
  }
}

std::string_view SyntaxContext::before(size_t back) const {
  return back < count ? analysis.textOf(at(count - 1 - back)) : std::string_view();
}

bool SyntaxContext::isInString() const {
  // Between the quotes: at the first one the text has not begun, behind the last one it has ended.
  for (const Token &token : analysis.tokens)
    if (token.kind == TokenKind::String && token.range.begin < place && place < token.range.end)
      return true;
  // One that is not closed ends at the byte.
  bool isLast = count > 0 && at(count - 1).kind == TokenKind::String;
  std::string_view text = isLast ? before(0) : std::string_view();
  return isLast && at(count - 1).range.end == place && (text.size() == 1 || !text.ends_with('"'));
}

bool SyntaxContext::isInComment() const {
  // Comments are no tokens, so the place is in one if it lies in a gap between tokens in which one
  // has begun and not ended.
  size_t begin = count > 0 ? at(count - 1).range.end : 0;
  std::string_view text = analysis.sources.text(analysis.file);
  std::string_view gap = text.substr(begin, std::max<size_t>(place, begin) - begin);
  while (!gap.empty()) {
    bool isLine = gap.starts_with("//"), isBlock = gap.starts_with("/*");
    if (!isLine && !isBlock) {
      gap.remove_prefix(1);
      continue;
    }
    size_t end = gap.find(isLine ? "\n" : "*/", isLine ? 0 : 2);
    if (end == gap.npos)
      return true;
    gap.remove_prefix(end + (isLine ? 1 : 2));
  }
  return false;
}

std::optional<std::string> SyntaxContext::importPath() const {
  // The path's text up to the place, also of an import that is not closed.
  for (size_t i = 1; i < analysis.tokens.size(); ++i) {
    const Token &token = at(i);
    bool isPath = token.kind == TokenKind::String && at(i - 1).kind == TokenKind::KwImport &&
                  token.range.begin < place && place <= token.range.end;
    if (!isPath)
      continue;
    std::string_view text = analysis.textOf(token);
    bool isBehind = place == token.range.end && text.size() > 1 && text.ends_with('"');
    if (!isBehind)
      return std::string(text.substr(1, place - token.range.begin - 1));
  }
  return std::nullopt;
}

size_t SyntaxContext::opening() const {
  int level = 0;
  // Backwards, over pairs that are closed: the first that is open and not closed.
  for (size_t i = count; i-- > 0;) {
    if (closes(at(i).kind))
      ++level;
    else if (opens(at(i).kind) && level-- == 0)
      return i;
  }
  return kNone;
}

bool SyntaxContext::isHead() const {
  return isInHead() && count > declaration + 1 && opening() == kNone &&
         (before(0) == ")" || isWordLike(at(count - 1).kind) ||
          at(count - 1).kind == TokenKind::Integer) &&
         declWord() == TokenKind::KwAlgorithm && count > declaration + 2;
}

bool SyntaxContext::isInModes() const {
  size_t back = 0;
  while (before(back) == "," || before(back) == "out_of_place" || before(back) == "in_place")
    ++back;
  bool isNext = back == 0 || before(0) == ",";
  return isNext && before(back) == "modes" && isInHead();
}

bool SyntaxContext::isParameterType() const {
  size_t back = 0;
  while (before(back) == "[")
    ++back;
  return before(back) == ":" && isInHead();
}

bool SyntaxContext::isHintList() const {
  std::optional<Call> open = call();
  if (!open)
    return false;
  bool isOfMove = open->isMember && (open->name == "copy" || open->name == "into");
  return (isOfMove && open->argument > 0) || open->name == "threadblock";
}

bool SyntaxContext::beginsStatement() const {
  return before(0) == "{" || before(0) == "}" || before(0) == ";";
}

bool SyntaxContext::isAfterReduce() const {
  if (before(0) != "." || before(1) != ")")
    return false;
  // The parenthesis before the dot, back to its opening one: the word before that is the call.
  int level = 0;
  for (size_t i = count - 1; i-- > 0;) {
    level += closes(at(i).kind) ? 1 : opens(at(i).kind) ? -1 : 0;
    if (level == 0)
      return i > 0 && at(i - 1).kind == TokenKind::KwReduce;
  }
  return false;
}

size_t SyntaxContext::operandBegin(size_t end) const {
  size_t i = end;
  // Backwards over `a.b(c)[d].e`: pairs of brackets, a name, a dot, and again.
  for (;;) {
    int level = 0;
    while (i > 0 && (closes(at(i - 1).kind) || level > 0)) {
      --i;
      level += closes(at(i).kind) ? 1 : opens(at(i).kind) ? -1 : 0;
    }
    // Keywords that stand like names.
    bool isName =
        i > 0 && (at(i - 1).kind == TokenKind::Identifier || at(i - 1).kind == TokenKind::KwInput ||
                  at(i - 1).kind == TokenKind::KwOutput || at(i - 1).kind == TokenKind::KwReduce);
    i -= isName;
    if (i == 0 || at(i - 1).kind != TokenKind::Dot)
      return i;
    --i;
  }
}

size_t SyntaxContext::statementBegin() const {
  size_t i = count;
  while (i > 0 && at(i - 1).kind != TokenKind::Semicolon &&
         at(i - 1).kind != TokenKind::LeftBrace && at(i - 1).kind != TokenKind::RightBrace)
    --i;
  return i;
}

Type SyntaxContext::typeBeforeDot(Workspace &workspace, const Document &document) const {
  // A statement that asks the operand for something is complete, which this one is not.
  const size_t operand = operandBegin(count - 1);
  if (operand == count - 1)
    return Type::Error;
  // The text with the unfinished statement replaced by one that is complete and has the operand in
  // it: the frontend then says its type. So rules of types are in one place.
  std::string_view original = analysis.sources.text(analysis.file);
  const uint32_t begin = at(statementBegin()).range.begin;
  SourceRange range = join(at(operand).range, at(count - 2).range);
  std::string head = std::string(original.substr(0, begin)) + "assert " +
                     std::string(analysis.sources.text(range)) + ".";
  const auto dot = static_cast<uint32_t>(head.size());
  std::string text = head + "count;\n" + std::string(original.substr(place));
  Analysis complete(document.uri.file().str(), text, workspace.overlay(), workspace.settings());
  // The expression is found by where its dot was put.
  for (const Expr &expr : complete.program.main().expressions)
    if (expr.kind == ExprKind::Member && expr.nameRange.begin == dot)
      return expr.a->type;
  return Type::Error;
}

std::optional<Call> SyntaxContext::call() const {
  // The innermost bracket that is open must be the parenthesis of a call.
  size_t open = opening();
  if (open == kNone || open == 0 || at(open).kind != TokenKind::LeftParen)
    return std::nullopt;
  const Token &name = at(open - 1);
  if (!isWordLike(name.kind))
    return std::nullopt;
  // What stands before the name tells which of the words or names of this spelling is meant.
  Call call{analysis.textOf(name), false, false, 0};
  if (open > 1) {
    call.isMember = at(open - 2).kind == TokenKind::Dot;
    call.isCollective = at(open - 2).kind == TokenKind::KwImplements;
  }
  // Commas of the call itself, not of brackets within it, count arguments.
  int level = 0;
  for (size_t i = open + 1; i < count; ++i) {
    level += opens(at(i).kind) ? 1 : closes(at(i).kind) ? -1 : 0;
    call.argument += level == 0 && at(i).kind == TokenKind::Comma;
  }
  return call;
}

} // namespace occl::lsp
