#include "compiler/format/Spacing.h"

namespace occl::format {

using frontend::TokenKind;

namespace {

bool isBinaryOperator(TokenKind kind) {
  return kind >= TokenKind::Plus && kind <= TokenKind::GreaterEqual && kind != TokenKind::Not;
}

bool isKeyword(TokenKind kind) {
  return kind >= TokenKind::KwAggregate && kind != TokenKind::Reserved;
}

/// Words that stand for a value or a function.
bool isValueWord(TokenKind kind) {
  // Keywords that are values by themselves, and all names.
  switch (kind) {
  case TokenKind::KwTrue:
  case TokenKind::KwFalse:
  case TokenKind::KwInput:
  case TokenKind::KwOutput:
  case TokenKind::KwReduce:
    return true;
  default:
    return kind == TokenKind::Identifier || kind == TokenKind::Reserved;
  }
}

/// Whether a value ends with this token, so that an operator behind it has a left side.
bool endsValue(TokenKind kind) {
  // An operator behind these has two sides; behind anything else it is a sign.
  switch (kind) {
  case TokenKind::Integer:
  case TokenKind::String:
  case TokenKind::RightParen:
  case TokenKind::RightBracket:
    return true;
  default:
    return isValueWord(kind);
  }
}

/// Words before which a bracket begins an expression of its own; other keywords take it as their
/// argument.
bool precedesExpression(TokenKind kind) {
  // Behind these a bracket is no call and no index, and gets a blank.
  switch (kind) {
  case TokenKind::KwAssert:
  case TokenKind::KwAt:
  case TokenKind::KwElse:
  case TokenKind::KwFor:
  case TokenKind::KwIf:
  case TokenKind::KwIn:
  case TokenKind::KwPart:
  case TokenKind::KwReturn:
  case TokenKind::KwWhere:
    return true;
  default:
    return false;
  }
}

bool opens(TokenKind kind) {
  return kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket;
}
bool closes(TokenKind kind) {
  return kind == TokenKind::RightParen || kind == TokenKind::RightBracket;
}

class Spacing {
public:
  explicit Spacing(std::span<const Piece> all) {
    for (size_t i = 0; i < all.size(); ++i)
      if (!all[i].isComment())
        tokens.push_back(all[i].token), positions.push_back(i);
    for (size_t i = 0; i < tokens.size(); ++i)
      isOfUnit.push_back(isWithinUnit(all, i));
    blanks.resize(all.size());
  }

  std::vector<bool> run() {
    findTernaries();
    for (size_t i = 1; i < tokens.size(); ++i)
      blanks[positions[i]] = hasBlank(i);
    return std::move(blanks);
  }

private:
  /// Whether a token is the slash of a topology's bandwidth: `50 GB/s`.
  bool isWithinUnit(std::span<const Piece> all, size_t i) const {
    if (tokens[i] != TokenKind::Slash || i < 2 || i + 1 == tokens.size() ||
        !endsValue(tokens[i - 2]))
      return false;
    std::string_view unit = all[positions[i - 1]].text;
    bool isAmount = unit == "MB" || unit == "GB" || unit == "TB" || unit == "Gbit";
    return isAmount && all[positions[i + 1]].text == "s";
  }

  /// Colons that belong to a '?': of the same bracket, the nearest before.
  void findTernaries() {
    // One count of open '?' for each bracket that is open: a colon belongs to the nearest '?' of
    // its own bracket, and everything else that ends an expression forgets them.
    isTernary.resize(tokens.size());
    std::vector<unsigned> open = {0};
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (opens(tokens[i]) || tokens[i] == TokenKind::LeftBrace)
        open.push_back(0);
      else if ((closes(tokens[i]) || tokens[i] == TokenKind::RightBrace) && open.size() > 1)
        open.pop_back();
      else if (tokens[i] == TokenKind::Semicolon)
        open.back() = 0;
      else if (tokens[i] == TokenKind::Question)
        ++open.back();
      else if (tokens[i] == TokenKind::Colon && open.back() > 0)
        --open.back(), isTernary[i] = true;
    }
  }

  bool isUnary(size_t i) const {
    return tokens[i] == TokenKind::Not ||
           (tokens[i] == TokenKind::Minus && (i == 0 || !endsValue(tokens[i - 1])));
  }

  /// A range whose bounds are single operands is written without blanks: 0..n, but i + 1 .. 2 * n.
  bool isWideRange(size_t i) const {
    return hasOperator(i, -1) || hasOperator(i, 1) || isOpenRange(i);
  }

  /// Of a version without largest size: `when bytes in 64KiB .. {`.
  bool isOpenRange(size_t i) const {
    TokenKind next = i + 1 < tokens.size() ? tokens[i + 1] : TokenKind::End;
    return next == TokenKind::LeftBrace || (isKeyword(next) && !isValueWord(next));
  }

  bool hasOperator(size_t i, int direction) const {
    // Whether the bound of a range is an expression with an operator, so that the range gets
    // blanks: `i + 1 .. n`, but `0..n`.
    int depth = 0;
    for (size_t j = i + static_cast<size_t>(direction); j < tokens.size();
         j += static_cast<size_t>(direction)) {
      TokenKind kind = tokens[j];
      // Brackets on the way are skipped; one that leads out of the expression ends it.
      bool inwards = direction > 0 ? opens(kind) : closes(kind);
      bool outwards = direction > 0 ? closes(kind) : opens(kind);
      depth += inwards;
      if (outwards && depth-- == 0)
        return false;
      if (depth > 0)
        continue;
      // Where the other bound or another expression begins.
      if (endsBound(j))
        return false;
      if (isBinaryOperator(kind) && !isUnary(j) && !isOfUnit[j])
        return true;
    }
    return false;
  }

  bool endsBound(size_t i) const {
    // What can stand between two expressions ends a bound.
    switch (tokens[i]) {
    case TokenKind::Comma:
    case TokenKind::Semicolon:
    case TokenKind::LeftBrace:
    case TokenKind::RightBrace:
    case TokenKind::Assign:
    case TokenKind::DotDot:
      return true;
    case TokenKind::Colon:
      return !isTernary[i];
    default:
      // A name behind a value is an attribute of a topology.
      return isValueWord(tokens[i]) ? i > 0 && endsValue(tokens[i - 1]) : isKeyword(tokens[i]);
    }
  }

  /// A bracket behind a value is an index or a call.
  bool hasBlankBeforeBracket(size_t i) const {
    TokenKind before = tokens[i - 1];
    if (isKeyword(before))
      return precedesExpression(before);
    return !endsValue(before) && !isUnary(i - 1);
  }

  bool hasBlank(size_t i) const {
    TokenKind before = tokens[i - 1], kind = tokens[i];
    // Ranges first: their blanks depend on both bounds.
    if (before == TokenKind::DotDot || kind == TokenKind::DotDot)
      return isWideRange(before == TokenKind::DotDot ? i - 1 : i);
    // No blanks inside of brackets, around dots, before commas and semicolons.
    if (opens(before) || closes(kind) || before == TokenKind::Dot || kind == TokenKind::Dot ||
        kind == TokenKind::Comma || kind == TokenKind::Semicolon)
      return false;
    if (before == TokenKind::LeftBrace && kind == TokenKind::RightBrace)
      return false;
    // Units like GB/s are written together.
    if (isOfUnit[i - 1] || isOfUnit[i])
      return false;
    // A colon of '?' has a blank on both sides; that of a type or loop only behind it.
    if (kind == TokenKind::Colon)
      return isTernary[i];
    // A bracket may be a call, an index, or an expression of its own.
    if (opens(kind))
      return hasBlankBeforeBracket(i);
    return !isUnary(i - 1);
  }

  std::vector<TokenKind> tokens;
  std::vector<size_t> positions; // of the tokens among the pieces
  std::vector<bool> isTernary, isOfUnit, blanks;
};

} // namespace

std::vector<bool> blanksBefore(std::span<const Piece> pieces) { return Spacing(pieces).run(); }

} // namespace occl::format
