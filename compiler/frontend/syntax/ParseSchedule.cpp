#include "compiler/frontend/syntax/ParserState.h"
#include "support/suggestion.h"

#include <algorithm>

namespace occl::frontend {

bool Parser::atScheduleClause() const {
  return is(TokenKind::KwInstances) || is(TokenKind::KwProtocol);
}

bool Parser::parseScheduleClause(ScheduleClauses &clauses) {
  if (is(TokenKind::KwProtocol))
    return parseProtocol(clauses);
  SourceRange word = take().range;
  if (clauses.instances)
    diagnostics.error(DiagnosticCode::RepeatedClause, word, "'instances' is given twice")
        .note(clauses.instances->range, "first here");
  return (clauses.instances = parseExpr()) != nullptr;
}

bool Parser::parseProtocol(ScheduleClauses &clauses) {
  // Checked here and not later, as the name is no name of the program.
  SourceRange word = take().range;
  // A clause that is given twice is reported, and the last one holds.
  if (clauses.protocolRange.isValid())
    diagnostics.error(DiagnosticCode::RepeatedClause, word, "'protocol' is given twice")
        .note(clauses.protocolRange, "first here");
  if (!expectName("of a protocol", clauses.protocol, clauses.protocolRange))
    return false;
  const std::vector<std::string_view> known{"simple", "ll", "ll128"};
  if (std::find(known.begin(), known.end(), clauses.protocol) != known.end())
    return true;
  std::string suggestion = support::suggest(clauses.protocol, known);
  Diagnostic &error = diagnostics.error(DiagnosticCode::UnknownName, clauses.protocolRange,
                                        "there is no protocol '" + std::string(clauses.protocol) +
                                            "'; there are 'simple', 'll' and 'll128'");
  if (!suggestion.empty())
    error.fixIt(clauses.protocolRange, suggestion);
  return true;
}

bool Parser::parseHintArgument(HintArguments &hints) {
  // Which number of the hints the word sets.
  std::string_view word = sources.text(peek().range);
  Expr **target = word == "channel"       ? &hints.channel
                  : word == "parallelize" ? &hints.parallel
                  : word == "send"        ? &hints.sendBlock
                  : word == "recv"        ? &hints.recvBlock
                                          : nullptr;
  if (!target) {
    reportExpected("'channel', 'parallelize', 'send' or 'recv'", "here");
    return false;
  }
  if (*target)
    diagnostics.error(DiagnosticCode::RepeatedClause, peek().range,
                      "'" + std::string(word) + "' is given twice");
  take();
  return expect(TokenKind::Assign, "before the number") && (*target = parseExpr());
}

bool Parser::parseHintArguments(HintArguments &hints) {
  do {
    if (!parseHintArgument(hints))
      return false;
  } while (accept(TokenKind::Comma));
  return true;
}

bool Parser::parseOwnHints(Expr &expr) {
  if (!accept(TokenKind::Comma))
    return true;
  HintArguments &hints = module->hints.emplace_back();
  expr.hints = &hints;
  return parseHintArguments(hints);
}

Stmt *Parser::parseHintBlock() {
  // Four words with different arguments: aggregate has none, threadblock has named ones, channel
  // and parallelize a number each.
  Stmt *statement = newStmt(StmtKind::Hints);
  HintArguments &hints = module->hints.emplace_back();
  statement->hints = &hints;
  TokenKind word = take().kind;
  bool good = true;
  if (word == TokenKind::KwAggregate) {
    hints.aggregate = true;
  } else {
    good = expect(TokenKind::LeftParen, "before the number");
    if (word == TokenKind::KwThreadblock)
      good = good && parseHintArguments(hints);
    else
      good =
          good && ((word == TokenKind::KwChannel ? hints.channel : hints.parallel) = parseExpr());
    good = good && expect(TokenKind::RightParen, "after the number");
  }
  // The range of the statement ends before its block, for messages.
  statement->range = since(statement->range);
  good = good &&
         parseBlock(statement->body, statement->block, "before the statements that this is for");
  return good ? statement : nullptr;
}

Stmt *Parser::parseWhen() {
  // A version: a range of sizes, clauses, and statements.
  Stmt *statement = newStmt(StmtKind::When);
  VersionDecl version;
  bool good = parseVersion(version);
  statement->range = version.range;
  if (!algorithm) {
    diagnostics.error(DiagnosticCode::MisplacedDeclaration, statement->range,
                      "versions stand directly in the body of an algorithm");
    return nullptr;
  }
  if (!good)
    return nullptr;
  // The version's number is its position in the algorithm, by which it is chosen.
  statement->slot = static_cast<uint32_t>(algorithm->versions.size());
  algorithm->versions.push_back(version);
  good = parseBlock(statement->body, statement->block, "before the statements of this version");
  return good ? statement : nullptr;
}

bool Parser::parseVersion(VersionDecl &version) {
  // when bytes in first .. last, then clauses; without an end, all larger sizes.
  SourceRange begin = take().range;
  version.range = begin;
  if (sources.text(peek().range) != "bytes") {
    reportExpected("'bytes'", "after 'when'");
    return false;
  }
  take();
  if (!expect(TokenKind::KwIn, "after 'bytes'") || !(version.first = parseExpr()) ||
      !expect(TokenKind::DotDot, "between the sizes"))
    return false;
  // A brace or a clause ends the range.
  bool hasEnd = !is(TokenKind::LeftBrace) && !atScheduleClause();
  if (hasEnd && !(version.last = parseExpr()))
    return false;
  version.range = since(begin);
  while (atScheduleClause())
    if (!parseScheduleClause(version.clauses))
      return false;
  return true;
}

} // namespace occl::frontend
