#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/fusion/DeadStores.h"
#include "compiler/passes/fusion/FusionRules.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTFUSE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;

namespace {

/// No message gets other ends by that: `network` stays the program's. `original` is what it was
/// afterwards.
Program fuse(Program &original, const Network &network, const passes::FusionOptions &options,
             uint32_t maxFanOut) {
  // The rules on each rank, in this order: results are stored where copies would take them, sources
  // are absorbed by reductions, sends by what produces their value; then dead stores go.
  return passes::changedCopy(original, [&](const Program &program, Rank &rank, uint32_t) {
    passes::forwardCopies(program, rank);
    passes::absorbSources(program, network, rank, options);
    passes::fuseSends(program, network, rank, options.apart, maxFanOut);
    passes::dropDeadStores(program, rank);
  });
}

/// Separates, in `apart`, the transfers of the steps that are stuck. False if all of them are
/// already.
bool separate(const Program &program, const Network &network, llvm::ArrayRef<uint32_t> stuck,
              std::vector<bool> &apart) {
  // What is stuck waits because instructions do several things at once: keeping its transfers apart
  // is what can free it.
  StepGraph graph(program, network, MessageOrder::Program);
  bool found = false;
  for (uint32_t step : stuck) {
    const Rank &rank = program.ranks[graph.rankOf(step)];
    const Instruction &instruction = rank.steps[graph.positionOf(step)].instruction;
    auto mark = [&](const Place &place) {
      found |= !apart[place.index];
      apart[place.index] = true;
    };
    forEachMessage(instruction.sources, mark);
    // A send that passes on what it receives is the culprit as well.
    if (passes::receives(instruction))
      forEachMessage(instruction.destinations, mark);
  }
  return found;
}

class InstFusePass : public passes::impl::InstFuseBase<InstFusePass> {
  using InstFuseBase::InstFuseBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      // Fusing changes the order in which messages are in flight, so that the program may no longer
      // complete at its depth; then the steps that are stuck are fused less.
      // A few rounds find the culprits of usual programs; then nothing is fused.
      constexpr unsigned kRounds = 8;
      passes::FusionOptions options{std::vector<bool>(program.numTransfers), reassociate,
                                    foldArrivals};
      const Network network(program);
      for (unsigned round = 0; round < kRounds; ++round) {
        Program fused = fuse(program, network, options, maxFanOut);
        std::vector<uint32_t> stuck;
        if (completes(fused, network, fused.depth, &stuck)) {
          program = std::move(fused);
          break;
        }
        // Nothing left to separate, so nothing is fused.
        if (!separate(fused, network, stuck, options.apart))
          options.apart.assign(program.numTransfers, true);
      }
      // Scratch that fusion has made unnecessary.
      for (Rank &rank : program.ranks)
        passes::compactScratch(rank);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
