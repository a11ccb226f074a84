#include "compiler/frontend/sema/Resolver.h"

#include <algorithm>

namespace occl::frontend {
namespace {

struct BuiltinInfo {
  Builtin builtin;
  size_t minArguments, maxArguments;
};

/// In the order of Resolver::kBuiltinNames.
constexpr BuiltinInfo kBuiltins[] = {
#define OCCL_BUILTIN(enumerator, name, least, most, signature, summary)                            \
  {Builtin::enumerator, least, most},
#include "compiler/frontend/sema/Vocabulary.def"
};
static_assert(std::size(kBuiltins) == std::size(Resolver::kBuiltinNames));

struct MemberInfo {
  std::string_view name;
  Member member;
  bool isOfChunk, isOfList, isOfOrigin;
  Type type;
};

constexpr MemberInfo kMembers[] = {
#define OCCL_MEMBER(enumerator, name, ofChunk, ofList, ofOrigin, type, summary)                    \
  {name, Member::enumerator, ofChunk, ofList, ofOrigin, Type::type},
#include "compiler/frontend/sema/Vocabulary.def"
};

} // namespace

void Resolver::resolveMember(Expr &expr) {
  // The table of members says of which types each is, and of which type it is itself.
  Type base = resolveExpr(expr.a);
  auto known = std::find_if(std::begin(kMembers), std::end(kMembers),
                            [&](const MemberInfo &entry) { return entry.name == expr.name; });
  if (known == std::end(kMembers)) {
    std::vector<std::string_view> names{"copy", "has"};
    for (const MemberInfo &info : kMembers)
      names.push_back(info.name);
    return unknownName(expr.name, expr.nameRange, "property", std::move(names));
  }
  expr.value = static_cast<int64_t>(known->member);
  expr.type = known->type;
  // A member of the wrong type has a type nevertheless, so that no more errors follow.
  bool isChunk = base == Type::Chunk || base == Type::Location;
  bool fits = (isChunk && known->isOfChunk) || (isList(base) && known->isOfList) ||
              (base == Type::Origin && known->isOfOrigin) || base == Type::Error;
  if (!fits)
    diagnostics.error(
        DiagnosticCode::WrongType, expr.range,
        std::string(known->isOfChunk ? "only chunks and places have" : "only lists have") +
            (known->member == Member::Origin ? " an '" : " a '") + std::string(expr.name) + "'");
}

void Resolver::resolveMethod(Expr &expr) {
  // Operations on a value with arguments: `has` is the only one that is left here, as `copy` has
  // its own syntax.
  resolveExpr(expr.a);
  if (expr.name != "has") {
    for (Expr *operand : expr.operands)
      resolveExpr(operand);
    return unknownName(expr.name, expr.nameRange, "operation", {"copy", "has"});
  }
  check(*expr.a, Type::Chunk, "what is asked");
  for (Expr *operand : expr.operands)
    want(operand, Type::Int, "the argument");
  if (expr.operands.size() != 2)
    diagnostics.error(DiagnosticCode::WrongArguments, expr.range,
                      "'has' takes 2 arguments, a rank and a chunk of its input, not " +
                          std::to_string(expr.operands.size()));
  expr.kind = ExprKind::Has;
  expr.type = expr.operands.size() == 2 ? Type::Bool : Type::Error;
}

Type Resolver::resolveListElement(Expr &element) {
  // A place in a list is read, so the element is a chunk.
  if (element.kind != ExprKind::Range) {
    Type type = resolveExpr(&element);
    return type == Type::Location ? Type::Chunk : type;
  }
  want(element.a, Type::Int, "the lower bound");
  want(element.b, Type::Int, "the upper bound");
  return element.type = Type::Int;
}

void Resolver::resolveList(Expr &expr) {
  // The first element decides the type of the list, the others have to agree. Of an empty list it
  // does not matter.
  bool isComprehension = !expr.generators.list.empty();
  size_t mark = scope.open();
  resolveGenerators(expr.generators);
  Type element = expr.operands.empty() ? Type::Int : Type::Error;
  for (Expr *operand : expr.operands) {
    Type type = resolveListElement(*operand);
    if (element == Type::Error)
      element = type;
    else
      check(*operand, element, "an element of this list");
  }
  for (size_t i = mark; i < scope.all().size(); ++i)
    showFrom(scope.all()[i], expr.range.begin); // the element stands before the loop
  closeScope(mark, expr.range);
  if (isComprehension && expr.operands[0]->kind == ExprKind::Range)
    diagnostics.error(DiagnosticCode::WrongType, expr.operands[0]->range,
                      "a range is no element here; write '[first .. last]' for a list");
  expr.type = listOf(element);
  if (expr.type == Type::Error && element != Type::Error)
    diagnostics.error(DiagnosticCode::WrongType, expr.operands[0]->range,
                      "a list has elements of type 'int', '[int]' or 'chunk', this is of type '" +
                          std::string(nameOf(element)) + "'");
}

Type Resolver::resolveBuiltinArguments(Expr &expr) {
  // The type of a built-in function's result may depend on that of its first argument.
  auto builtin = static_cast<Builtin>(expr.value);
  Expr *first = expr.operands.empty() ? nullptr : expr.operands[0];
  Type type = first ? resolveExpr(first) : Type::Error;
  auto wantRest = [&](Type wanted) {
    for (size_t i = 1; i < expr.operands.size(); ++i)
      want(expr.operands[i], wanted, "the argument");
  };
  auto wantFirst = [&](Type wanted) {
    if (first)
      check(*first, wanted, "the argument");
  };
  // Each function with the types that it takes.
  switch (builtin) {
  case Builtin::Min:
  case Builtin::Max:
    if (type != Type::IntList || expr.operands.size() > 1)
      wantFirst(Type::Int);
    wantRest(Type::Int);
    return Type::Int;
  case Builtin::Log2:
  case Builtin::Pow:
    wantFirst(Type::Int);
    wantRest(Type::Int);
    return Type::Int;
  case Builtin::Sum:
  case Builtin::Contains:
  case Builtin::Position:
  case Builtin::Offsets:
    wantFirst(Type::IntList);
    wantRest(Type::Int);
    return builtin == Builtin::Contains  ? Type::Bool
           : builtin == Builtin::Offsets ? Type::IntList
                                         : Type::Int;
  case Builtin::Reverse:
    if (!isList(type))
      wantFirst(Type::IntList);
    return type;
  case Builtin::Split:
    wantFirst(Type::Chunk);
    wantRest(Type::Int);
    return Type::ChunkList;
  case Builtin::Group:
    if (type != Type::ChunkList)
      wantFirst(Type::Chunk);
    for (size_t i = 1; i < expr.operands.size(); ++i)
      if (resolveExpr(expr.operands[i]) != Type::ChunkList)
        check(*expr.operands[i], Type::Chunk, "the argument");
    return Type::Chunk;
  }
  return Type::Error;
}

bool Resolver::resolveBuiltin(Expr &expr) {
  auto name = std::find(std::begin(kBuiltinNames), std::end(kBuiltinNames), expr.name);
  if (name == std::end(kBuiltinNames))
    return false;
  const BuiltinInfo &info = kBuiltins[name - std::begin(kBuiltinNames)];
  expr.kind = ExprKind::Builtin;
  expr.value = static_cast<int64_t>(info.builtin);
  expr.type = resolveBuiltinArguments(expr);
  // The number of arguments is checked after their types, so that one mistake has one message.
  if (expr.operands.size() < info.minArguments || expr.operands.size() > info.maxArguments) {
    diagnostics.error(DiagnosticCode::WrongArguments, expr.range,
                      "'" + std::string(*name) + "' takes " +
                          (info.maxArguments > 2 ? "1 to " : "") +
                          std::to_string(info.maxArguments) +
                          (info.maxArguments == 1 ? " argument" : " arguments") + ", not " +
                          std::to_string(expr.operands.size()));
    expr.type = Type::Error;
  }
  return true;
}

} // namespace occl::frontend
