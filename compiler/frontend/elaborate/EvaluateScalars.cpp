#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>
#include <bit>

namespace occl::frontend {

bool Elaborator::overflow(const Expr &expr) {
  error(DiagnosticCode::Overflow, expr.range, "the result does not fit 64 bits" + valuesIn(expr));
  return false;
}

bool Elaborator::evaluateScalar(const Expr &expr, int64_t &out) {
  // Integers and truth values are both 64-bit numbers; types were checked before.
  switch (expr.kind) {
  case ExprKind::Integer:
  case ExprKind::Boolean:
    out = expr.value;
    return true;
  case ExprKind::Variable: {
    const Value &value = slot(expr.slot);
    out = value.scalar;
    return value.type != Type::Error;
  }
  // -(-2^63) does not fit.
  case ExprKind::Negate:
    return evaluateScalar(*expr.a, out) &&
           (!__builtin_sub_overflow(int64_t{0}, out, &out) || overflow(expr));
  case ExprKind::Not:
    if (!evaluateScalar(*expr.a, out))
      return false;
    out = !out;
    return true;
  case ExprKind::Binary:
    return isList(expr.a->type) ? evaluateListComparison(expr, out) : evaluateBinary(expr, out);
  case ExprKind::Conditional:
    return evaluateScalar(*expr.a, out) && evaluateScalar(out ? *expr.b : *expr.c, out);
  case ExprKind::Builtin:
    return evaluateBuiltin(expr, out);
  case ExprKind::Member:
    return evaluateMember(expr, out);
  case ExprKind::Has:
    return evaluateHas(expr, out);
  case ExprKind::Element: {
    ListRef holder;
    size_t index = 0;
    const List *list = findElement(expr, holder, index);
    if (list)
      out = list->ints[index];
    return list != nullptr;
  }
  case ExprKind::TopologyQuery:
    return evaluateTopologyQuery(expr, out);
  case ExprKind::Call: {
    Value value;
    if (!call(expr, value))
      return false;
    out = value.scalar;
    return true;
  }
  default:
    return false; // no other kind has a scalar type
  }
}

bool Elaborator::evaluateBinary(const Expr &expr, int64_t &out) {
  // `&&` and `||` do not evaluate their right side if the left one decides.
  int64_t a, b;
  if (!evaluateScalar(*expr.a, a))
    return false;
  bool isDecided = (expr.op == BinaryOp::And && !a) || (expr.op == BinaryOp::Or && a);
  if (isDecided) {
    out = a;
    return true;
  }
  if (!evaluateScalar(*expr.b, b))
    return false;
  // Comparisons cannot fail; arithmetic may overflow, which is an error with the values.
  switch (expr.op) {
  case BinaryOp::Or:
  case BinaryOp::And:
    out = b;
    return true;
  case BinaryOp::Equal:
    out = a == b;
    return true;
  case BinaryOp::NotEqual:
    out = a != b;
    return true;
  case BinaryOp::Less:
    out = a < b;
    return true;
  case BinaryOp::LessEqual:
    out = a <= b;
    return true;
  case BinaryOp::Greater:
    out = a > b;
    return true;
  case BinaryOp::GreaterEqual:
    out = a >= b;
    return true;
  case BinaryOp::Add:
    return !__builtin_add_overflow(a, b, &out) || overflow(expr);
  case BinaryOp::Subtract:
    return !__builtin_sub_overflow(a, b, &out) || overflow(expr);
  case BinaryOp::Multiply:
    return !__builtin_mul_overflow(a, b, &out) || overflow(expr);
  case BinaryOp::Divide:
  case BinaryOp::Remainder:
    return evaluateDivision(expr, a, b, out);
  }
  return false;
}

bool Elaborator::evaluateDivision(const Expr &expr, int64_t a, int64_t b, int64_t &out) {
  // Rounded downwards, and a remainder from 0 to b - 1: (i - 1) % n wraps around as one expects of
  // an index. Divisors are positive, as no convention of negative ones keeps all of that together
  // with a == (a / b) * b + a % b; nothing can overflow then.
  if (b <= 0) {
    error(DiagnosticCode::BadDivisor, expr.range,
          (b == 0 ? "division by zero" : "division by a negative number, " + std::to_string(b)) +
              valuesIn(expr));
    return false;
  }
  const int64_t quotient = a / b, remainder = a % b;
  if (expr.op == BinaryOp::Remainder)
    out = remainder < 0 ? remainder + b : remainder;
  else
    out = remainder < 0 ? quotient - 1 : quotient;
  return true;
}

bool Elaborator::evaluateBuiltin(const Expr &expr, int64_t &out) {
  // min and max take any number of arguments, or a list; pow and log2 are of integers.
  auto builtin = static_cast<Builtin>(expr.value);
  if (isList(expr.operands[0]->type))
    return evaluateListBuiltin(expr, out);
  if (!evaluateScalar(*expr.operands[0], out))
    return false;
  for (size_t i = 1; i < expr.operands.size(); ++i) {
    int64_t next;
    if (!evaluateScalar(*expr.operands[i], next))
      return false;
    if (builtin == Builtin::Pow)
      return evaluatePower(expr, out, next, out);
    out = builtin == Builtin::Min ? std::min(out, next) : std::max(out, next);
  }
  if (builtin != Builtin::Log2)
    return true;
  if (out < 1) {
    error(DiagnosticCode::OutOfDomain, expr.range,
          "log2 needs a positive number, not " + std::to_string(out));
    return false;
  }
  // Rounded downwards: the position of the highest bit.
  out = std::bit_width(static_cast<uint64_t>(out)) - 1;
  return true;
}

bool Elaborator::evaluatePower(const Expr &expr, int64_t base, int64_t exponent, int64_t &out) {
  if (exponent < 0) {
    error(DiagnosticCode::OutOfDomain, expr.range,
          "pow needs an exponent that is not negative, not " + std::to_string(exponent));
    return false;
  }
  bool isSmall = base >= -1 && base <= 1; // the only bases whose large powers fit
  if (isSmall && exponent > 2)
    exponent = exponent % 2 == 0 ? 2 : 1;
  out = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(out, base, &out))
      return overflow(expr);
  return true;
}

bool Elaborator::evaluate(const Expr &expr, Type wanted, Value &out) {
  // By the type that is wanted: a place is read where a chunk is wanted.
  bool good = false;
  switch (wanted) {
  case Type::Int:
  case Type::Bool:
    good = evaluateScalar(expr, out.scalar);
    break;
  case Type::Chunk:
    good = evaluateChunk(expr, out.chunk);
    break;
  case Type::Location:
    good = evaluatePlace(expr, out.chunk.place);
    break;
  case Type::IntList:
  case Type::IntMatrix:
  case Type::ChunkList:
    good = evaluateList(expr, out.list);
    break;
  default:
    break;
  }
  // An error is a value without a type; what uses it reports nothing more.
  out.type = good ? wanted : Type::Error;
  return good;
}

bool Elaborator::call(const Expr &expr, Value &out) {
  // Recursion is allowed and bounded; the limit is far above what programs need and far below what
  // the stack holds.
  constexpr unsigned kMaxCalls = 32;
  const FunctionDecl &function = *expr.function;
  if (callDepth == kMaxCalls) {
    error(DiagnosticCode::TooManyCalls, expr.range,
          "calls are nested more than " + std::to_string(kMaxCalls) + " deep")
        .note(function.nameRange, "'" + std::string(function.name) + "' is declared here");
    stopped = true;
    return false;
  }
  if (!spendSteps(1, expr.range))
    return false;
  // Arguments are evaluated in the caller's frame.
  std::vector<Value> arguments(function.params.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!evaluate(*expr.operands[i], function.params[i].type, arguments[i]))
      return false;
    show(function.params[i].nameRange, arguments[i]);
  }
  // The callee's frame lies behind the caller's on one stack of values.
  Frame caller = frame;
  Type callerReturns = returnType;
  returnType = function.result;
  frame = stack.size();
  stack.resize(frame + function.numSlots);
  std::move(arguments.begin(), arguments.end(), stack.begin() + static_cast<ptrdiff_t>(frame));
  ++callDepth;
  // A return leaves its value here.
  returned = Value();
  Flow flow = execute(function.body);
  --callDepth;
  stack.resize(frame);
  frame = caller;
  returnType = callerReturns;
  out = std::move(returned);
  // Stop means that an error has ended the execution.
  if (function.result == Type::Void || flow == Flow::Stop)
    return flow != Flow::Stop;
  if (flow != Flow::Return)
    error(DiagnosticCode::NoReturn, expr.range,
          "'" + std::string(function.name) + "' ends without returning a value")
        .note(function.nameRange, "declared here");
  return out.type != Type::Error;
}

} // namespace occl::frontend
