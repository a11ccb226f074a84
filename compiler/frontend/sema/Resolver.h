// Names and types of one program. Internal: declarations and statements (Resolver.cpp), expressions
// (ResolveExpressions.cpp), lists, properties and built-in functions (ResolveLists.cpp).
#pragma once

#include "compiler/frontend/sema/Program.h"
#include "compiler/frontend/sema/Scope.h"

namespace occl::frontend {

class Resolver {
public:
  Resolver(Program &program, const SourceManager &sources, DiagnosticEngine &diagnostics,
           NameTable *names)
      : program(program), sources(sources), diagnostics(diagnostics), names(names) {}

  void resolveModule(Module &module);

  /// Of the functions that the language brings along.
  static constexpr std::string_view kBuiltinNames[] = {
#define OCCL_BUILTIN(enumerator, name, least, most, signature, summary) name,
#include "compiler/frontend/sema/Vocabulary.def"
  };

private:
  // Declarations
  void resolveFunction(FunctionDecl &decl);
  void resolveCollective(CollectiveDecl &decl);
  void resolveAlgorithm(AlgorithmDecl &decl);
  void resolveTopology(TopologyDecl &decl);
  void resolveTopologyItem(const TopologyItem &item);
  void resolveTopologyQuery(Expr &expr);
  /// Reports a statement that does something in an algorithm only.
  void checkPlaced(const Stmt &statement);
  void resolveArguments(AlgorithmDecl &decl);
  void bindArguments(AlgorithmDecl &decl);
  void resolvePre(PreItem &pre);
  void resolvePost(PostItem &post);
  void resolveRequirement(Requirement &requirement);
  void resolveRankItem(RankItem &item, const CollectiveDecl &decl, const char *word);
  void declareParams(Decl &decl, bool numbersOnly);

  // Statements
  void resolveBody(std::vector<Stmt *> &body, SourceRange block);
  /// Of the variables that were declared since the mark.
  void warnOfUnused(size_t mark);
  void resolveStatement(Stmt &statement);
  void resolveBinding(Stmt &statement);
  void resolveAssign(Stmt &statement);
  void resolveScratch(Stmt &statement);
  void resolveReturn(Stmt &statement);
  void resolveEffect(Stmt &statement);
  void resolveHints(const HintArguments &hints);
  void resolveWhen(Stmt &statement);
  void resolveVersions(AlgorithmDecl &decl);
  /// Declares the loop variables in the scope that the caller has opened.
  void resolveGenerators(Generators &generators);

  // Expressions; each sets the type of the expression.
  Type resolveExpr(Expr *expr);
  void resolveName(Expr &expr);
  void resolveBuffer(Expr &expr);
  void resolveBinary(Expr &expr);
  void resolveConditional(Expr &expr);
  void resolveIndex(Expr &expr);
  void resolveMember(Expr &expr);
  void resolveCopy(Expr &expr);
  void resolveReduce(Expr &expr);
  void resolveCall(Expr &expr);
  bool resolveBuiltin(Expr &expr);
  Type resolveBuiltinArguments(Expr &expr);
  void resolveMethod(Expr &expr);
  void resolveList(Expr &expr);
  Type resolveListElement(Expr &element);
  /// Resolves, and reports if the type is not `wanted`. A location is a chunk where a chunk is
  /// wanted.
  void want(Expr *expr, Type wanted, const char *what);
  /// The same for an expression that is resolved.
  void check(const Expr &expr, Type wanted, const char *what);
  /// `instead` is said where none of the candidates is like the name.
  void unknownName(std::string_view name, SourceRange range, const char *kind,
                   std::vector<std::string_view> candidates, const std::string &instead = "");
  void unknownFunction(const Expr &call);

  Variable *declare(std::string_view name, SourceRange range, Type type, NameKind kind);
  /// Of a name in the text: the table of names, if there is one, is told what it means.
  void noteUse(SourceRange place, SourceRange definition) {
    if (names)
      names->use(place, definition);
  }
  /// The variable is visible only from there on: its own value cannot name it.
  static void showFrom(const Variable &variable, uint32_t offset) {
    if (variable.definition)
      variable.definition->visible.begin = offset;
  }
  /// Closes a scope that ends where `place` does.
  void closeScope(size_t mark, SourceRange place);
  uint32_t slotOf(const Variable *variable) const { return variable ? variable->slot : 0; }

  Program &program;
  const SourceManager &sources;
  DiagnosticEngine &diagnostics;
  NameTable *names;                  // may be null
  const Decl *declaration = nullptr; // that is being resolved
  Scope scope;
  const FunctionDecl *function = nullptr; // whose body is being resolved
  unsigned blockDepth = 0;
  bool allowBuffers = false;
  bool inVersion = false;
  bool inTopology = false;
};

} // namespace occl::frontend
