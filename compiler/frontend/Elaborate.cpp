#include "compiler/frontend/Elaborate.h"

#include "compiler/frontend/Elaborator.h"
#include "compiler/frontend/Suggestion.h"

#include <algorithm>
#include <charconv>

namespace occl::frontend {

std::optional<ProgramInfo> elaborate(const Program &program, const AlgorithmDecl &algorithm,
                                     const ElaborationOptions &options, SourceManager &sources,
                                     ChunkEmitter &emitter, DiagnosticEngine &diagnostics) {
  return Elaborator(program, algorithm, options, sources, emitter, diagnostics).run();
}

Elaborator::Elaborator(const Program &program, const AlgorithmDecl &algorithm,
                       const ElaborationOptions &options, SourceManager &sources,
                       ChunkEmitter &emitter, DiagnosticEngine &diagnostics)
    : program(program), algorithm(algorithm), options(options), sources(sources), emitter(emitter),
      diagnostics(diagnostics) {
  // Loops that do nothing must end too; a program that does something takes a few steps an
  // operation.
  constexpr uint64_t kStepsPerOp = 16, kFreeSteps = 1u << 20;
  maxSteps = std::min<uint64_t>(options.maxOps, uint64_t{1} << 40) * kStepsPerOp + kFreeSteps;
}

std::optional<ProgramInfo> Elaborator::run() {
  collectiveFrame = algorithm.numSlots;
  stack.resize(algorithm.numSlots + algorithm.collective->numSlots);
  info.name = algorithm.name;
  if (!bindParameters() || !instantiateCollective())
    return std::nullopt;
  memories.reserve(2);
  for (bool inPlace : {false, true})
    if (inPlace ? info.inPlace : info.outOfPlace)
      memories.emplace_back(layout, inPlace);
  Flow flow = execute(algorithm.body);
  bool isComplete = flow != Flow::Stop && !stopped;
  // After other mistakes, missing contributions are their consequence.
  if (isComplete && !diagnostics.hasErrors())
    checkPostcondition();
  if (!isComplete || diagnostics.hasErrors())
    return std::nullopt;
  info.scratchChunks = layout.scratchChunks();
  return std::move(info);
}

Diagnostic &Elaborator::error(DiagnosticCode code, SourceRange place, const std::string &message) {
  Diagnostic &result = diagnostics.error(code, place, message + trace.describe(context()));
  if (diagnostics.isFull())
    stopped = true;
  return result;
}

ContextId Elaborator::context() {
  ContextId parent = kNoContext;
  for (Loop &loop : loops) {
    if (loop.context == kNoContext)
      loop.context = trace.addContext(parent, loop.generator->name, loop.value);
    parent = loop.context;
  }
  return parent;
}

std::string Elaborator::valuesIn(const Expr &expr) const {
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
    for (const Expr *child : {node.a, node.b, node.c})
      if (child)
        visit(*child);
    for (const Expr *operand : node.operands)
      visit(*operand);
  };
  visit(expr);
  return text;
}

bool Elaborator::parseDefine(const std::string &define) {
  FileId file = sources.addText("<command line>", "-D " + define);
  auto length = static_cast<uint32_t>(define.size());
  auto equals = static_cast<uint32_t>(std::min(define.find('='), define.size()));
  constexpr uint32_t kPrefix = 3; // "-D "
  SourceRange nameRange{file, kPrefix, kPrefix + equals};
  std::string name = define.substr(0, equals);
  if (equals == length) {
    diagnostics.error(DiagnosticCode::BadDefine, nameRange,
                      "a definition is written -D name=value");
    return false;
  }
  std::vector<std::string_view> names;
  for (const Param &param : algorithm.params)
    names.push_back(param.name);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    diagnostics
        .error(DiagnosticCode::BadDefine, nameRange,
               "the algorithm '" + info.name + "' has no parameter '" + name + "'" +
                   didYouMean(suggest(name, names)))
        .note(algorithm.nameRange, "declared here");
    return false;
  }
  SourceRange valueRange{file, kPrefix + equals + 1, kPrefix + length};
  // Of several definitions of one name the last counts, as in other compilers.
  std::erase_if(defines, [&](const Define &earlier) { return earlier.name == name; });
  defines.push_back({name, define.substr(equals + 1), valueRange});
  return true;
}

bool Elaborator::bindParameters() {
  bool good = true;
  for (const std::string &define : options.defines)
    good &= parseDefine(define);
  for (size_t i = 0; i < algorithm.params.size() && good; ++i)
    good &= bindParameter(i);
  return good;
}

bool Elaborator::bindParameter(size_t index) {
  const Param &param = algorithm.params[index];
  Value &value = slot(static_cast<uint32_t>(index));
  auto define = std::find_if(defines.begin(), defines.end(),
                             [&](const Define &entry) { return entry.name == param.name; });
  if (define != defines.end()) {
    const std::string &text = define->value;
    value.type = param.type;
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value.scalar);
    bool good = status == std::errc() && end == text.data() + text.size();
    if (param.type == Type::Bool) {
      good = text == "true" || text == "false";
      value.scalar = text == "true";
    }
    if (!good) {
      diagnostics
          .error(DiagnosticCode::BadDefine, define->range,
                 "'" + text + "' is not a value of type '" + nameOf(param.type) + "'")
          .note(param.nameRange, "declared here");
      return false;
    }
  } else if (!param.defaultValue) {
    diagnostics.error(DiagnosticCode::MissingValue, param.nameRange,
                      "the parameter '" + std::string(param.name) +
                          "' has no value; give one with -D " + std::string(param.name) +
                          "=<value>");
    return false;
  } else {
    Value computed;
    if (!evaluate(*param.defaultValue, param.type, computed))
      return false;
    slot(static_cast<uint32_t>(index)) = computed;
  }
  info.parameters.emplace_back(param.name, slot(static_cast<uint32_t>(index)).scalar);
  return true;
}

} // namespace occl::frontend
