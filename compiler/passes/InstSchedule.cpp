#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "plan/model/limits.h"
#include "llvm/Support/MathExtras.h"

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
  // A permutation: steps are moved, not copied.
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
                                     << " messages in flight on a connection [E111]";
  constexpr size_t kShown = 4;
  // Some examples are enough, and all the same in large programs.
  for (uint32_t step : llvm::ArrayRef(last.stuck).take_front(kShown)) {
    uint32_t rank = graph.rankOf(step);
    diagnostic.attachNote(program.ranks[rank].steps[graph.positionOf(step)].location)
        << "this is stuck on rank " << rank;
  }
  return diagnostic;
}

/// Finds an order for a program.
class Scheduler {
public:
  Scheduler(Program &program, inst::ProgramOp op)
      : program(program), op(op), network(program), free(program, network, MessageOrder::Free) {}

  LogicalResult run(uint32_t maxDepth) {
    // Any order needs that messages have one at both ends, and that nothing waits for itself.
    if (!free.isConsistent())
      return op.emitOpError(
          "has messages whose order differs between the ends of a connection [E110]");
    heights = free.heights();
    if (!heights)
      return op.emitOpError("has instructions that wait for each other in a cycle [E112]");
    // The depth is raised as far as allowed: a program may need more messages in flight than it
    // says.
    maxDepth = std::max(program.depth, std::min(maxDepth, plan::limits::kMaxDepth));
    for (uint32_t depth = program.depth;; ++depth) {
      Schedule result = bestAt(depth);
      if (!result.complete && depth < maxDepth)
        continue;
      if (!result.complete)
        return reportStuck(op, program, free, result, maxDepth);
      program.depth = depth;
      reorder(program, result);
      return success();
    }
  }

private:
  /// The order that ends first of those tried; for large programs, the first that completes.
  Schedule bestAt(uint32_t depth) {
    constexpr uint32_t kTryAll = 1u << 15; // steps
    const bool tryAll = free.numSteps() <= kTryAll;
    const Timing timing = tryAll ? Timing::Predicted : Timing::Unasked;
    // First by the number of steps behind, without times.
    Schedule best = schedule(program, network, free, depth, *heights, timing);
    auto consider = [&](const StepGraph &graph, llvm::ArrayRef<uint32_t> priorities) {
      Schedule other = schedule(program, network, graph, depth, priorities, timing);
      if (!best.complete || (other.complete && other.duration() < best.duration()))
        best = std::move(other);
    };
    if (best.complete && !tryAll)
      return best;
    // The choice of what to send first can get stuck where the program's own does not.
    // With messages in the program's own order.
    if (!kept)
      kept.emplace(program, network, MessageOrder::Program);
    auto keptHeights = kept->heights();
    if (keptHeights)
      consider(*kept, *keptHeights);
    if (!tryAll)
      return best;
    // By predicted times: the longest path that is still to come.
    const std::vector<uint32_t> durations = durationsOf(program, network);
    std::vector<uint32_t> lengths = *free.heights(durations, program.weights);
    consider(free, lengths);
    // A step on the longest path has the largest sum of both, whatever its place.
    // Depth and reverse depth together: the steps of the longest paths go first.
    for (auto [length, before] : llvm::zip(lengths, free.depths(durations, program.weights)))
      length = llvm::SaturatingAdd(length, before);
    consider(free, lengths);
    if (keptHeights)
      consider(*kept, {}); // the order of the source
    return best;
  }

  Program &program;
  inst::ProgramOp op;
  Network network;
  StepGraph free;                // messages may overtake each other
  std::optional<StepGraph> kept; // or not
  std::optional<std::vector<uint32_t>> heights;
};

class InstSchedulePass : public passes::impl::InstScheduleBase<InstSchedulePass> {
  using InstScheduleBase::InstScheduleBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) -> LogicalResult {
      if (failed(passes::setWeights(program, op, weights)))
        return failure();
      return Scheduler(program, op).run(maxDepth);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
