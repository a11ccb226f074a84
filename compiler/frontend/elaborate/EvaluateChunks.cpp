#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>

namespace occl::frontend {

bool Elaborator::evaluatePlace(const Expr &expr, Place &out) {
  // Only expressions that name a place; the resolver has checked the types.
  switch (expr.kind) {
  case ExprKind::Location:
    return evaluateLocation(expr, out);
  case ExprKind::Variable: {
    const Value &value = slot(expr.slot);
    out = value.chunk.place;
    return value.type != Type::Error;
  }
  case ExprKind::Conditional: {
    int64_t condition;
    return evaluateScalar(*expr.a, condition) && evaluatePlace(condition ? *expr.b : *expr.c, out);
  }
  case ExprKind::Call: {
    Value value;
    bool good = call(expr, value);
    out = value.chunk.place;
    return good;
  }
  default:
    return false; // no other kind is a location
  }
}

bool Elaborator::evaluateLocation(const Expr &expr, Place &out) {
  // buffer[rank][chunk], or [chunk..end]. The rank is checked before the chunks, whose number
  // depends on it.
  int64_t rank;
  if (!evaluateScalar(*expr.b, rank))
    return false;
  out = Place();
  // Input is the default of a Place.
  if (expr.a->kind == ExprKind::Output) {
    out.buffer = BufferKind::Output;
  } else if (expr.a->kind == ExprKind::Scratch) {
    // A scratch whose declaration failed has reported that.
    const Value &scratch = slot(expr.a->slot);
    if (scratch.type == Type::Error)
      return false;
    out.buffer = BufferKind::Scratch;
    out.scratch = static_cast<uint32_t>(scratch.scalar);
  }
  if (rank < 0 || rank >= layout.numRanks()) {
    error(DiagnosticCode::RankOutOfRange, expr.b->range,
          "there is no rank " + std::to_string(rank) + "; the ranks are 0 to " +
              std::to_string(static_cast<int64_t>(layout.numRanks()) - 1));
    return false;
  }
  out.rank = static_cast<uint32_t>(rank);
  if (!evaluateRange(*expr.c, expr.d, layout.size(out), expr, out))
    return false;
  if (options.observer)
    options.observer->onPlace(expr.range, layout, out);
  return true;
}

bool Elaborator::evaluateRange(const Expr &firstExpr, const Expr *lastExpr, uint64_t size,
                               const Expr &whole, Place &out) {
  int64_t first, last;
  // Without an end it is one chunk, and open: as a destination it takes as many as the source has.
  if (!evaluateScalar(firstExpr, first))
    return false;
  if (!lastExpr) {
    out.isOpen = true;
    last = first;
  } else {
    out.isOpen = false;
    if (!evaluateScalar(*lastExpr, last))
      return false;
    if (last <= first) {
      error(DiagnosticCode::EmptyRange, join(firstExpr.range, lastExpr->range),
            "the range " + std::to_string(first) + ".." + std::to_string(last) + " is empty");
      return false;
    }
    --last;
  }
  // Against the buffer's size; `last` cannot be below `first` any more.
  if (first < 0 || static_cast<uint64_t>(last) >= size || last < 0) {
    SourceRange place = lastExpr ? join(firstExpr.range, lastExpr->range) : firstExpr.range;
    std::string_view buffer = sources.text(whole.a->range);
    error(DiagnosticCode::ChunkOutOfRange, place,
          "there is no chunk " + std::to_string(first < 0 ? first : last) + " in " +
              std::string(buffer) +
              (whole.kind == ExprKind::Slice ? "" : "[" + std::to_string(out.rank) + "]") +
              (size == 0 ? ", which has no chunks"
                         : "; its chunks are 0 to " + std::to_string(size - 1)));
    return false;
  }
  out.index += static_cast<uint32_t>(first);
  out.count = static_cast<uint32_t>(last - first + 1);
  return true;
}

bool Elaborator::evaluateChunk(const Expr &expr, Chunk &out) {
  // A place used as a value is read at that point of the program.
  if (expr.type == Type::Location) {
    Place place;
    return evaluatePlace(expr, place) && read(place, expr, out);
  }
  switch (expr.kind) {
  // Everything else that has the type of a chunk.
  case ExprKind::Variable: {
    const Value &value = slot(expr.slot);
    out = value.chunk;
    return value.type != Type::Error;
  }
  case ExprKind::Conditional: {
    int64_t condition;
    return evaluateScalar(*expr.a, condition) && evaluateChunk(condition ? *expr.b : *expr.c, out);
  }
  case ExprKind::Call: {
    Value value;
    bool good = call(expr, value);
    out = value.chunk;
    return good;
  }
  case ExprKind::Slice:
    return evaluateSlice(expr, out);
  // A copy is a value as well: what it has stored.
  case ExprKind::Copy: {
    Operand source{{}, expr.a};
    Place destination;
    return evaluateChunk(*expr.a, source.chunk) && evaluatePlace(*expr.b, destination) &&
           checkFresh(source.chunk, *expr.a) && store({&source, 1}, destination, expr, out);
  }
  case ExprKind::Element: {
    ListRef holder;
    size_t index = 0;
    const List *list = findElement(expr, holder, index);
    if (list)
      out = list->chunks[index];
    return list != nullptr;
  }
  case ExprKind::Builtin:
    return evaluateGroup(expr, out);
  case ExprKind::Reduce:
    return evaluateReduce(expr, out);
  default:
    return false; // no other kind is a chunk
  }
}

bool Elaborator::evaluateSlice(const Expr &expr, Chunk &out) {
  Chunk whole;
  if (!evaluateChunk(*expr.a, whole))
    return false;
  Place part = whole.place;
  if (!evaluateRange(*expr.b, expr.c, whole.place.count, expr, part))
    return false;
  // Only the part must be as it was: the rest may have been overwritten.
  out = {part, whole.stamp, 0};
  if (!checkFresh(out, expr) || !spendOp(expr.range))
    return false;
  out.handle = sink.read(layout.range(part), expr.range);
  return true;
}

bool Elaborator::checkNumOperands(size_t mark, size_t count, const Expr &operand) {
  // A plan has fewer in one instruction; each holds memory until the last one is known.
  constexpr size_t kMaxOperands = 1u << 16;
  if (operandStack.size() - mark + count <= kMaxOperands)
    return true;
  error(DiagnosticCode::BudgetSpent, operand.range,
        "a reduction or group has at most " + std::to_string(kMaxOperands) + " operands");
  stopped = true;
  return false;
}

bool Elaborator::pushOperand(const Expr &operand, size_t mark) {
  if (operand.type == Type::ChunkList) {
    ListRef holder;
    const List *list = findList(operand, holder);
    if (!list || !checkNumOperands(mark, list->chunks.size(), operand))
      return false;
    for (const Chunk &chunk : list->chunks)
      operandStack.push_back({chunk, &operand});
    return true;
  }
  Chunk chunk;
  bool good = checkNumOperands(mark, 1, operand) && evaluateChunk(operand, chunk);
  operandStack.push_back({chunk, &operand});
  return good;
}

bool Elaborator::pushOperands(const Expr &expr) {
  // The operands' chunks go on a stack, not into a list for each reduction: reductions nest, and
  // there are many.
  size_t mark = operandStack.size();
  bool good = true;
  auto push = [&](const Expr &operand) {
    good &= pushOperand(operand, mark);
    return stopped ? Flow::Stop : Flow::Normal;
  };
  const size_t failedBefore = numFailedLoops;
  // Operands by a loop, or one by one.
  if (!expr.generators.list.empty())
    return forEach(expr.generators, [&] { return push(*expr.operands[0]); }) != Flow::Stop &&
           numFailedLoops == failedBefore && good;
  for (const Expr *operand : expr.operands)
    push(*operand);
  return good;
}

bool Elaborator::evaluateReduce(const Expr &expr, Chunk &out) {
  // Operands first, then the destination, as the language says; the stack above `mark` is this
  // reduction's.
  size_t mark = operandStack.size();
  bool good = pushOperands(expr);
  Place destination;
  good = good && evaluatePlace(*expr.b, destination);
  // Nothing below evaluates expressions: the span stays valid.
  std::span<const Operand> operands = std::span(operandStack).subspan(mark);
  if (good && operands.empty()) {
    error(DiagnosticCode::EmptyReduction, expr.range, "a reduction needs at least one operand");
    good = false;
  }
  // All operands still hold what was read, and have as many chunks as the first.
  for (size_t i = 0; i < operands.size() && good; ++i) {
    const auto &[chunk, operand] = operands[i];
    good = checkFresh(chunk, *operand);
    if (good && chunk.place.count != operands[0].chunk.place.count) {
      error(DiagnosticCode::CountMismatch, operand->range,
            "the operands of a reduction have " + std::to_string(operands[0].chunk.place.count) +
                " and " + std::to_string(chunk.place.count) + " chunks");
      good = false;
    }
  }
  good = good && store(operands, destination, expr, out);
  operandStack.resize(mark);
  return good;
}

bool Elaborator::evaluateGroup(const Expr &expr, Chunk &out) {
  // Chunks that lie one behind the other in one buffer become one value, which is read again as a
  // whole.
  size_t mark = operandStack.size();
  bool good = pushOperands(expr);
  std::span<const Operand> parts = std::span(operandStack).subspan(mark);
  if (good && parts.empty()) {
    error(DiagnosticCode::NotNeighbours, expr.range, "a group needs at least one chunk");
    good = false;
  }
  for (size_t i = 0; i < parts.size() && good; ++i) {
    const auto &[chunk, operand] = parts[i];
    const Place &place = chunk.place;
    good = checkFresh(chunk, *operand);
    if (!good || i == 0) {
      out = good ? chunk : Chunk();
      continue;
    }
    // Each part has to begin where the ones before end.
    Place whole = out.place;
    good = whole.buffer == place.buffer && whole.scratch == place.scratch &&
           whole.rank == place.rank && whole.index + whole.count == place.index;
    if (!good)
      error(DiagnosticCode::NotNeighbours, operand->range,
            "the chunks of a group lie one behind the other, and " + layout.describe(place) +
                " does not begin where " + layout.describe(whole) + " ends");
    out.place.count += place.count;
    out.place.isOpen = false;
  }
  // A group of one is that chunk itself.
  bool isOne = parts.size() == 1;
  operandStack.resize(mark);
  if (!good || isOne)
    return good;
  if (!spendOp(expr.range))
    return false;
  out = {out.place, trace.now(), sink.read(layout.range(out.place), expr.range)};
  return true;
}

} // namespace occl::frontend
