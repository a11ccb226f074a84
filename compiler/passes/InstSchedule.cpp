#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "plan/limits.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTSCHEDULE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;

namespace {

/// Puts the steps of each rank in the order of the schedule.
void reorder(Program &program, const Schedule &schedule) {
  for (auto [rank, order] : llvm::zip(program.ranks, schedule.order)) {
    std::vector<Step> steps;
    steps.reserve(order.size());
    for (uint32_t step : order)
      steps.push_back(std::move(rank.steps[step]));
    rank.steps = std::move(steps);
  }
}

LogicalResult reportStuck(inst::ProgramOp op, const Program &program, const StepGraph &graph,
                          const Schedule &last, uint32_t maxDepth) {
  auto diagnostic = op.emitOpError() << "does not complete with up to " << maxDepth
                                     << " messages in flight on a connection";
  constexpr size_t kShown = 4;
  for (uint32_t step : llvm::ArrayRef(last.stuck).take_front(kShown)) {
    uint32_t rank = graph.rankOf(step);
    diagnostic.attachNote(
        Location::getFromOpaquePointer(program.ranks[rank].steps[graph.positionOf(step)].location))
        << "this is stuck on rank " << rank;
  }
  return diagnostic;
}

LogicalResult scheduleProgram(Program &program, inst::ProgramOp op, uint32_t maxDepth) {
  Network network(program);
  StepGraph free(program, network, MessageOrder::Free);
  StepGraph kept(program, network, MessageOrder::Program);
  if (!kept.isConsistent())
    return op.emitOpError("has messages whose order differs between the ends of a connection");
  auto freeHeights = free.heights(), keptHeights = kept.heights();
  if (!freeHeights)
    return op.emitOpError("has instructions that wait for each other in a cycle");
  maxDepth = std::max(program.depth, std::min(maxDepth, plan::limits::kMaxDepth));
  Schedule result;
  for (uint32_t depth = program.depth; depth <= maxDepth; ++depth) {
    result = schedule(program, network, free, depth, *freeHeights);
    // The choice of what to send first can get stuck where the program's own does not.
    if (!result.complete && keptHeights)
      result = schedule(program, network, kept, depth, *keptHeights);
    if (!result.complete)
      continue;
    program.depth = depth;
    reorder(program, result);
    return success();
  }
  return reportStuck(op, program, kept, result, maxDepth);
}

class InstSchedulePass : public passes::impl::InstScheduleBase<InstSchedulePass> {
  using InstScheduleBase::InstScheduleBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      return scheduleProgram(program, op, maxDepth);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
