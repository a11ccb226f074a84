#include "compiler/frontend/elaborate/Elaborate.h"

#include "compiler/frontend/elaborate/Elaborator.h"

#include <algorithm>

namespace occl::frontend {

std::optional<ProgramInfo> elaborate(const Program &program, const AlgorithmDecl &algorithm,
                                     const ElaborationOptions &options, SourceManager &sources,
                                     ChunkSink &sink, DiagnosticEngine &diagnostics) {
  return Elaborator(program, algorithm, options, sources, sink, diagnostics).run();
}

Elaborator::Elaborator(const Program &program, const AlgorithmDecl &algorithm,
                       const ElaborationOptions &options, SourceManager &sources, ChunkSink &sink,
                       DiagnosticEngine &diagnostics)
    : program(program), algorithm(algorithm), options(options), sources(sources), sink(sink),
      diagnostics(diagnostics) {
  setBudget(1); // until the number of ranks is known
}

void Elaborator::setBudget(uint64_t numRanks) {
  // Loops that do nothing must end too; a program that does something takes a few steps an
  // operation.
  constexpr uint64_t kStepsPerOp = 16, kFreeSteps = 1u << 20;
  maxOps = options.maxOps.value_or(defaultMaxOps(numRanks));
  maxSteps = options.maxSteps.value_or(std::min<uint64_t>(maxOps, uint64_t{1} << 40) * kStepsPerOp +
                                       kFreeSteps);
}

std::optional<ProgramInfo> Elaborator::run() {
  // Slots of the collective's variables lie behind those of the algorithm.
  collectiveFrame = algorithm.numSlots;
  stack.resize(algorithm.numSlots + algorithm.collective->numSlots);
  info.name = algorithm.name;
  if (!bindParameters() || !chooseVersion() || !instantiateCollective())
    return std::nullopt;
  // Importers want what is promised and nothing else.
  if (options.promiseOnly)
    return promise();
  sink.useHints(hints);
  // Each alias mode that the algorithm claims is executed on its own memory, at the same time: a
  // mistake in one of them is found without a second run.
  memories.reserve(2);
  for (bool inPlace : {false, true})
    if (inPlace ? info.inPlace : info.outOfPlace)
      memories.emplace_back(layout, inPlace, isDefined);
  Flow flow = execute(algorithm.body);
  bool isComplete = flow != Flow::Stop && !stopped;
  // After other mistakes, missing contributions are their consequence.
  if (isComplete && !diagnostics.hasErrors())
    checkPostcondition();
  if (!isComplete || diagnostics.hasErrors())
    return std::nullopt;
  warn();
  info.scratchChunks = layout.scratchChunks();
  return std::move(info);
}

std::optional<ProgramInfo> Elaborator::promise() {
  // The same visit as checkPostcondition(), without anything that was executed.
  isRequired.assign(layout.numLocations(), false);
  bool isComplete = visitRequirements([&](const RequirementInstance &instance) {
    if (!info.isStandard)
      recordRequirement(instance);
  });
  if (!isComplete || diagnostics.hasErrors())
    return std::nullopt;
  return std::move(info);
}

Diagnostic &Elaborator::error(DiagnosticCode code, SourceRange place, const std::string &message) {
  Diagnostic &result = diagnostics.error(code, place, message + trace.describe(context()));
  if (diagnostics.isFull())
    stopped = true;
  return result;
}

ContextId Elaborator::context() {
  // A context is the chain of loops with their values; made only when an event needs one, and
  // shared by all in the same iteration.
  ContextId parent = kNoContext;
  for (Loop &loop : loops) {
    if (loop.context == kNoContext)
      loop.context = trace.addContext(parent, loop.generator->name, loop.value);
    parent = loop.context;
  }
  return parent;
}

std::string Elaborator::valuesIn(const Expr &expr) const {
  // For messages: the values of the integer variables in the expression, each once. Loop variables
  // are named by the context anyway.
  std::string text;
  std::vector<std::string_view> seen;
  std::function<void(const Expr &)> visit = [&](const Expr &node) {
    bool isLoopVariable = std::any_of(loops.begin(), loops.end(), [&](const Loop &loop) {
      return loop.generator->name == node.name;
    });
    bool isShown = node.kind == ExprKind::Variable && node.type == Type::Int && !isLoopVariable &&
                   std::find(seen.begin(), seen.end(), node.name) == seen.end();
    if (isShown) {
      seen.push_back(node.name);
      text += (text.empty() ? "; " : ", ") + std::string(node.name) + " = " +
              std::to_string(stack[frame + node.slot].scalar);
    }
    // Over the whole expression, in the order in which it is written.
    for (const Expr *child : {node.a, node.b, node.c})
      if (child)
        visit(*child);
    for (const Expr *operand : node.operands)
      visit(*operand);
  };
  visit(expr);
  return text;
}

} // namespace occl::frontend
