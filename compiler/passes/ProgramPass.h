// What passes over inst have in common: they move an analysis::Program out of IR, change it, and
// move it back.
#pragma once

#include "compiler/analysis/ProgramIO.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <utility>

namespace occl::passes {

/// The check of passes that run before connections are assigned.
inline mlir::LogicalResult requireTransfers(inst::ProgramOp op) {
  if (op.getConnections().empty())
    return mlir::success();
  return op.emitOpError("already has connections; this pass runs before inst-assign-thread-blocks");
}

/// Gives a program the weights that the options of a pass say; without any it has the usual ones.
inline mlir::LogicalResult setWeights(analysis::Program &program, inst::ProgramOp op,
                                      llvm::ArrayRef<uint32_t> numbers) {
  if (numbers.empty())
    return mlir::success();
  std::optional<analysis::StepWeights> weights = analysis::StepWeights::of(numbers);
  if (!weights)
    return op.emitOpError("needs eight weights of steps and four for each way between two ranks, "
                          "in the order of the ranks");
  program.weights = std::move(*weights);
  return mlir::success();
}

/// A copy of `program` whose ranks change(copy, rank, r) has changed, of several at a time: of the
/// copy it reads only what is not of ranks. `program` is what it was afterwards.
template <typename Change>
analysis::Program changedCopy(analysis::Program &program, Change change) {
  const uint64_t work = analysis::numSteps(program);
  std::vector<analysis::Rank> ranks = std::exchange(program.ranks, {}); // copied one by one
  analysis::Program copy = program;
  // Everything but the ranks is copied at once; the ranks one by one, on several threads, each with
  // its change.
  copy.ranks.resize(ranks.size());
  support::parallelFor(ranks.size(), work, [&](size_t r) {
    copy.ranks[r] = ranks[r];
    change(copy, copy.ranks[r], static_cast<uint32_t>(r));
  });
  program.ranks = std::move(ranks);
  return copy;
}

/// Diagnostics come without the op that they are about, as long as this lives: its lists are
/// moved out, so it would look empty.
class DiagnosticsWithoutOp {
public:
  explicit DiagnosticsWithoutOp(mlir::MLIRContext *context)
      : context(context), printed(context->shouldPrintOpOnDiagnostic()) {
    context->printOpOnDiagnostic(false);
  }
  ~DiagnosticsWithoutOp() { context->printOpOnDiagnostic(printed); }
  DiagnosticsWithoutOp(const DiagnosticsWithoutOp &) = delete;
  DiagnosticsWithoutOp &operator=(const DiagnosticsWithoutOp &) = delete;

private:
  mlir::MLIRContext *context;
  bool printed;
};

/// Calls transform(program, op), which returns a LogicalResult and reports its errors on op, for
/// each inst.program of the module, whose op says afterwards what `program` has become, also after
/// an error.
template <typename Transform>
mlir::LogicalResult transformPrograms(mlir::ModuleOp module, Transform transform) {
  DiagnosticsWithoutOp withoutOp(module.getContext());
  // Locations of errors are steps, so that the op, which is the whole program, is not printed.
  for (auto op : module.getOps<inst::ProgramOp>()) {
    analysis::Program program = analysis::takeProgram(op);
    const mlir::LogicalResult result = transform(program, op);
    // Also after a failure, so that the IR stays whole.
    analysis::storeProgram(std::move(program), op);
    if (mlir::failed(result))
      return mlir::failure();
  }
  return mlir::success();
}

} // namespace occl::passes
