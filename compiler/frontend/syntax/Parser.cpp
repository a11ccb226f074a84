#include "compiler/frontend/syntax/Parser.h"

#include "compiler/frontend/syntax/ParserState.h"

#include <algorithm>

namespace occl::frontend {

std::unique_ptr<Module> parse(const SourceManager &sources, FileId file,
                              DiagnosticEngine &diagnostics) {
  return Parser(sources, file, diagnostics).parseModule();
}

std::unique_ptr<Module> Parser::parseModule() {
  while (!is(TokenKind::End))
    parseDeclaration();
  return std::move(module);
}

bool Parser::isOneOf(std::initializer_list<TokenKind> kinds) const {
  return std::find(kinds.begin(), kinds.end(), peek().kind) != kinds.end();
}

Token Parser::take() {
  Token token = peek();
  if (at + 1 < tokens.size())
    ++at;
  return token;
}

bool Parser::accept(TokenKind kind) {
  if (!is(kind))
    return false;
  take();
  return true;
}

std::string Parser::found() const {
  if (is(TokenKind::End))
    return "found the end of the file";
  std::string_view text = sources.text(peek().range);
  constexpr size_t kMaxShown = 40;
  std::string shown(text.substr(0, kMaxShown));
  return is(TokenKind::String) ? "found a string" : "found '" + shown + "'";
}

void Parser::reportExpected(const std::string &what, const char *where, SourceRange opened) {
  if (gaveUp)
    return;
  SourceRange place = peek().range;
  if (is(TokenKind::End) && at > 0) { // behind what is there, not in an empty line
    place = previousRange();
    place.begin = place.end;
  }
  Diagnostic &error = diagnostics.error(DiagnosticCode::ExpectedToken, place,
                                        "expected " + what + " " + where + ", " + found());
  if (opened.isValid())
    error.note(opened, "to close this one");
}

bool Parser::expectBrace(SourceRange opened, const char *where) {
  if (accept(TokenKind::RightBrace))
    return true;
  reportExpected("'}'", where, opened);
  return false;
}

bool Parser::expect(TokenKind kind, const char *where) {
  if (accept(kind))
    return true;
  if (kind != TokenKind::Semicolon) {
    reportExpected(describe(kind), where);
    return false;
  }
  // A missing semicolon belongs behind the token before, which may be on an earlier line.
  SourceRange place = previousRange();
  place.begin = place.end;
  diagnostics.error(DiagnosticCode::ExpectedToken, place, std::string("expected ';' ") + where)
      .fixIt(place, ";");
  return false;
}

bool Parser::expectName(const char *what, std::string_view &name, SourceRange &range) {
  // A word of the language is no name, and says so: "expected a name" would puzzle.
  if (is(TokenKind::Identifier)) {
    range = take().range;
    name = sources.text(range);
    return true;
  }
  bool isWord = is(TokenKind::Reserved) ||
                (peek().kind >= TokenKind::KwAggregate && peek().kind <= TokenKind::KwWhere);
  if (!isWord) {
    reportExpected("a name", what);
    return false;
  }
  diagnostics.error(DiagnosticCode::ReservedWord, peek().range,
                    "'" + std::string(sources.text(peek().range)) +
                        "' is a word of the language and cannot be a name " + what);
  return false;
}

bool Parser::expectCollectiveName(std::string_view &name, SourceRange &range) {
  if (!is(TokenKind::KwReduce))
    return expectName("of a collective", name, range);
  range = take().range;
  name = sources.text(range);
  return true;
}

bool Parser::expectString(const char *what, std::string_view &text) {
  if (!is(TokenKind::String)) {
    reportExpected("a string", what);
    return false;
  }
  text = sources.text(take().range).substr(1);
  if (text.ends_with('"'))
    text.remove_suffix(1);
  return true;
}

bool Parser::enter() {
  // Recursion is bounded: after the limit the rest of the file is skipped at once.
  if (++nesting <= kMaxNesting)
    return true;
  diagnostics.error(DiagnosticCode::TooDeep, peek().range,
                    "constructs are nested more than " + std::to_string(kMaxNesting) +
                        " deep here; split them with functions or 'let'");
  at = tokens.size() - 1;
  gaveUp = true;
  return false;
}

void Parser::skipGroup() {
  // One token, or from an opening bracket to its closing one.
  int depth = 0;
  do {
    if (isOneOf({TokenKind::LeftParen, TokenKind::LeftBracket, TokenKind::LeftBrace}))
      ++depth;
    else if (isOneOf({TokenKind::RightParen, TokenKind::RightBracket, TokenKind::RightBrace}))
      --depth;
    take();
  } while (depth > 0 && !is(TokenKind::End));
}

void Parser::skipDeclaration() {
  // A topology is declared where a name follows; elsewhere it is asked something.
  while (!isOneOf({TokenKind::End, TokenKind::KwAlgorithm, TokenKind::KwFunction,
                   TokenKind::KwCollective, TokenKind::KwImport}) &&
         !(is(TokenKind::KwTopology) && peek(1).kind == TokenKind::Identifier))
    take();
}

void Parser::parseDeclaration() {
  // By the first word. A declaration that fails is skipped to the next one.
  declaration = nullptr;
  bool good = false;
  if (is(TokenKind::KwImport))
    good = parseImport();
  else if (is(TokenKind::KwFunction))
    good = parseFunction();
  else if (is(TokenKind::KwAlgorithm))
    good = parseAlgorithm();
  else if (is(TokenKind::KwCollective))
    good = parseCollective();
  else if (is(TokenKind::KwTopology))
    good = parseTopology();
  else
    reportExpected("'algorithm', 'collective', 'function', 'import' or 'topology'", "here");
  if (!good)
    skipDeclaration();
  // Its range goes to the last token, also if it failed: editors ask which declaration is around.
  if (declaration)
    declaration->range = since(declaration->range);
}

bool Parser::parseImport() {
  ImportDecl import;
  SourceRange begin = take().range;
  if (!expectString("after 'import'", import.path) ||
      !expect(TokenKind::Semicolon, "after the import"))
    return false;
  import.range = since(begin);
  module->imports.push_back(import);
  return true;
}

bool Parser::parseParams(Decl &decl) {
  if (!expect(TokenKind::LeftParen, "before the parameters"))
    return false;
  while (!is(TokenKind::RightParen)) {
    if (!parseParam(decl))
      return false;
    if (!accept(TokenKind::Comma))
      break;
  }
  return expect(TokenKind::RightParen, "after the parameters");
}

bool Parser::parseParam(Decl &decl) {
  Param param;
  if (!expectName("of a parameter", param.name, param.nameRange) ||
      !expect(TokenKind::Colon, "before the parameter's type") || !parseType(param.type))
    return false;
  if (accept(TokenKind::Assign) && !(param.defaultValue = parseExpr()))
    return false;
  decl.params.push_back(param);
  return true;
}

bool Parser::parseType(Type &type) {
  // A list of a type, or a basic type by its name.
  SourceRange begin = peek().range;
  if (accept(TokenKind::LeftBracket)) {
    Nesting guard(*this);
    if (!guard.allowed || !parseType(type) || !expect(TokenKind::RightBracket, "after the type"))
      return false;
    // Not every type has lists.
    Type list = listOf(type);
    if (list == Type::Error || type == Type::Location) {
      diagnostics.error(DiagnosticCode::WrongType, since(begin),
                        "the lists are '[int]', '[[int]]' and '[chunk]'");
      return false;
    }
    type = list;
    return true;
  }
  std::string_view text = sources.text(begin);
  // Words for types are names elsewhere.
  for (Type candidate : {Type::Int, Type::Bool, Type::Chunk, Type::Location}) {
    if (text != nameOf(candidate))
      continue;
    type = candidate;
    take();
    return true;
  }
  reportExpected("a type ('int', 'bool', 'chunk', 'location', or '[int]' for a list)", "here");
  return false;
}

bool Parser::parseFunction() {
  FunctionDecl &decl = beginDecl(module->functions);
  take();
  if (!expectName("of a function", decl.name, decl.nameRange) || !parseParams(decl))
    return false;
  SourceRange begin = peek().range;
  if (accept(TokenKind::Arrow)) {
    if (!parseType(decl.result))
      return false;
    decl.resultRange = since(begin);
  }
  return parseBlock(decl.body, decl.block, "before the function's body");
}

bool Parser::parseAlgorithm() {
  AlgorithmDecl &decl = beginDecl(module->algorithms);
  take();
  return expectName("of an algorithm", decl.name, decl.nameRange) && parseParams(decl) &&
         expect(TokenKind::KwImplements, "after the algorithm's parameters") &&
         expectCollectiveName(decl.collectiveName, decl.collectiveRange) &&
         parseArguments(decl.arguments) && parseClauses(decl) && parseAlgorithmBody(decl);
}

bool Parser::parseAlgorithmBody(AlgorithmDecl &decl) {
  algorithm = &decl;
  bool good = parseBlock(decl.body, decl.block, "before the algorithm's body");
  algorithm = nullptr;
  return good;
}

bool Parser::parseClauses(AlgorithmDecl &decl) {
  while (is(TokenKind::KwModes) || atScheduleClause())
    if (is(TokenKind::KwModes) ? !parseModes(decl) : !parseScheduleClause(decl.clauses))
      return false;
  return true;
}

bool Parser::parseModes(AlgorithmDecl &decl) {
  // Which modes the algorithm claims; without the clause it is both.
  SourceRange begin = take().range;
  if (decl.modesRange.isValid())
    diagnostics.error(DiagnosticCode::RepeatedClause, begin, "'modes' is given twice")
        .note(decl.modesRange, "first here");
  decl.outOfPlace = decl.inPlace = false;
  // One or two of them.
  do {
    std::string_view mode = sources.text(peek().range);
    if (mode != "out_of_place" && mode != "in_place") {
      reportExpected("'out_of_place' or 'in_place'", "here");
      return false;
    }
    (mode == "in_place" ? decl.inPlace : decl.outOfPlace) = true;
    take();
  } while (accept(TokenKind::Comma));
  decl.modesRange = since(begin);
  return true;
}

bool Parser::parseArguments(std::vector<Argument> &arguments) {
  // Expressions, each with a name in front if it is given by name.
  if (!expect(TokenKind::LeftParen, "before the arguments of the collective"))
    return false;
  while (!is(TokenKind::RightParen)) {
    Argument argument;
    if (is(TokenKind::Identifier) && peek(1).kind == TokenKind::Assign) {
      argument.nameRange = take().range;
      argument.name = sources.text(argument.nameRange);
      take();
    }
    if (!(argument.expr = parseExpr()))
      return false;
    arguments.push_back(argument);
    if (!accept(TokenKind::Comma))
      break;
  }
  return expect(TokenKind::RightParen, "after the arguments of the collective");
}

bool Parser::parseCollective() {
  CollectiveDecl &decl = beginDecl(module->collectives);
  take();
  if (!expectCollectiveName(decl.name, decl.nameRange) || !parseParams(decl) ||
      !expect(TokenKind::LeftBrace, "before the collective's items"))
    return false;
  SourceRange opened = previousRange();
  while (!atBlockEnd())
    if (!parseCollectiveItem(decl))
      skipStatement();
  decl.block = join(opened, peek().range);
  return expectBrace(opened, "after the collective's items");
}

bool Parser::parseCollectiveItem(CollectiveDecl &decl) {
  // Lets and asserts may stand between the items.
  if (is(TokenKind::KwAssert) || is(TokenKind::KwLet)) {
    Stmt *statement = is(TokenKind::KwLet) ? parseBinding(StmtKind::Let) : parseAssert();
    if (statement)
      decl.bindings.push_back(statement);
    return statement != nullptr;
  }
  // Items by their word; each of the buffers has one.
  if (is(TokenKind::KwPre))
    return parsePre(decl);
  if (is(TokenKind::KwPost))
    return parsePost(decl);
  if (is(TokenKind::KwInput))
    return parseRankItem(decl.input, TokenKind::Colon);
  if (is(TokenKind::KwOutput))
    return parseRankItem(decl.output, TokenKind::Colon);
  if (accept(TokenKind::KwInplace)) {
    if (is(TokenKind::KwInput))
      return parseRankItem(decl.inplace, TokenKind::KwAt);
    reportExpected("'input'", "after 'inplace'");
    return false;
  }
  if (!is(TokenKind::KwPart)) {
    reportExpected("'input', 'output', 'part', 'inplace', 'let', 'assert', 'pre' or 'post'",
                   "in a collective");
    return false;
  }
  // The part stands alone: a number of chunks.
  SourceRange word = take().range;
  if (decl.part)
    diagnostics.error(DiagnosticCode::BadCollective, word, "'part' is given twice");
  return (decl.part = parseExpr()) && expect(TokenKind::Semicolon, "after the part");
}

bool Parser::parseRankItem(RankItem &item, TokenKind separator) {
  SourceRange begin = take().range;
  if (item.range.isValid())
    diagnostics.error(DiagnosticCode::BadCollective, begin, "this item is given twice")
        .note(item.range, "first here");
  RankItem given; // what was given before stays unless all of this one is there
  if (!expect(TokenKind::LeftBracket, "before the name of the rank") ||
      !expectName("of the rank", given.rank, given.rankRange) ||
      !expect(TokenKind::RightBracket, "after the name of the rank") ||
      !expect(separator, "after the buffer") || !(given.expr = parseExpr()))
    return false;
  given.range = since(begin);
  item = given;
  return expect(TokenKind::Semicolon, "after the item");
}

bool Parser::parsePre(CollectiveDecl &decl) {
  // With a loop if there are many: "pre for r in 0..ranks { ... }".
  PreItem pre;
  SourceRange begin = take().range;
  if (accept(TokenKind::KwFor) && !parseGenerators(pre.generators))
    return false;
  pre.range = since(begin);
  if (!expect(TokenKind::LeftBrace, "before the precondition"))
    return false;
  SourceRange opened = previousRange();
  while (!atBlockEnd()) {
    // A place, or two that are equal.
    DefinedInput defined;
    bool good = (defined.input = parsePostfix()) &&
                (!accept(TokenKind::Equal) || (defined.equal = parsePostfix()));
    if (good)
      pre.inputs.push_back(defined);
    // A mistake in one does not hide the others.
    if (!good || !expect(TokenKind::Semicolon, "after the input"))
      skipStatement();
  }
  pre.block = join(opened, peek().range);
  decl.pres.push_back(std::move(pre));
  return expectBrace(opened, "after the precondition");
}

bool Parser::parsePost(CollectiveDecl &decl) {
  // As preconditions, with requirements instead of places.
  PostItem post;
  SourceRange begin = take().range;
  if (accept(TokenKind::KwFor) && !parseGenerators(post.generators))
    return false;
  post.range = since(begin);
  if (!expect(TokenKind::LeftBrace, "before the postcondition"))
    return false;
  SourceRange opened = previousRange();
  // Inside, a reduction has no destination.
  inPost = true;
  while (!atBlockEnd())
    if (!parseRequirement(post))
      skipStatement();
  inPost = false;
  post.block = join(opened, peek().range);
  decl.posts.push_back(std::move(post));
  return expectBrace(opened, "after the postcondition");
}

bool Parser::parseRequirement(PostItem &post) {
  Requirement requirement;
  SourceRange begin = peek().range;
  if (!is(TokenKind::KwOutput)) {
    reportExpected("'output[...][...] == ...;'", "in a postcondition");
    return false;
  }
  if (!(requirement.output = parsePostfix()) ||
      !expect(TokenKind::Equal, "after the output of a postcondition") ||
      !(requirement.value = parsePostfix()))
    return false;
  requirement.range = since(begin);
  post.requirements.push_back(requirement);
  return expect(TokenKind::Semicolon, "after the requirement");
}

} // namespace occl::frontend
