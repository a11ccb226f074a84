#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>

namespace occl::frontend {

bool List::operator==(const List &other) const {
  auto same = [](const ListRef &a, const ListRef &b) { return *a == *b; };
  return ints == other.ints &&
         std::equal(rows.begin(), rows.end(), other.rows.begin(), other.rows.end(), same);
}

void Elaborator::takeElement(const List &list, size_t index, Value &out) {
  if (!list.ints.empty())
    out.scalar = list.ints[index];
  else if (!list.rows.empty())
    out.list = list.rows[index];
  else
    out.chunk = list.chunks[index];
}

bool Elaborator::spendElements(uint64_t count, SourceRange place) {
  // An element takes memory for as long as the list lives, so it counts more than a step.
  constexpr uint64_t kStepsPerElement = 4;
  constexpr uint64_t kMaxElements = 1u << 22;
  if (count > kMaxElements) {
    error(DiagnosticCode::BadList, place,
          "this list would have " + std::to_string(count) + " elements; at most " +
              std::to_string(kMaxElements) + " are possible");
    return false;
  }
  return spendSteps(count * kStepsPerElement, place);
}

const List *Elaborator::findList(const Expr &expr, ListRef &holder) {
  // A variable's list is used where it lies; only what is computed needs a holder to keep it alive.
  if (expr.kind == ExprKind::Variable) {
    const Value &value = slot(expr.slot);
    return value.type == Type::Error ? nullptr : value.list.get();
  }
  if (expr.kind != ExprKind::Element)
    return evaluateList(expr, holder) ? holder.get() : nullptr;
  size_t index = 0;
  const List *matrix = findElement(expr, holder, index);
  return matrix ? matrix->rows[index].get() : nullptr;
}

const List *Elaborator::findElement(const Expr &expr, ListRef &holder, size_t &index) {
  // The index is checked here, for elements of all kinds of lists.
  const List *list = findList(*expr.a, holder);
  int64_t wanted;
  if (!list || !evaluateScalar(*expr.b, wanted))
    return nullptr;
  index = static_cast<size_t>(wanted);
  if (wanted >= 0 && index < list->size())
    return list;
  error(DiagnosticCode::ElementOutOfRange, expr.b->range,
        "there is no element " + std::to_string(wanted) + " in this list" +
            (list->size() == 0 ? ", which is empty"
                               : "; its elements are 0 to " + std::to_string(list->size() - 1)));
  return nullptr;
}

bool Elaborator::evaluateList(const Expr &expr, ListRef &out) {
  // Lists are shared and never changed: what would change one makes another.
  switch (expr.kind) {
  case ExprKind::Variable:
    out = slot(expr.slot).list;
    return slot(expr.slot).type != Type::Error;
  case ExprKind::Conditional: {
    int64_t condition;
    return evaluateScalar(*expr.a, condition) && evaluateList(condition ? *expr.b : *expr.c, out);
  }
  case ExprKind::Call: {
    Value value;
    bool good = call(expr, value);
    out = std::move(value.list);
    return good;
  }
  case ExprKind::Element: {
    ListRef holder;
    size_t index = 0;
    const List *matrix = findElement(expr, holder, index);
    if (matrix)
      out = matrix->rows[index];
    return matrix != nullptr;
  }
  case ExprKind::Sublist:
    return evaluateSublist(expr, out);
  case ExprKind::List:
    return buildList(expr, out);
  case ExprKind::Binary:
    return concatenate(expr, out);
  case ExprKind::Builtin:
    return evaluateListResult(expr, out);
  default:
    return false; // no other kind is a list
  }
}

bool Elaborator::appendElement(const Expr &expr, Type element, List &list) {
  // A range in a list literal stands for its numbers. The difference is computed without overflow,
  // as bounds may be far apart.
  if (expr.kind == ExprKind::Range) {
    int64_t first, last;
    if (!evaluateScalar(*expr.a, first) || !evaluateScalar(*expr.b, last))
      return false;
    uint64_t count = first < last ? static_cast<uint64_t>(last) - static_cast<uint64_t>(first) : 0;
    if (!spendElements(count, expr.range))
      return false;
    for (int64_t value = first; value < last; ++value)
      list.ints.push_back(value);
    return true;
  }
  // Any other element is a value of the list's element type.
  Value value;
  if (!spendElements(1, expr.range) || !evaluate(expr, element, value))
    return false;
  if (element == Type::Int)
    list.ints.push_back(value.scalar);
  else if (element == Type::Chunk)
    list.chunks.push_back(value.chunk);
  else
    list.rows.push_back(std::move(value.list));
  return true;
}

bool Elaborator::buildList(const Expr &expr, ListRef &out) {
  // Elements one by one, or by a loop: `[i * 2 for i in 0..n]`.
  auto list = std::make_shared<List>();
  Type element = elementOf(expr.type);
  bool good = true;
  if (!expr.generators.list.empty()) {
    // A loop that failed has reported why, and the list is wrong then.
    const size_t failedBefore = numFailedLoops;
    forEach(expr.generators, [&] {
      good = good && appendElement(*expr.operands[0], element, *list);
      return good && !stopped ? Flow::Normal : Flow::Stop;
    });
    good &= numFailedLoops == failedBefore;
  } else {
    for (size_t i = 0; i < expr.operands.size() && good; ++i)
      good = appendElement(*expr.operands[i], element, *list);
  }
  out = std::move(list);
  return good && !stopped;
}

bool Elaborator::concatenate(const Expr &expr, ListRef &out) {
  // One of the three kinds of elements is used, the others are empty; so all are joined.
  ListRef a, b;
  if (!evaluateList(*expr.a, a) || !evaluateList(*expr.b, b) ||
      !spendElements(a->size() + b->size(), expr.range))
    return false;
  auto list = std::make_shared<List>(*a);
  list->ints.insert(list->ints.end(), b->ints.begin(), b->ints.end());
  list->rows.insert(list->rows.end(), b->rows.begin(), b->rows.end());
  list->chunks.insert(list->chunks.end(), b->chunks.begin(), b->chunks.end());
  out = std::move(list);
  return true;
}

bool Elaborator::evaluateSublist(const Expr &expr, ListRef &out) {
  // A range of the list's elements; an empty one at the end is allowed.
  ListRef whole;
  int64_t first, last;
  if (!evaluateList(*expr.a, whole) || !evaluateScalar(*expr.b, first) ||
      !evaluateScalar(*expr.c, last))
    return false;
  auto size = static_cast<int64_t>(whole->size());
  if (first < 0 || first > last || last > size) {
    error(DiagnosticCode::ElementOutOfRange, join(expr.b->range, expr.c->range),
          "the range " + std::to_string(first) + ".." + std::to_string(last) +
              " does not lie in this list, which has " + std::to_string(size) + " elements");
    return false;
  }
  // Paid for before it is copied.
  if (!spendElements(static_cast<uint64_t>(last - first), expr.range))
    return false;
  auto part = [&](const auto &elements) {
    using Elements = std::decay_t<decltype(elements)>;
    return elements.empty() ? Elements()
                            : Elements(elements.begin() + first, elements.begin() + last);
  };
  auto list = std::make_shared<List>();
  list->ints = part(whole->ints);
  list->rows = part(whole->rows);
  list->chunks = part(whole->chunks);
  out = std::move(list);
  return true;
}

bool Elaborator::evaluateListComparison(const Expr &expr, int64_t &out) {
  ListRef holderA, holderB;
  const List *a = findList(*expr.a, holderA);
  const List *b = a ? findList(*expr.b, holderB) : nullptr;
  if (!b || !spendSteps(std::min(a->size(), b->size()), expr.range))
    return false;
  out = (*a == *b) == (expr.op == BinaryOp::Equal);
  return true;
}

bool Elaborator::evaluateListBuiltin(const Expr &expr, int64_t &out) {
  // The list first, then a value if the function takes one.
  ListRef holder;
  const List *list = findList(*expr.operands[0], holder);
  int64_t wanted = 0;
  bool hasValue = expr.operands.size() > 1;
  if (!list || (hasValue && !evaluateScalar(*expr.operands[1], wanted)) ||
      !spendSteps(list->size(), expr.range))
    return false;
  const std::vector<int64_t> &ints = list->ints;
  auto builtin = static_cast<Builtin>(expr.value);
  auto found = std::find(ints.begin(), ints.end(), wanted);
  switch (builtin) {
  // A sum may overflow, which is an error at the call and not a wrong number.
  case Builtin::Sum:
    out = 0;
    for (int64_t value : ints)
      if (__builtin_add_overflow(out, value, &out))
        return overflow(expr);
    return true;
  case Builtin::Contains:
    out = found != ints.end();
    return true;
  // position() of what is not there has no answer; contains() asks first.
  case Builtin::Position:
    if (found == ints.end())
      error(DiagnosticCode::OutOfDomain, expr.range,
            std::to_string(wanted) + " is not in this list");
    out = found - ints.begin();
    return found != ints.end();
  default:
    break;
  }
  // min and max, which an empty list has not.
  if (ints.empty()) {
    error(DiagnosticCode::OutOfDomain, expr.range,
          "an empty list has no least or greatest element");
    return false;
  }
  out = builtin == Builtin::Min ? *std::min_element(ints.begin(), ints.end())
                                : *std::max_element(ints.begin(), ints.end());
  return true;
}

bool Elaborator::evaluateListResult(const Expr &expr, ListRef &out) {
  // split() makes chunks; the others make lists out of lists.
  auto builtin = static_cast<Builtin>(expr.value);
  if (builtin == Builtin::Split)
    return splitChunk(expr, out);
  ListRef from;
  if (!evaluateList(*expr.operands[0], from) || !spendElements(from->size() + 1, expr.range))
    return false;
  auto list = std::make_shared<List>();
  if (builtin == Builtin::Reverse) {
    *list = *from;
    std::reverse(list->ints.begin(), list->ints.end());
    std::reverse(list->rows.begin(), list->rows.end());
    std::reverse(list->chunks.begin(), list->chunks.end());
  } else {
    // offsets(): the running sum, with 0 in front: one element more than the list has.
    list->ints.push_back(0);
    for (int64_t value : from->ints) {
      int64_t next;
      if (__builtin_add_overflow(list->ints.back(), value, &next))
        return overflow(expr);
      list->ints.push_back(next);
    }
  }
  out = std::move(list);
  return true;
}

bool Elaborator::splitChunk(const Expr &expr, ListRef &out) {
  // The value must be what was read, since each part is read again.
  Chunk whole;
  int64_t parts;
  if (!evaluateChunk(*expr.operands[0], whole) || !evaluateScalar(*expr.operands[1], parts) ||
      !checkFresh(whole, *expr.operands[0]))
    return false;
  const uint64_t count = whole.place.count;
  // No part may be empty, as a value has at least one chunk.
  if (parts < 1 || static_cast<uint64_t>(parts) > count) {
    error(DiagnosticCode::OutOfDomain, expr.operands[1]->range,
          "a value of " + std::to_string(count) + (count == 1 ? " chunk" : " chunks") +
              " cannot be split into " + std::to_string(parts) + " parts");
    return false;
  }
  auto list = std::make_shared<List>();
  for (uint64_t k = 0; k < static_cast<uint64_t>(parts); ++k) {
    if (!spendElements(1, expr.range) || !spendOp(expr.range))
      return false;
    // As even as it can be, and the same formula as for parts of instances: k * count / parts.
    uint64_t first = k * count / parts, last = (k + 1) * count / parts;
    Place place = whole.place;
    place.index += static_cast<uint32_t>(first);
    place.count = static_cast<uint32_t>(last - first);
    list->chunks.push_back({place, trace.now(), sink.read(layout.range(place), expr.range)});
  }
  out = std::move(list);
  return true;
}

} // namespace occl::frontend
