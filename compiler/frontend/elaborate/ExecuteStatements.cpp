#include "compiler/frontend/elaborate/Elaborator.h"

#include "plan/model/limits.h"

#include <algorithm>

namespace occl::frontend {

Elaborator::Flow Elaborator::execute(const std::vector<Stmt *> &statements) {
  for (const Stmt *statement : statements) {
    Flow flow = execute(*statement);
    if (flow != Flow::Normal)
      return flow;
  }
  return Flow::Normal;
}

Elaborator::Flow Elaborator::execute(const Stmt &statement) {
  // Errors of a statement do not end the program unless it has been stopped: several mistakes are
  // reported in one run.
  switch (statement.kind) {
  case StmtKind::Let:
  case StmtKind::Var:
  case StmtKind::Assign:
    bind(statement);
    break;
  case StmtKind::For:
    return forEach(statement.generators, [&] { return execute(statement.body); });
  case StmtKind::If:
    return executeIf(statement);
  case StmtKind::Assert:
    // A program whose assumptions do not hold makes no sense from here on.
    if (!executeAssert(statement))
      stopped = true;
    break;
  case StmtKind::Scratch:
    executeScratch(statement);
    break;
  case StmtKind::Return: {
    Value value;
    if (statement.expr)
      evaluate(*statement.expr, returnType, value);
    returned = std::move(value);
    return stopped ? Flow::Stop : Flow::Return;
  }
  case StmtKind::Hints:
    return executeHints(statement);
  case StmtKind::When:
    return statement.slot == version ? execute(statement.body) : Flow::Normal;
  case StmtKind::Expression: {
    Value ignored;
    if (statement.expr->kind == ExprKind::Call)
      call(*statement.expr, ignored);
    else
      evaluateChunk(*statement.expr, ignored.chunk);
    break;
  }
  case StmtKind::Topology:
    executeTopologyItem(*statement.item);
    break;
  }
  return stopped ? Flow::Stop : Flow::Normal;
}

void Elaborator::bind(const Stmt &statement) {
  const Expr &expr = *statement.expr;
  Type type = expr.type == Type::Location ? Type::Chunk : expr.type;
  Value value;
  evaluate(expr, type, value);
  show(statement.nameRange, value);
  slot(statement.slot) = std::move(value);
}

void Elaborator::tell(Observer &observer, SourceRange name, const Value &value) const {
  // Editors show values of these types.
  switch (value.type) {
  case Type::Int:
    return observer.onInt(name, value.scalar);
  case Type::Bool:
    return observer.onBool(name, value.scalar);
  case Type::IntList:
    return observer.onInts(name, value.list->ints);
  case Type::Chunk:
  case Type::Location:
    return observer.onPlace(name, layout, value.chunk.place);
  default: // lists of what has no short text, and what could not be computed
    return;
  }
}

Elaborator::Flow Elaborator::executeIf(const Stmt &statement) {
  int64_t condition;
  if (!evaluateScalar(*statement.expr, condition))
    return stopped ? Flow::Stop : Flow::Normal;
  return execute(condition ? statement.body : statement.elseBody);
}

bool Elaborator::executeAssert(const Stmt &statement) {
  int64_t holds;
  if (!evaluateScalar(*statement.expr, holds))
    return false;
  if (!holds)
    error(DiagnosticCode::AssertionFailed, statement.expr->range,
          (statement.message.empty() ? "this assertion does not hold"
                                     : std::string(statement.message)) +
              valuesIn(*statement.expr));
  return holds;
}

void Elaborator::executeScratch(const Stmt &statement) {
  // Slots of each rank: one expression for all, or one in which the rank is a variable.
  Value &value = slot(statement.slot);
  value = Value();
  std::vector<uint32_t> slots;
  bool isUniform = !statement.rankRange.isValid();
  for (uint32_t rank = 0; rank < layout.numRanks(); ++rank) {
    if (!isUniform) {
      slot(statement.rankSlot).type = Type::Int;
      slot(statement.rankSlot).scalar = rank;
    }
    // The same number for all is evaluated once.
    if (isUniform && rank > 0)
      slots.push_back(slots.back());
    else if (!evaluateSlots(statement, rank, slots))
      return;
  }
  // The limit of an editor, then that of plans.
  uint64_t total = layout.numLocations();
  for (uint32_t size : slots)
    total += size;
  if (!spendChunks(total, statement.expr->range))
    return;
  std::optional<uint32_t> scratch =
      layout.addScratch(std::string(statement.name), std::move(slots));
  if (!scratch) {
    error(DiagnosticCode::BadSize, statement.expr->range,
          "with this scratch all buffers of all ranks together have more than " +
              std::to_string(kMaxLocations) + " chunks, as many as a plan may have");
    return;
  }
  // Memory of both modes gets the new locations.
  for (Memory &memory : memories)
    memory.grow();
  // The variable's value is the scratch's number.
  value.type = Type::Buffer;
  value.scalar = *scratch;
}

bool Elaborator::evaluateSlots(const Stmt &statement, uint32_t rank, std::vector<uint32_t> &out) {
  int64_t slots;
  if (!evaluateScalar(*statement.expr, slots))
    return false;
  if (slots < 0 || slots > plan::limits::kMaxChunks - layout.scratchChunks()[rank]) {
    error(DiagnosticCode::BadSize, statement.expr->range,
          "a scratch cannot have " + std::to_string(slots) +
              " slots; all scratches of a rank together have 0 to " +
              std::to_string(plan::limits::kMaxChunks) +
              (statement.rankRange.isValid() ? " (rank " + std::to_string(rank) + ")" : ""));
    return false;
  }
  out.push_back(static_cast<uint32_t>(slots));
  return true;
}

Elaborator::Flow Elaborator::forEach(const Generators &generators, const Body &body, size_t depth) {
  // The innermost level: the condition of `where`, then the body.
  if (depth == generators.list.size()) {
    int64_t included = 1;
    if (generators.where && !evaluateScalar(*generators.where, included)) {
      included = 0;
      ++numFailedLoops;
    }
    return stopped ? Flow::Stop : included ? body() : Flow::Normal;
  }
  // A range or a list; bounds are evaluated once, before the loop.
  const Generator &generator = generators.list[depth];
  int64_t first = 0, last;
  ListRef list;
  bool good = generator.last
                  ? evaluateScalar(*generator.first, first) && evaluateScalar(*generator.last, last)
                  : evaluateList(*generator.first, list);
  // A loop that cannot be evaluated has no iterations. That it failed is noted, for results that
  // depend on it.
  if (!good) {
    ++numFailedLoops;
    return stopped ? Flow::Stop : Flow::Normal;
  }
  if (list)
    last = static_cast<int64_t>(list->size());
  Flow flow = Flow::Normal;
  // The loop is on the stack of loops, by which events know their context.
  loops.push_back({&generator, first, kNoContext, steps});
  size_t level = loops.size() - 1;
  for (int64_t value = first; value < last && flow == Flow::Normal; ++value) {
    Value &variable = slot(generator.slot);
    variable.type = generator.type;
    variable.scalar = value;
    if (list)
      takeElement(*list, static_cast<size_t>(value), variable);
    loops[level].value = variable.scalar;
    loops[level].context = kNoContext;
    show(generator.nameRange, variable);
    // Each iteration costs a step: empty loops end as well.
    flow = spendSteps(1, generator.range) ? forEach(generators, body, depth + 1) : Flow::Stop;
  }
  loops.pop_back();
  return flow;
}

bool Elaborator::spendSteps(uint64_t count, SourceRange place) {
  steps += count;
  if (steps <= maxSteps)
    return true;
  reportBudget("steps", maxSteps, place);
  return false;
}

bool Elaborator::spendChunks(uint64_t total, SourceRange place) {
  if (!options.maxChunks || total <= *options.maxChunks)
    return true;
  stopped = true;
  error(DiagnosticCode::BudgetSpent, place,
        "all buffers of all ranks together have " + std::to_string(total) + " chunks, more than " +
            std::to_string(*options.maxChunks));
  return false;
}

bool Elaborator::spendOp(SourceRange place) {
  if (++ops <= maxOps)
    return true;
  reportBudget("reads, copies and reductions", maxOps, place);
  return false;
}

void Elaborator::reportBudget(const char *what, uint64_t budget, SourceRange place) {
  if (stopped)
    return;
  stopped = true;
  // The innermost loop that spent at least half of all steps is the one to look at.
  auto culprit = std::find_if(loops.rbegin(), loops.rend(), [&](const Loop &loop) {
    return steps - loop.stepsBefore >= steps / 2;
  });
  bool isOfLoop = culprit != loops.rend();
  error(DiagnosticCode::BudgetSpent, isOfLoop ? culprit->generator->range : place,
        "the program takes more than " + std::to_string(budget) + " " + what +
            (isOfLoop ? ", most of them in this loop" : "") +
            "; if it is meant to, raise --max-ops, which is " + std::to_string(maxOps));
}

} // namespace occl::frontend
