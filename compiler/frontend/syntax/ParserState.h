// The recursive-descent parser. Internal to the parser's files: declarations (Parser.cpp),
// statements (ParseStatements.cpp), expressions (ParseExpressions.cpp), what concerns the schedule
// (ParseSchedule.cpp).
#pragma once

#include "compiler/frontend/syntax/Lexer.h"
#include "compiler/frontend/syntax/Parser.h"

#include <initializer_list>
#include <optional>

namespace occl::frontend {

/// Functions that parse an expression return null after an error that they have reported; the
/// caller gives up its own construct then, up to the statement or declaration, which looks for the
/// next place to go on.
class Parser {
public:
  Parser(const SourceManager &sources, FileId file, DiagnosticEngine &diagnostics)
      : sources(sources), diagnostics(diagnostics), tokens(lex(sources, file, diagnostics)),
        module(std::make_unique<Module>()) {
    module->file = file;
  }

  std::unique_ptr<Module> parseModule();

private:
  // Tokens
  const Token &peek(size_t ahead = 0) const {
    return tokens[at + ahead < tokens.size() ? at + ahead : tokens.size() - 1];
  }
  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool isOneOf(std::initializer_list<TokenKind> kinds) const;
  SourceRange previousRange() const { return at == 0 ? peek().range : tokens[at - 1].range; }
  SourceRange since(SourceRange begin) const { return join(begin, previousRange()); }
  Token take();
  bool accept(TokenKind kind);
  /// Takes a token of this kind, or reports that it was expected ("after the condition").
  bool expect(TokenKind kind, const char *where);
  bool expectName(const char *what, std::string_view &name, SourceRange &range);
  /// As expectName; but a collective may be called 'reduce'.
  bool expectCollectiveName(std::string_view &name, SourceRange &range);
  /// Without its quotes.
  bool expectString(const char *what, std::string_view &text);
  /// `opened`, if it is a place, is noted as what is to be closed.
  void reportExpected(const std::string &what, const char *where, SourceRange opened = {});
  /// Takes the '}' of the '{' at `opened`, or reports that it is missing.
  bool expectBrace(SourceRange opened, const char *where);
  std::string found() const;

  // Recovery
  /// Where no statement or item of a block begins any more.
  bool atBlockEnd() const;
  void skipStatement();
  void skipDeclaration();
  /// Skips one token, or a whole group if it opens one.
  void skipGroup();
  /// False, and the rest of the file is given up, if constructs are nested too deeply.
  bool enter();
  struct Nesting {
    Parser &parser;
    bool allowed;
    explicit Nesting(Parser &parser) : parser(parser), allowed(parser.enter()) {}
    ~Nesting() { --parser.nesting; }
  };

  // Declarations
  void parseDeclaration();
  bool parseImport();
  /// Begins with the word at hand; parseDeclaration says where it ends.
  template <typename DeclType> DeclType &beginDecl(std::deque<DeclType> &declarations) {
    DeclType &decl = declarations.emplace_back();
    decl.range = peek().range;
    declaration = &decl;
    return decl;
  }
  bool parseFunction();
  bool parseAlgorithm();
  bool parseCollective();
  bool parseCollectiveItem(CollectiveDecl &decl);
  bool parseRankItem(RankItem &item, TokenKind separator);
  bool parsePre(CollectiveDecl &decl);
  bool parsePost(CollectiveDecl &decl);
  bool parseRequirement(PostItem &post);
  bool parseAlgorithmBody(AlgorithmDecl &decl);
  bool parseClauses(AlgorithmDecl &decl);
  bool parseModes(AlgorithmDecl &decl);
  bool parseArguments(std::vector<Argument> &arguments);
  // Topologies
  bool parseTopology();
  bool atTopologyItem() const;
  Stmt *parseTopologyItem();
  bool parseTopologyItem(TopologyItem &item);
  bool parseRanks(std::vector<RankRange> &ranks);
  bool parseLinkEnds(TopologyItem &item);
  bool parseAttributes(TopologyItem &item);
  bool parseQuantity(Quantity &quantity, Quantity::Dimension wanted);
  bool atWord(std::string_view word) const;
  bool acceptWord(std::string_view word);
  Expr *parseTopologyQuery();

  bool parseParams(Decl &decl);
  bool parseParam(Decl &decl);
  bool parseType(Type &type);

  // Statements
  /// Sets `block` to where it stands. True also, after the error, if its '}' is missing.
  bool parseBlock(std::vector<Stmt *> &statements, SourceRange &block, const char *where);
  Stmt *parseStatement();
  Stmt *parseStatementKind();
  Stmt *parseBinding(StmtKind kind);
  Stmt *parseFor();
  Stmt *parseIf();
  Stmt *parseAssert();
  Stmt *parseScratch();
  Stmt *parseReturn();
  Stmt *parseExpressionStatement();
  bool parseGenerators(Generators &generators);
  Stmt *newStmt(StmtKind kind);
  bool finish(Stmt &statement);

  // Schedule
  bool atScheduleClause() const;
  bool parseScheduleClause(ScheduleClauses &clauses);
  bool parseProtocol(ScheduleClauses &clauses);
  Stmt *parseHintBlock();
  Stmt *parseWhen();
  bool parseVersion(VersionDecl &version);
  /// `name = expr, ...`, at least one.
  bool parseHintArguments(HintArguments &hints);
  bool parseHintArgument(HintArguments &hints);
  /// What follows the destination of a copy or reduction, up to its ')'.
  bool parseOwnHints(Expr &expr);

  // Expressions
  Expr *parseExpr();
  /// An expression that chooses: here '=' is a mistake for '=='.
  Expr *parseCondition();
  /// Whether a word of other languages stands for this operator here; it is reported.
  bool acceptForeign(std::string_view word, const char *spelling);
  /// Reports 'k += 1' and 'k++', whose operator has been taken.
  bool isForeignAssignment(const Expr &left, SourceRange op);
  Expr *parseBinary(unsigned minPrecedence);
  Expr *parseUnary();
  Expr *parsePostfix();
  Expr *parsePrimary();
  Expr *parseName();
  Expr *parseParenthesised();
  Expr *parseReduce();
  Expr *parseReduceOperands(Expr &reduce);
  Expr *parseInto(Expr &reduce);
  Expr *parseIndex(Expr &base);
  Expr *parseMember(Expr &base);
  Expr *parseCopy(Expr &copy);
  Expr *parseList();
  Expr *parseListElement();
  bool parseOperands(std::vector<Expr *> &operands, const char *where);
  Expr *newExpr(ExprKind kind, SourceRange begin);
  /// Sets range and height once the children are known; null if the tree became too high.
  Expr *complete(Expr *expr);

  const SourceManager &sources;
  DiagnosticEngine &diagnostics;
  std::vector<Token> tokens;
  std::unique_ptr<Module> module;
  size_t at = 0;
  unsigned nesting = 0;
  /// Nested too deeply: the rest of the file is not looked at, and nothing more is reported.
  bool gaveUp = false;
  /// In a postcondition a reduction has no destination.
  bool inPost = false;
  Decl *declaration = nullptr;        // that is being parsed
  AlgorithmDecl *algorithm = nullptr; // whose body is being parsed
  /// In a topology there are statements that exist nowhere else.
  bool inTopology = false;
};

} // namespace occl::frontend
