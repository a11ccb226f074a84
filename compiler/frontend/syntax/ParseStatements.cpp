#include "compiler/frontend/syntax/ParserState.h"

namespace occl::frontend {

bool Parser::parseBlock(std::vector<Stmt *> &statements, SourceRange &block, const char *where) {
  Nesting guard(*this);
  if (!guard.allowed || !expect(TokenKind::LeftBrace, where))
    return false;
  SourceRange opened = previousRange();
  while (!atBlockEnd())
    if (Stmt *statement = parseStatement())
      statements.push_back(statement);
  // A block that is not closed is one nevertheless: who is writing it wants its names known.
  bool isClosed = expectBrace(opened, "at the end of the block");
  block = isClosed ? since(opened) : join(opened, peek().range);
  return true;
}

bool Parser::atBlockEnd() const {
  // A declaration inside of a body: most likely the body's '}' is missing.
  return isOneOf({TokenKind::RightBrace, TokenKind::End, TokenKind::KwAlgorithm,
                  TokenKind::KwCollective, TokenKind::KwFunction, TokenKind::KwImport});
}

Stmt *Parser::parseStatement() {
  // An error inside a statement skips to the next one: each mistake has its own message.
  size_t begin = at;
  Stmt *statement = parseStatementKind();
  if (statement)
    return statement;
  skipStatement();
  if (at == begin)
    take();
  return nullptr;
}

void Parser::skipStatement() {
  // To behind the next semicolon, or before the next word that begins a statement; blocks are
  // skipped as a whole.
  size_t begin = at;
  while (!atBlockEnd()) {
    if (accept(TokenKind::Semicolon))
      return;
    bool startsStatement = isOneOf(
        {TokenKind::KwLet, TokenKind::KwVar, TokenKind::KwFor, TokenKind::KwIf, TokenKind::KwAssert,
         TokenKind::KwScratch, TokenKind::KwReturn, TokenKind::KwWhen, TokenKind::KwChannel,
         TokenKind::KwParallelize, TokenKind::KwAggregate, TokenKind::KwThreadblock});
    if (startsStatement && at > begin)
      return;
    // A block ends the statement that it belongs to.
    bool endsStatement = is(TokenKind::LeftBrace);
    skipGroup();
    if (endsStatement)
      return;
  }
}

Stmt *Parser::parseStatementKind() {
  // The first token decides; everything else is an expression or an assignment.
  if (inTopology && atTopologyItem())
    return parseTopologyItem();
  switch (peek().kind) {
  case TokenKind::KwLet:
    return parseBinding(StmtKind::Let);
  case TokenKind::KwVar:
    return parseBinding(StmtKind::Var);
  case TokenKind::KwFor:
    return parseFor();
  case TokenKind::KwIf:
    return parseIf();
  case TokenKind::KwAssert:
    return parseAssert();
  case TokenKind::KwScratch:
    return parseScratch();
  case TokenKind::KwReturn:
    return parseReturn();
  case TokenKind::KwChannel:
  case TokenKind::KwParallelize:
  case TokenKind::KwAggregate:
  case TokenKind::KwThreadblock:
    return parseHintBlock();
  case TokenKind::KwWhen:
    return parseWhen();
  default:
    return parseExpressionStatement();
  }
}

Stmt *Parser::newStmt(StmtKind kind) {
  Stmt &statement = module->statements.emplace_back();
  statement.kind = kind;
  statement.range = peek().range;
  return &statement;
}

bool Parser::finish(Stmt &statement) {
  statement.range = since(statement.range);
  if (expect(TokenKind::Semicolon, "after the statement"))
    return true;
  // Only the semicolon is missing if something new begins on the next line.
  SourceRange gap = previousRange();
  gap = {gap.file, gap.end, peek().range.begin};
  return is(TokenKind::RightBrace) || sources.text(gap).find('\n') != std::string_view::npos;
}

Stmt *Parser::parseBinding(StmtKind kind) {
  Stmt *statement = newStmt(kind);
  take();
  if (!expectName("of a variable", statement->name, statement->nameRange))
    return nullptr;
  bool good = expect(TokenKind::Assign, "after the variable's name") &&
              (statement->expr = parseExpr()) && finish(*statement);
  // A variable that is declared, however badly, spares the reader errors about its uses.
  if (!good)
    skipStatement();
  return statement;
}

Stmt *Parser::parseFor() {
  Stmt *statement = newStmt(StmtKind::For);
  take();
  if (!parseGenerators(statement->generators))
    return nullptr;
  statement->range = since(statement->range);
  return parseBlock(statement->body, statement->block, "before the loop's body") ? statement
                                                                                 : nullptr;
}

bool Parser::parseGenerators(Generators &generators) {
  // "i in 0..n, j in list where condition".
  do {
    Generator generator;
    SourceRange begin = peek().range;
    if (!expectName("of a loop variable", generator.name, generator.nameRange) ||
        !expect(TokenKind::KwIn, "after the loop variable") || !(generator.first = parseExpr()) ||
        (accept(TokenKind::DotDot) && !(generator.last = parseExpr())))
      return false;
    generator.range = since(begin);
    generators.list.push_back(generator);
    // Each variable is a level of recursion when the loop runs.
    if (generators.list.size() > kMaxLoopVariables) {
      diagnostics.error(DiagnosticCode::TooDeep, generator.range,
                        "a loop has at most " + std::to_string(kMaxLoopVariables) + " variables");
      return false;
    }
  } while (accept(TokenKind::Comma));
  return !accept(TokenKind::KwWhere) || (generators.where = parseCondition());
}

Stmt *Parser::parseIf() {
  // `else if` nests, so its depth counts.
  Nesting guard(*this);
  if (!guard.allowed)
    return nullptr;
  Stmt *statement = newStmt(StmtKind::If);
  take();
  if (!(statement->expr = parseCondition()))
    return nullptr;
  statement->range = since(statement->range);
  if (!parseBlock(statement->body, statement->block, "before the statements of 'if'"))
    return nullptr;
  // An `else if` is a statement in the else body.
  if (!accept(TokenKind::KwElse))
    return statement;
  if (!is(TokenKind::KwIf))
    return parseBlock(statement->elseBody, statement->elseBlock, "after 'else'") ? statement
                                                                                 : nullptr;
  Stmt *next = parseIf();
  statement->elseBody.push_back(next);
  return next ? statement : nullptr;
}

Stmt *Parser::parseAssert() {
  Stmt *statement = newStmt(StmtKind::Assert);
  take();
  if (!(statement->expr = parseCondition()))
    return nullptr;
  if (accept(TokenKind::Comma) && !expectString("as the message of 'assert'", statement->message))
    return nullptr;
  return finish(*statement) ? statement : nullptr;
}

Stmt *Parser::parseScratch() {
  // "scratch name[slots]", or "scratch name[rank]: slots" where it depends on the rank.
  Stmt *statement = newStmt(StmtKind::Scratch);
  take();
  bool good = expectName("of a scratch", statement->name, statement->nameRange) &&
              expect(TokenKind::LeftBracket, "before the number of slots") &&
              (statement->expr = parseExpr()) &&
              expect(TokenKind::RightBracket, "after the number of slots");
  // What was parsed as the number of slots is the rank's name then.
  if (good && is(TokenKind::Colon)) {
    statement->rankRange = statement->expr->range;
    if (statement->expr->kind != ExprKind::Name) {
      diagnostics.error(DiagnosticCode::ExpectedToken, statement->rankRange,
                        "expected the name of the rank before ':', as in 'scratch s[r]: r + 1;'");
      return nullptr;
    }
    take();
    good = (statement->expr = parseExpr());
  }
  return good && finish(*statement) ? statement : nullptr;
}

Stmt *Parser::parseReturn() {
  Stmt *statement = newStmt(StmtKind::Return);
  take();
  if (!is(TokenKind::Semicolon) && !(statement->expr = parseExpr()))
    return nullptr;
  return finish(*statement) ? statement : nullptr;
}

Stmt *Parser::parseExpressionStatement() {
  // An assignment begins with a name and '='.
  Stmt *statement = newStmt(StmtKind::Expression);
  if (is(TokenKind::Identifier) && peek(1).kind == TokenKind::Assign) {
    statement->kind = StmtKind::Assign;
    expectName("of a variable", statement->name, statement->nameRange);
    take();
  }
  if (!(statement->expr = parseExpr()))
    return nullptr;
  // The target of '=' is something else than a name.
  if (is(TokenKind::Assign)) {
    diagnostics
        .error(DiagnosticCode::NotAssignable, statement->expr->range,
               "only a variable can be assigned to")
        .note(peek().range, "to write a chunk to a place: chunk.copy(place)");
    return nullptr;
  }
  return finish(*statement) ? statement : nullptr;
}

} // namespace occl::frontend
