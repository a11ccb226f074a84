#include "compiler/frontend/sema/Resolver.h"
#include "support/suggestion.h"

#include <algorithm>

namespace occl::frontend {
namespace {

bool isInt(BinaryOp op) { return op >= BinaryOp::Add; }
bool isLogic(BinaryOp op) { return op <= BinaryOp::And; }

/// Functions of other languages, and what there is instead.
struct ForeignFunction {
  std::string_view name;
  const char *instead;
};

constexpr ForeignFunction kForeignFunctions[] = {
    {"range", "a range is written 'first..last', without 'last' itself"},
    {"print", "a program prints nothing; 'assert' says what must hold"},
    {"printf", "a program prints nothing; 'assert' says what must hold"},
    {"len", "the length of a list is 'list.length'"},
    {"not", "it is written '!'"},
};

/// What to add to "this is of type ..." where a chunk or location is wanted.
const char *makeLocation(Type wanted, Type got) {
  if (wanted != Type::Chunk && wanted != Type::Location)
    return "";
  if (got == Type::Row)
    return "; add '[chunk]'";
  if (got == Type::Buffer)
    return "; add '[rank][chunk]'";
  return wanted == Type::Location ? "; a location is written 'buffer[rank][chunk]'" : "";
}

} // namespace

void Resolver::unknownName(std::string_view name, SourceRange range, const char *kind,
                           std::vector<std::string_view> candidates, const std::string &instead) {
  std::string suggestion = support::suggest(name, candidates);
  std::string message = std::string("there is no ") + kind + " '" + std::string(name) + "' here";
  message +=
      suggestion.empty() && !instead.empty() ? "; " + instead : support::didYouMean(suggestion);
  Diagnostic &error = diagnostics.error(DiagnosticCode::UnknownName, range, message);
  if (!suggestion.empty())
    error.fixIt(range, suggestion);
}

void Resolver::unknownFunction(const Expr &call) {
  // Names that other languages have for something, with what it is called here.
  for (const ForeignFunction &foreign : kForeignFunctions) {
    if (call.name != foreign.name)
      continue;
    Diagnostic &error = diagnostics.error(DiagnosticCode::UnknownName, call.nameRange,
                                          "there is no function '" + std::string(call.name) +
                                              "' here; " + foreign.instead);
    // range(a, b) of Python can be written for the user.
    if (call.name == "range" && (call.operands.size() == 1 || call.operands.size() == 2))
      error.fixIt(call.range, (call.operands.size() == 1
                                   ? "0"
                                   : std::string(sources.text(call.operands.front()->range))) +
                                  ".." + std::string(sources.text(call.operands.back()->range)));
    return;
  }
  // Else the nearest name of all functions there are.
  std::vector<std::string_view> names(std::begin(kBuiltinNames), std::end(kBuiltinNames));
  for (const std::unique_ptr<Module> &module : program.modules)
    for (const FunctionDecl &decl : module->functions)
      names.push_back(decl.name);
  unknownName(call.name, call.nameRange, "function", std::move(names));
}

void Resolver::want(Expr *expr, Type wanted, const char *what) {
  resolveExpr(expr);
  check(*expr, wanted, what);
}

void Resolver::check(const Expr &expr, Type wanted, const char *what) {
  // A place may stand for a chunk, and the empty list for any list. What is wrong already is not
  // reported again.
  Type type = expr.type;
  bool isEmptyList = expr.kind == ExprKind::List && expr.operands.empty();
  bool fits = type == wanted || type == Type::Error || wanted == Type::Error ||
              (wanted == Type::Chunk && type == Type::Location) || (isEmptyList && isList(wanted));
  if (!fits)
    diagnostics.error(DiagnosticCode::WrongType, expr.range,
                      std::string(what) + " must be of type '" + nameOf(wanted) + "', this is " +
                          (type == Type::Row || type == Type::Buffer
                               ? "a " + std::string(nameOf(type))
                               : "of type '" + std::string(nameOf(type)) + "'") +
                          makeLocation(wanted, type));
}

Type Resolver::resolveExpr(Expr *expr) {
  // After many errors the rest of the file is not looked at.
  if (diagnostics.isFull())
    return Type::Error;
  // Bottom-up: an expression's type follows from those of its parts. Some kinds become others here,
  // when names are known.
  switch (expr->kind) {
  case ExprKind::Integer:
    expr->type = Type::Int;
    break;
  case ExprKind::Boolean:
    expr->type = Type::Bool;
    break;
  case ExprKind::Name:
    resolveName(*expr);
    break;
  case ExprKind::Negate:
    want(expr->a, expr->type = Type::Int, "what is negated");
    break;
  case ExprKind::Not:
    want(expr->a, expr->type = Type::Bool, "the operand of '!'");
    break;
  case ExprKind::Binary:
    resolveBinary(*expr);
    break;
  case ExprKind::Conditional:
    resolveConditional(*expr);
    break;
  case ExprKind::Index:
    resolveIndex(*expr);
    break;
  case ExprKind::Call:
    resolveCall(*expr);
    break;
  case ExprKind::Member:
    resolveMember(*expr);
    break;
  case ExprKind::Copy:
    resolveCopy(*expr);
    break;
  case ExprKind::Reduce:
    resolveReduce(*expr);
    break;
  case ExprKind::Method:
    resolveMethod(*expr);
    break;
  case ExprKind::List:
    resolveList(*expr);
    break;
  case ExprKind::Input:
  case ExprKind::Output:
    resolveBuffer(*expr);
    break;
  case ExprKind::TopologyQuery:
    resolveTopologyQuery(*expr);
    break;
  default: // resolved already
    break;
  }
  return expr->type;
}

void Resolver::resolveName(Expr &expr) {
  Variable *variable = scope.find(expr.name);
  if (variable) {
    variable->isUsed = true;
    noteUse(expr.range, variable->range);
    expr.kind = variable->type == Type::Buffer ? ExprKind::Scratch : ExprKind::Variable;
    expr.type = variable->type;
    expr.slot = variable->slot;
    return;
  }
  // What could have been meant: buffers and variables.
  std::vector<std::string_view> names{"input", "output"};
  for (const Variable &known : scope.all())
    names.push_back(known.name);
  // A name with an index behind it is probably a scratch that was not declared.
  bool isBuffer = sources.text(expr.range.file).substr(expr.range.end).starts_with('[');
  unknownName(expr.name, expr.range, "variable", std::move(names),
              isBuffer ? "scratch is declared by 'scratch " + std::string(expr.name) + "[slots];'"
                       : "");
}

void Resolver::resolveBuffer(Expr &expr) {
  expr.type = Type::Buffer;
  if (allowBuffers)
    return;
  diagnostics.error(DiagnosticCode::MisplacedDeclaration, expr.range,
                    "the buffers do not exist here yet");
  expr.type = Type::Error;
}

void Resolver::resolveBinary(Expr &expr) {
  // Arithmetic is of integers; `+` also joins lists, and `==` compares most types.
  bool isEquality = expr.op == BinaryOp::Equal || expr.op == BinaryOp::NotEqual;
  Type first = resolveExpr(expr.a), second = resolveExpr(expr.b);
  bool isOfLists = (expr.op == BinaryOp::Add && isList(first)) ||
                   (isEquality && (first == Type::IntList || first == Type::IntMatrix));
  // The empty list is one of whatever the other one is of.
  bool isEmptyList = expr.a->kind == ExprKind::List && expr.a->operands.empty();
  Type operand = isLogic(expr.op) || (isEquality && first == Type::Bool) ? Type::Bool
                 : !isOfLists                                            ? Type::Int
                 : isEmptyList && isList(second)                         ? second
                                                                         : first;
  // Both operands have the type that the first one suggests.
  std::string what = "an operand of '" + std::string(sources.text(expr.nameRange)) + "'";
  check(*expr.a, operand, what.c_str());
  check(*expr.b, operand, what.c_str());
  expr.type = isInt(expr.op) ? operand : Type::Bool;
}

void Resolver::resolveConditional(Expr &expr) {
  // Both values have the same type; a chunk and a place make a chunk, as a place is read then.
  want(expr.a, Type::Bool, "the condition");
  Type first = resolveExpr(expr.b), second = resolveExpr(expr.c);
  bool areChunks = (first == Type::Chunk && second == Type::Location) ||
                   (first == Type::Location && second == Type::Chunk);
  if (first == second || second == Type::Error)
    expr.type = first;
  else if (first == Type::Error)
    expr.type = second;
  else if (areChunks)
    expr.type = Type::Chunk;
  else
    diagnostics.error(DiagnosticCode::WrongType, expr.range,
                      std::string("the two values of '?' are of different types: '") +
                          nameOf(first) + "' and '" + nameOf(second) + "'");
}

void Resolver::resolveIndex(Expr &expr) {
  // An index means something else for each type: the parser could not know.
  Type base = resolveExpr(expr.a);
  want(expr.b, Type::Int, base == Type::Buffer ? "the rank" : "the index");
  if (expr.c)
    want(expr.c, Type::Int, "the end of the range");
  // buffer[rank] is a row, which needs another index.
  switch (base) {
  case Type::Buffer:
    expr.type = expr.c ? Type::Error : Type::Row;
    if (expr.c)
      diagnostics.error(DiagnosticCode::WrongType, expr.range,
                        "a range of ranks is not a place; use a loop over the ranks");
    return;
  // row[chunk] is a place: the two index expressions become one.
  case Type::Row: {
    Expr *row = expr.a;
    expr.kind = ExprKind::Location;
    expr.type = Type::Location;
    expr.d = expr.c;
    expr.c = expr.b;
    expr.b = row->b;
    expr.a = row->a;
    return;
  }
  case Type::Chunk:
    expr.kind = ExprKind::Slice;
    expr.type = Type::Chunk;
    return;
  case Type::IntList:
  case Type::IntMatrix:
  case Type::ChunkList:
    expr.kind = expr.c ? ExprKind::Sublist : ExprKind::Element;
    expr.type = expr.c ? base : elementOf(base);
    return;
  case Type::Error:
    return;
  default:
    diagnostics.error(DiagnosticCode::WrongType, expr.range,
                      "a value of type '" + std::string(nameOf(base)) + "' has no index");
  }
}

void Resolver::resolveCopy(Expr &expr) {
  want(expr.a, Type::Chunk, "what is copied");
  want(expr.b, Type::Location, "the destination");
  if (expr.hints)
    resolveHints(*expr.hints);
  expr.type = Type::Chunk;
}

void Resolver::resolveReduce(Expr &expr) {
  // Operands may come from loops, whose variables are visible in them only.
  if (expr.operands.empty())
    diagnostics.error(DiagnosticCode::EmptyReduction, expr.range,
                      "a reduction needs at least one operand");
  size_t mark = scope.open();
  resolveGenerators(expr.generators);
  for (Expr *operand : expr.operands)
    if (resolveExpr(operand) != Type::ChunkList)
      check(*operand, Type::Chunk, "an operand of 'reduce'");
  closeScope(mark, expr.operands.empty() ? expr.range : expr.operands.back()->range);
  // Where it is stored is evaluated outside of the loops.
  if (expr.b)
    want(expr.b, Type::Location, "the destination");
  if (expr.hints)
    resolveHints(*expr.hints);
  expr.type = Type::Chunk;
}

void Resolver::resolveCall(Expr &expr) {
  // Functions of the program come first; a name that is none of them may be a built-in one.
  auto known = program.functions.find(expr.name);
  if (known == program.functions.end()) {
    if (resolveBuiltin(expr))
      return;
    // The arguments are resolved anyway, so that names in them count as used.
    for (Expr *operand : expr.operands)
      resolveExpr(operand);
    return unknownFunction(expr);
  }
  const FunctionDecl &decl = *known->second;
  expr.function = &decl;
  noteUse(expr.nameRange, decl.nameRange);
  expr.type = decl.result;
  if (expr.operands.size() != decl.params.size())
    diagnostics
        .error(DiagnosticCode::WrongArguments, expr.range,
               "'" + std::string(decl.name) + "' takes " + std::to_string(decl.params.size()) +
                   " arguments, not " + std::to_string(expr.operands.size()))
        .note(decl.nameRange, "declared here");
  // Too many arguments are reported once, and still resolved.
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    if (i < decl.params.size())
      want(expr.operands[i], decl.params[i].type,
           ("the argument for '" + std::string(decl.params[i].name) + "'").c_str());
    else
      resolveExpr(expr.operands[i]);
  }
}

} // namespace occl::frontend
