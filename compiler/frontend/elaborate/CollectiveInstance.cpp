#include "compiler/frontend/elaborate/Elaborator.h"

#include "plan/collectives/collectives.h"
#include "plan/model/limits.h"

namespace occl::frontend {

std::optional<int64_t> Elaborator::collectiveParameter(std::string_view name) const {
  const std::vector<Param> &params = algorithm.collective->params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == name)
      return stack[collectiveFrame + i].scalar;
  return std::nullopt;
}

bool Elaborator::instantiateCollective() {
  // The collective's declaration is executed with the algorithm's arguments: its parameters, lets
  // and asserts, then sizes, modes and precondition.
  const CollectiveDecl &collective = *algorithm.collective;
  info.collective = collective.name;
  // By name and by where it is declared: a program may have a collective of its own with a standard
  // name.
  info.isStandard = collective.nameRange.file == program.modules[0]->file &&
                    plan::standardCollectiveOf(collective.name).has_value();
  if (!bindCollectiveArguments())
    return false;
  frame = collectiveFrame;
  bool good =
      checkNumRanks() && executeBindings() && sizeBuffers() && chooseModes() && readPrecondition();
  frame = 0;
  return good;
}

bool Elaborator::bindCollectiveArguments() {
  const std::vector<Param> &params = algorithm.collective->params;
  for (size_t i = 0; i < params.size(); ++i) {
    const Expr *argument = algorithm.collectiveArguments[i];
    // Arguments are expressions of the algorithm's parameters, defaults of the collective's.
    frame = argument ? 0 : collectiveFrame;
    Value value;
    bool good = evaluate(argument ? *argument : *params[i].defaultValue, params[i].type, value);
    frame = 0;
    if (!good)
      return false;
    stack[collectiveFrame + i] = value;
  }
  int64_t ranks = *collectiveParameter("ranks");
  if (ranks < 1 || ranks > plan::limits::kMaxRanks) {
    error(DiagnosticCode::BadSize, algorithm.collectiveRange,
          "a collective has 1 to " + std::to_string(plan::limits::kMaxRanks) + " ranks, not " +
              std::to_string(ranks));
    return false;
  }
  info.numRanks = static_cast<uint32_t>(ranks);
  setBudget(info.numRanks);
  // Not every collective has a root; without one it is 0, which nobody looks at.
  int64_t root = collectiveParameter("root").value_or(0);
  if (root < 0 || root >= ranks) {
    error(DiagnosticCode::RankOutOfRange, algorithm.collectiveRange,
          "the root " + std::to_string(root) + " is none of the ranks 0 to " +
              std::to_string(ranks - 1));
    return false;
  }
  info.root = static_cast<uint32_t>(root);
  return true;
}

bool Elaborator::executeBindings() {
  // Bindings are declarations of the collective; an error in them is reported there, with a note at
  // the algorithm.
  for (const Stmt *statement : algorithm.collective->bindings) {
    if (statement->kind == StmtKind::Let)
      bind(*statement);
    bool good = statement->kind == StmtKind::Let ? slot(statement->slot).type != Type::Error
                                                 : executeAssert(*statement);
    if (good)
      continue;
    diagnostics.noteLast(algorithm.collectiveRange, "in the collective of this algorithm");
    return false;
  }
  return true;
}

bool Elaborator::evaluatePerRank(const RankItem &item, int64_t low, int64_t high,
                                 std::vector<int64_t> &out) {
  // `input[r]: expr` once for each rank, with r as a variable.
  for (uint32_t rank = 0; rank < info.numRanks; ++rank) {
    slot(item.slot).type = Type::Int;
    slot(item.slot).scalar = rank;
    int64_t value;
    if (!evaluateScalar(*item.expr, value))
      return false;
    // The range is the caller's: sizes are not negative, offsets may be.
    if (value < low || value > high) {
      error(DiagnosticCode::BadSize, item.expr->range,
            std::to_string(value) + " is not in the range " + std::to_string(low) + " to " +
                std::to_string(high) + " (rank " + std::to_string(rank) + ")")
          .note(algorithm.collectiveRange, "in the collective of this algorithm");
      return false;
    }
    out.push_back(value);
  }
  return true;
}

bool Elaborator::sizeBuffers() {
  // Input and output are required items, `inplace` is not: without it the two never share memory.
  const CollectiveDecl &collective = *algorithm.collective;
  constexpr int64_t kMaxChunks = plan::limits::kMaxChunks;
  std::vector<int64_t> inputs, outputs, offsets(info.numRanks, 0);
  if (!evaluatePerRank(collective.input, 0, kMaxChunks, inputs) ||
      !evaluatePerRank(collective.output, 0, kMaxChunks, outputs))
    return false;
  if (collective.inplace.range.isValid()) {
    offsets.clear();
    if (!evaluatePerRank(collective.inplace, -kMaxChunks, kMaxChunks, offsets))
      return false;
  }
  // A part's chunks: the parameter `chunks`, unless the collective says otherwise.
  int64_t part = collectiveParameter("chunks").value_or(0);
  if (collective.part && !evaluateScalar(*collective.part, part))
    return false;
  info.inputChunks.assign(inputs.begin(), inputs.end());
  info.outputChunks.assign(outputs.begin(), outputs.end());
  info.inPlaceOffsets.assign(offsets.begin(), offsets.end());
  // Checked here, before anything is divided by it.
  if (part < 1 || part > kMaxChunks) {
    error(DiagnosticCode::BadSize, algorithm.collectiveRange,
          "a part has 1 to " + std::to_string(kMaxChunks) + " chunks, not " + std::to_string(part));
    return false;
  }
  info.partChunks = static_cast<uint32_t>(part);
  return checkSizes(info.inputChunks, info.outputChunks);
}

bool Elaborator::checkSizes(const std::vector<uint32_t> &inputs,
                            const std::vector<uint32_t> &outputs) {
  // Sums in 64 bits over all ranks: memory for the execution grows with them.
  uint64_t total = 0;
  for (const std::vector<uint32_t> *sizes : {&inputs, &outputs})
    for (uint32_t size : *sizes) {
      total += size;
      // Chunks of a part differ in size, by their number in it: so buffers are whole parts.
      if (size % info.partChunks == 0)
        continue;
      error(DiagnosticCode::BadSize, algorithm.collectiveRange,
            "a buffer of " + std::to_string(size) + " chunks does not consist of whole parts of " +
                std::to_string(info.partChunks) + " chunks");
      return false;
    }
  if (total > kMaxLocations) {
    error(DiagnosticCode::BadSize, algorithm.collectiveRange,
          "all buffers of all ranks together have " + std::to_string(total) + " chunks; at most " +
              std::to_string(kMaxLocations) +
              " are possible: cut buffers into fewer chunks, or take fewer ranks");
    return false;
  }
  // An editor allows less than the compiler.
  if (!spendChunks(total, algorithm.collectiveRange))
    return false;
  layout.setBuffers(inputs, outputs, info.inPlaceOffsets);
  return true;
}

bool Elaborator::chooseModes() {
  bool canBeInPlace = algorithm.collective->inplace.range.isValid();
  info.outOfPlace = algorithm.outOfPlace;
  info.inPlace = algorithm.inPlace && canBeInPlace;
  bool claimsInPlace = algorithm.modesRange.isValid() && algorithm.inPlace;
  if (!claimsInPlace || canBeInPlace)
    return true;
  error(DiagnosticCode::BadModes, algorithm.modesRange,
        "'" + info.collective +
            "' cannot be called in place: it does not say where the input lies "
            "in the output")
      .note(algorithm.collective->nameRange, "declared here, without 'inplace'");
  return false;
}

} // namespace occl::frontend
