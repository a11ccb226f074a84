#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/blocks/Channels.h"
#include "compiler/passes/blocks/ThreadBlocks.h"
#include "plan/model/limits.h"

#include <algorithm>
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
  // What the source has asked for: thread blocks and channels.
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
  uint64_t duration = UINT64_MAX;
  size_t connections = 0;
  uint32_t threadBlocks = 0;

  auto operator<=>(const Score &) const = default;
};

Score scoreOf(const Program &program) {
  // Layouts are compared by scheduling them: the shortest first, then the fewest thread blocks and
  // connections.
  Network network(program);
  StepGraph graph(program, network, MessageOrder::Free);
  Score score;
  score.connections = program.connections.size();
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      score.threadBlocks =
          std::max(score.threadBlocks, static_cast<uint32_t>(step.instruction.threadBlock) + 1);
  // A program that does not complete has no duration, and is worse than any that does.
  if (auto heights = graph.heights())
    if (Schedule result = schedule(program, network, graph, program.depth, *heights);
        result.complete)
      score.duration = result.duration();
  return score;
}

/// What the options of the pass say.
struct Request {
  uint32_t maxThreadBlocks = 0; // 0: not said
  uint32_t maxChannels = 0;
  uint32_t colors = 0;                       // 0: to be tried
  std::optional<passes::BlockLayout> layout; // nothing: to be tried
  bool spreadLocal = false;
};

class Chooser {
public:
  Chooser(inst::ProgramOp op, const Request &request) : op(op), request(request) {
    options.spreadLocal = request.spreadLocal;
  }

  /// Replaces the program by the best of what is tried.
  LogicalResult run(Program &program) {
    // The limit of thread blocks: the option, or what the source implies.
    Demand demand = demandOf(program);
    // Without a number, as many blocks as the source says things may run side by side.
    options.limit = request.maxThreadBlocks > 0
                        ? request.maxThreadBlocks
                        : std::max<uint32_t>(demand.channels.size(), demand.largestBlock + 1);
    // Channels have to be numbered if blocks are asked for, or if those of the source are too many.
    mustNumber = demand.largestBlock >= 0 ||
                 (!demand.channels.empty() &&
                  *demand.channels.rbegin() >= static_cast<int32_t>(request.maxChannels));
    options.limit = std::clamp(options.limit, 1u, plan::limits::kMaxThreadBlocks);
    // With one thread block a rank there is nothing to choose.
    if (request.maxThreadBlocks < 2)
      return assign(program, 1, passes::BlockLayout::Balanced);
    return choose(program);
  }

private:
  /// Tries layouts, and to keep the flows together or to spread them over 2, 4, ... and all thread
  /// blocks. A large program is spread without trying, which takes longer than the rest of the
  /// compilation.
  LogicalResult choose(Program &program) {
    constexpr size_t kTryAll = size_t{1} << 18;     // steps
    constexpr size_t kTryLayouts = size_t{1} << 12; // steps
    // Numbers of colours to try: one asked for, all powers of two, or, of a large program, only the
    // largest.
    const size_t work = numSteps(program);
    const uint32_t most = std::min(request.maxThreadBlocks, request.maxChannels);
    std::vector<uint32_t> numbers{request.colors > 0 ? std::min(request.colors, most) : 1};
    if (request.colors == 0 && work > kTryAll)
      numbers = {most};
    else if (request.colors == 0)
      while (numbers.back() < most)
        numbers.push_back(std::min(2 * numbers.back(), most));
    // Likewise the layouts.
    std::vector<passes::BlockLayout> layouts{
        request.layout.value_or(passes::BlockLayout::Balanced)};
    if (!request.layout && work <= kTryLayouts)
      layouts.assign(std::begin(passes::kBlockLayouts), std::end(passes::kBlockLayouts));
    if (numbers.size() == 1 && layouts.size() == 1)
      return assign(program, numbers.front(), layouts.front());
    return chooseAmong(program, numbers, layouts);
  }

  LogicalResult chooseAmong(Program &program, llvm::ArrayRef<uint32_t> numbers,
                            llvm::ArrayRef<passes::BlockLayout> layouts) {
    // Each candidate is a copy, as assigning changes the program.
    std::optional<Program> best;
    Score score;
    for (passes::BlockLayout layout : layouts)
      for (uint32_t colors : numbers) {
        Program candidate = program;
        // More colors may need more channels than there are; then they are not for this program.
        // The first one that works reports its errors; the others' are not the user's.
        std::optional<ScopedDiagnosticHandler> silence;
        if (best)
          silence.emplace(op.getContext(), [](Diagnostic &) { return success(); });
        if (failed(assign(candidate, colors, layout))) {
          if (!best)
            return failure();
          continue;
        }
        if (Score other = scoreOf(candidate); !best || other < score) {
          score = other;
          best = std::move(candidate);
        }
      }
    program = std::move(*best);
    return success();
  }

  LogicalResult assign(Program &program, uint32_t numColors, passes::BlockLayout layout) {
    // Colours say which flows may share a thread block.
    std::vector<int32_t> colors;
    if (numColors > 1)
      colors = passes::colorFlows(program, numColors);
    options.layout = layout;
    // Only some layouts look at times.
    if (passes::asksForTimes(layout))
      findBegins(program);
    // Channels are numbered before connections exist: a connection is a route with a channel.
    if ((mustNumber || !colors.empty()) &&
        failed(passes::assignChannels(program, colors, request.maxChannels)))
      return failure();
    Network network(program);
    // Sharing a channel must not mix up messages.
    if (!messagesKeepOrder(program, network))
      return op.emitOpError(
          "has messages whose order differs between the ends of a connection [E110]");
    // From transfers to connections.
    forEachRankAtOnce(program, [&](uint32_t r) {
      for (Step &step : program.ranks[r].steps)
        for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
          forEachMessage(*places, [&](Place &place) {
            place = {PlaceKind::Connection, -1, network.connectionOf(place)};
          });
    });
    program.connections = std::move(network.connections);
    program.numTransfers = 0;
    // Thread blocks rank by rank, as no rank's depend on another's.
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      passes::StepTimes times;
      if (passes::asksForTimes(layout))
        times = {llvm::ArrayRef(begins).slice(firstStep[r], program.ranks[r].steps.size()),
                 llvm::ArrayRef(durations).slice(firstStep[r], program.ranks[r].steps.size())};
      if (failed(passes::assignThreadBlocks(program, r, options, times)))
        return failure();
    }
    return success();
  }

  /// Finds out when the steps can begin and how long they take, once: it does not depend on
  /// channels.
  void findBegins(const Program &program) {
    // Kept for all candidates.
    if (!firstStep.empty())
      return;
    Network network(program);
    StepGraph graph(program, network, MessageOrder::Free);
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      firstStep.push_back(graph.globalStep(r, 0));
    durations = durationsOf(program, network);
    begins = graph.depths(durations, program.weights);
  }

  inst::ProgramOp op;
  Request request;
  bool mustNumber = false; // channels, although there are no colors
  passes::BlockOptions options;
  std::vector<uint32_t> firstStep;         // of each rank, among all steps
  std::vector<uint32_t> begins, durations; // of all steps
};

class InstAssignThreadBlocksPass
    : public passes::impl::InstAssignThreadBlocksBase<InstAssignThreadBlocksPass> {
  using InstAssignThreadBlocksBase::InstAssignThreadBlocksBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) -> LogicalResult {
      if (failed(passes::requireTransfers(op)) || failed(passes::setWeights(program, op, weights)))
        return failure();
      // The option's word becomes a layout, or nothing for "auto".
      Request request{maxThreadBlocks, maxChannels, colors, passes::blockLayoutOf(layout),
                      spreadLocal};
      if (!request.layout && layout != "auto")
        return op.emitOpError() << "cannot have the layout '" << layout
                                << "'; there are auto, balanced, phases, peers and earliest [E113]";
      return Chooser(op, request).run(program);
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
