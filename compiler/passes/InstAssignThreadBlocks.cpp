#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Channels.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/ThreadBlocks.h"

#include <set>

namespace occl::passes {
#define GEN_PASS_DEF_INSTASSIGNTHREADBLOCKS
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Place;
using inst::PlaceKind;

namespace {

/// What the source asks for.
struct Demand {
  std::set<int32_t> channels; // of transfers; -1 if one asks for none
  int32_t largestBlock = -1;
};

Demand demandOf(const Program &program) {
  Demand demand;
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps) {
      demand.largestBlock = std::max(demand.largestBlock, step.instruction.threadBlock);
      forEachMessage(step.instruction.destinations,
                     [&](const Place &place) { demand.channels.insert(place.channel); });
    }
  return demand;
}

/// How good an assignment is; less is better.
struct Score {
  uint64_t makespan = UINT64_MAX;
  size_t connections = 0;
  uint32_t threadBlocks = 0;

  auto operator<=>(const Score &) const = default;
};

Score scoreOf(const Program &program) {
  Network network(program);
  StepGraph graph(program, network, MessageOrder::Free);
  Score score;
  score.connections = program.connections.size();
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      score.threadBlocks =
          std::max(score.threadBlocks, static_cast<uint32_t>(step.instruction.threadBlock) + 1);
  if (auto heights = graph.heights())
    if (Schedule result = schedule(program, network, graph, program.depth, *heights);
        result.complete)
      score.makespan = result.makespan;
  return score;
}

class Chooser {
public:
  Chooser(inst::ProgramOp op, uint32_t maxThreadBlocks, uint32_t maxChannels)
      : op(op), maxThreadBlocks(maxThreadBlocks), maxChannels(maxChannels) {}

  /// Replaces the program by the best of what is tried.
  LogicalResult run(Program &program) {
    Demand demand = demandOf(program);
    // Without a number, as many blocks as the source says things may run side by side.
    options.limit = maxThreadBlocks > 0
                        ? maxThreadBlocks
                        : std::max<uint32_t>(demand.channels.size(), demand.largestBlock + 1);
    mustNumber = demand.largestBlock >= 0 ||
                 (!demand.channels.empty() &&
                  *demand.channels.rbegin() >= static_cast<int32_t>(maxChannels));
    options.limit = std::max(options.limit, 1u);
    if (maxThreadBlocks < 2)
      return assign(program, {});
    return chooseColors(program);
  }

private:
  /// Tries to keep the flows together, and to spread them over 2, 4, ... and all thread blocks. A
  /// large program is spread without trying, which takes longer than the rest of the compilation.
  LogicalResult chooseColors(Program &program) {
    constexpr size_t kTryAll = size_t{1} << 18; // steps
    size_t numSteps = 0;
    for (const Rank &rank : program.ranks)
      numSteps += rank.steps.size();
    if (numSteps > kTryAll)
      return assign(program, passes::colorFlows(program, std::min(maxThreadBlocks, maxChannels)));
    Program best = program;
    if (failed(assign(best, {})))
      return failure();
    Score score = scoreOf(best);
    for (uint32_t count = 2;; count = std::min(2 * count, maxThreadBlocks)) {
      Program candidate = program;
      uint32_t colors = std::min(count, maxChannels);
      if (failed(assign(candidate, passes::colorFlows(program, colors))))
        return failure();
      if (Score other = scoreOf(candidate); other < score) {
        score = other;
        best = std::move(candidate);
      }
      if (count == maxThreadBlocks || colors == maxChannels)
        break;
    }
    program = std::move(best);
    return success();
  }

  LogicalResult assign(Program &program, llvm::ArrayRef<int32_t> colors) const {
    if ((mustNumber || !colors.empty()) &&
        failed(passes::assignChannels(program, colors, maxChannels)))
      return failure();
    Network network(program);
    if (!messagesKeepOrder(program, network))
      return op.emitOpError(
          "has messages whose order differs between the ends of a connection [E110]");
    for (Rank &rank : program.ranks)
      for (Step &step : rank.steps)
        for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
          forEachMessage(*places, [&](Place &place) {
            place = {PlaceKind::Connection, -1, network.connectionOf(place)};
          });
    program.connections = std::move(network.connections);
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      if (failed(passes::assignThreadBlocks(program, r, options)))
        return failure();
    return success();
  }

  mutable inst::ProgramOp op;
  uint32_t maxThreadBlocks; // 0: not said
  uint32_t maxChannels;
  bool mustNumber = false; // channels, although there are no colors
  passes::BlockOptions options;
};

class InstAssignThreadBlocksPass
    : public passes::impl::InstAssignThreadBlocksBase<InstAssignThreadBlocksPass> {
  using InstAssignThreadBlocksBase::InstAssignThreadBlocksBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      return Chooser(op, maxThreadBlocks, maxChannels).run(program);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
