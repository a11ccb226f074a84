#include "compiler/frontend/syntax/ParserState.h"

#include <algorithm>

namespace occl::frontend {
namespace {

struct OperatorInfo {
  TokenKind token;
  BinaryOp op;
  unsigned precedence;
};

constexpr size_t kMaxShown = 40; // characters of an expression in a message
constexpr unsigned kComparison = 3;
constexpr OperatorInfo kOperators[] = {
    {TokenKind::OrOr, BinaryOp::Or, 1},
    {TokenKind::AndAnd, BinaryOp::And, 2},
    {TokenKind::Equal, BinaryOp::Equal, kComparison},
    {TokenKind::NotEqual, BinaryOp::NotEqual, kComparison},
    {TokenKind::Less, BinaryOp::Less, kComparison},
    {TokenKind::LessEqual, BinaryOp::LessEqual, kComparison},
    {TokenKind::Greater, BinaryOp::Greater, kComparison},
    {TokenKind::GreaterEqual, BinaryOp::GreaterEqual, kComparison},
    {TokenKind::Plus, BinaryOp::Add, 4},
    {TokenKind::Minus, BinaryOp::Subtract, 4},
    {TokenKind::Star, BinaryOp::Multiply, 5},
    {TokenKind::Slash, BinaryOp::Divide, 5},
    {TokenKind::Percent, BinaryOp::Remainder, 5},
};

const OperatorInfo *operatorOf(TokenKind token) {
  auto info = std::find_if(std::begin(kOperators), std::end(kOperators),
                           [&](const OperatorInfo &entry) { return entry.token == token; });
  return info == std::end(kOperators) ? nullptr : info;
}

} // namespace

Expr *Parser::newExpr(ExprKind kind, SourceRange begin) {
  Expr &expr = module->expressions.emplace_back();
  expr.kind = kind;
  expr.range = expr.nameRange = begin;
  return &expr;
}

Expr *Parser::complete(Expr *expr) {
  // The height of an expression is what recursion over it costs: it is bounded here, once, for all
  // passes that follow.
  expr->range = since(expr->range);
  unsigned height = 0;
  auto include = [&](const Expr *child) {
    if (child)
      height = std::max<unsigned>(height, child->height);
  };
  for (const Expr *child : {expr->a, expr->b, expr->c, expr->generators.where})
    include(child);
  for (const Expr *operand : expr->operands)
    include(operand);
  for (const Generator &generator : expr->generators.list) {
    include(generator.first);
    include(generator.last);
  }
  expr->height = static_cast<uint16_t>(height + 1);
  if (expr->height <= kMaxNesting)
    return expr;
  diagnostics.error(DiagnosticCode::TooDeep, expr->range,
                    "this expression has more than " + std::to_string(kMaxNesting) +
                        " operators in a row; split it with 'let'");
  return nullptr;
}

Expr *Parser::parseExpr() {
  Nesting guard(*this);
  // Condition, '?' and the two values; without '?' it is the condition alone.
  if (!guard.allowed)
    return nullptr;
  Expr *condition = parseBinary(1);
  if (!condition || !is(TokenKind::Question))
    return condition;
  Expr *expr = newExpr(ExprKind::Conditional, condition->range);
  expr->nameRange = take().range;
  expr->a = condition;
  if (!(expr->b = parseExpr()) || !expect(TokenKind::Colon, "between the values of '?'") ||
      !(expr->c = parseExpr()))
    return nullptr;
  return complete(expr);
}

Expr *Parser::parseCondition() {
  Expr *expr = parseExpr();
  if (!expr || !is(TokenKind::Assign))
    return expr;
  diagnostics.error(DiagnosticCode::ExpectedToken, peek().range, "'=' does not compare; '==' does")
      .fixIt(peek().range, "==");
  return nullptr;
}

bool Parser::acceptForeign(std::string_view word, const char *spelling) {
  if (!is(TokenKind::Identifier) || sources.text(peek().range) != word)
    return false;
  SourceRange range = take().range;
  diagnostics
      .error(DiagnosticCode::ExpectedToken, range,
             "'" + std::string(word) + "' is written '" + spelling + "' here")
      .fixIt(range, spelling);
  return true;
}

bool Parser::isForeignAssignment(const Expr &left, SourceRange op) {
  // "x++" and "x += 1" are written by habit: the fix says what the language has.
  bool isIncrement = is(TokenKind::Plus) && sources.text(op) == "+";
  if ((!is(TokenKind::Assign) && !isIncrement) || peek().range.begin != op.end)
    return false;
  SourceRange both = join(op, peek().range);
  std::string name(sources.text(left.range)), sign(sources.text(op));
  std::string text = "= " + name + " " + sign + (isIncrement ? " 1" : "");
  diagnostics
      .error(DiagnosticCode::ExpectedToken, both,
             "there is no '" + std::string(sources.text(both)) + "'; write '" + name + " " + text +
                 (isIncrement ? "'" : " ...'"))
      .fixIt(both, text);
  return true;
}

Expr *Parser::parseBinary(unsigned minPrecedence) {
  // Precedence climbing: operators of at least `minPrecedence` are taken, each with a right side
  // that binds tighter.
  Expr *left = parseUnary();
  while (left) {
    const OperatorInfo *info = operatorOf(peek().kind);
    // Words of other languages for operators.
    if (!info && minPrecedence <= 2 && acceptForeign("and", "&&"))
      info = operatorOf(TokenKind::AndAnd);
    else if (!info && minPrecedence <= 1 && acceptForeign("or", "||"))
      info = operatorOf(TokenKind::OrOr);
    else if (!info || info->precedence < minPrecedence)
      return left;
    else
      take();
    Expr *expr = newExpr(ExprKind::Binary, left->range);
    expr->nameRange = previousRange();
    if (isForeignAssignment(*left, expr->nameRange))
      return nullptr;
    expr->op = info->op;
    expr->a = left;
    if (!(expr->b = parseBinary(info->precedence + 1)) || !(left = complete(expr)))
      return nullptr;
    // a < b < c would compare a truth value.
    const OperatorInfo *next = operatorOf(peek().kind);
    if (info->precedence == kComparison && next && next->precedence == kComparison) {
      diagnostics.error(DiagnosticCode::ComparisonChain, peek().range,
                        "comparisons cannot be chained; join two of them with '&&'");
      return nullptr;
    }
  }
  return nullptr;
}

Expr *Parser::parseUnary() {
  bool isFollowed = peek(1).kind == TokenKind::Identifier || peek(1).kind == TokenKind::Integer;
  bool isForeign = isFollowed && acceptForeign("not", "!");
  if (!isForeign && !isOneOf({TokenKind::Minus, TokenKind::Not}))
    return parsePostfix();
  Nesting guard(*this);
  if (!guard.allowed)
    return nullptr;
  bool isNegation = !isForeign && is(TokenKind::Minus);
  if (!isForeign)
    take();
  Expr *expr = newExpr(isNegation ? ExprKind::Negate : ExprKind::Not, previousRange());
  return (expr->a = parseUnary()) ? complete(expr) : nullptr;
}

Expr *Parser::parsePostfix() {
  Expr *expr = parsePrimary();
  while (expr && isOneOf({TokenKind::LeftBracket, TokenKind::Dot}))
    expr = is(TokenKind::Dot) ? parseMember(*expr) : parseIndex(*expr);
  return expr;
}

Expr *Parser::parseIndex(Expr &base) {
  // [index], or [first..last]; a colon is Python's habit, and gets a fix.
  Expr *expr = newExpr(ExprKind::Index, base.range);
  expr->nameRange = take().range;
  expr->a = &base;
  if (!(expr->b = parseExpr()))
    return nullptr;
  if (accept(TokenKind::DotDot) && !(expr->c = parseExpr()))
    return nullptr;
  if (!is(TokenKind::Colon))
    return expect(TokenKind::RightBracket, "after the index") ? complete(expr) : nullptr;
  diagnostics
      .error(DiagnosticCode::ExpectedToken, peek().range,
             "expected ']' after the index, found ':'; a range is written 'first..last', without "
             "'last' itself")
      .fixIt(peek().range, "..");
  return nullptr;
}

Expr *Parser::parseMember(Expr &base) {
  // A dot, then a property, an operation, or a copy.
  take();
  Expr *expr = newExpr(ExprKind::Member, base.range);
  expr->a = &base;
  // chunk.reduce(...) is what other languages would have.
  if (is(TokenKind::KwReduce)) {
    diagnostics.error(DiagnosticCode::ReservedWord, peek().range,
                      "'reduce' is no operation of a chunk; write 'reduce(" +
                          std::string(sources.text(base.range).substr(0, kMaxShown)) +
                          ", ...).into(place)'");
    return nullptr;
  }
  if (!expectName("after '.'", expr->name, expr->nameRange))
    return nullptr;
  if (expr->name == "copy")
    return parseCopy(*expr);
  if (!accept(TokenKind::LeftParen))
    return complete(expr);
  expr->kind = ExprKind::Method;
  return parseOperands(expr->operands, "after the arguments") ? complete(expr) : nullptr;
}

Expr *Parser::parseCopy(Expr &copy) {
  copy.kind = ExprKind::Copy;
  return expect(TokenKind::LeftParen, "before the destination of 'copy'") &&
                 (copy.b = parseExpr()) && parseOwnHints(copy) &&
                 expect(TokenKind::RightParen, "after the destination of 'copy'")
             ? complete(&copy)
             : nullptr;
}

Expr *Parser::parseList() {
  // Elements, or one element and a loop.
  Expr *list = newExpr(ExprKind::List, take().range);
  while (!is(TokenKind::RightBracket)) {
    Expr *element = parseListElement();
    if (!element)
      return nullptr;
    list->operands.push_back(element);
    bool isComprehension = list->operands.size() == 1 && accept(TokenKind::KwFor);
    if (isComprehension && !parseGenerators(list->generators))
      return nullptr;
    if (isComprehension || !accept(TokenKind::Comma))
      break;
  }
  return expect(TokenKind::RightBracket, "after the list") ? complete(list) : nullptr;
}

Expr *Parser::parseListElement() {
  Expr *first = parseExpr();
  if (!first || !is(TokenKind::DotDot))
    return first;
  Expr *range = newExpr(ExprKind::Range, first->range);
  range->nameRange = take().range;
  range->a = first;
  return (range->b = parseExpr()) ? complete(range) : nullptr;
}

Expr *Parser::parsePrimary() {
  // By the first token, which decides each form.
  SourceRange range = peek().range;
  switch (peek().kind) {
  case TokenKind::Integer: {
    Expr *expr = newExpr(ExprKind::Integer, range);
    expr->value = take().value;
    return expr;
  }
  case TokenKind::KwTrue:
  case TokenKind::KwFalse: {
    Expr *expr = newExpr(ExprKind::Boolean, range);
    expr->value = take().kind == TokenKind::KwTrue;
    return expr;
  }
  case TokenKind::KwInput:
    take();
    return newExpr(ExprKind::Input, range);
  case TokenKind::KwOutput:
    take();
    return newExpr(ExprKind::Output, range);
  case TokenKind::Identifier:
    return parseName();
  case TokenKind::LeftParen:
    return parseParenthesised();
  case TokenKind::LeftBracket:
    return parseList();
  case TokenKind::KwReduce:
    return parseReduce();
  case TokenKind::KwTopology:
    return parseTopologyQuery();
  // Words that may mean something later cannot be names.
  case TokenKind::Reserved:
    diagnostics.error(DiagnosticCode::ReservedWord, range,
                      "'" + std::string(sources.text(range)) +
                          "' is reserved for a later version of the language; a loop is written "
                          "'for i in first..last', with bounds that are known when it starts");
    return nullptr;
  default:
    reportExpected("an expression", "here");
    return nullptr;
  }
}

Expr *Parser::parseName() {
  Expr *expr = newExpr(ExprKind::Name, peek().range);
  expr->name = sources.text(take().range);
  if (!accept(TokenKind::LeftParen))
    return expr;
  expr->kind = ExprKind::Call;
  return parseOperands(expr->operands, "after the arguments") ? complete(expr) : nullptr;
}

Expr *Parser::parseParenthesised() {
  take();
  Expr *expr = parseExpr();
  return expr && expect(TokenKind::RightParen, "after the expression") ? expr : nullptr;
}

bool Parser::parseOperands(std::vector<Expr *> &operands, const char *where) {
  while (!is(TokenKind::RightParen)) {
    Expr *operand = parseExpr();
    if (!operand)
      return false;
    operands.push_back(operand);
    if (!accept(TokenKind::Comma))
      break;
  }
  return expect(TokenKind::RightParen, where);
}

Expr *Parser::parseReduce() {
  Expr *expr = newExpr(ExprKind::Reduce, take().range);
  return parseReduceOperands(*expr) ? (inPost ? complete(expr) : parseInto(*expr)) : nullptr;
}

Expr *Parser::parseReduceOperands(Expr &reduce) {
  if (!expect(TokenKind::LeftParen, "after 'reduce'"))
    return nullptr;
  bool isComprehension = is(TokenKind::Identifier) && peek(1).kind == TokenKind::KwIn;
  if (!isComprehension)
    return parseOperands(reduce.operands, "after the operands of 'reduce'") ? &reduce : nullptr;
  if (!parseGenerators(reduce.generators) ||
      !expect(TokenKind::Colon, "before the operand of 'reduce'"))
    return nullptr;
  Expr *operand = parseExpr();
  reduce.operands.push_back(operand);
  return operand && expect(TokenKind::RightParen, "after the operand of 'reduce'") ? &reduce
                                                                                   : nullptr;
}

Expr *Parser::parseInto(Expr &reduce) {
  // A reduction without destination would be a value that lies nowhere.
  bool hasInto = is(TokenKind::Dot) && sources.text(peek(1).range) == "into";
  if (!hasInto) {
    SourceRange place = previousRange();
    place.begin = place.end;
    diagnostics.error(DiagnosticCode::ExpectedToken, place,
                      "a reduction needs a destination: reduce(...).into(place)");
    return nullptr;
  }
  // "." and "into".
  take();
  take();
  // A place, and hints of the statement if there are any.
  return expect(TokenKind::LeftParen, "after 'into'") && (reduce.b = parseExpr()) &&
                 parseOwnHints(reduce) &&
                 expect(TokenKind::RightParen, "after the destination of 'reduce'")
             ? complete(&reduce)
             : nullptr;
}

} // namespace occl::frontend
