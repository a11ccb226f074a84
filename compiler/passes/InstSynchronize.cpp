#include "compiler/analysis/Dependences.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTSYNCHRONIZE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;

namespace {

constexpr int64_t kNothing = -1;

/// For each thread block, the last step that is known to be complete.
using Clock = llvm::SmallVector<int64_t, 4>;

class Synchronization {
public:
  Synchronization(const Program &program, Rank &rank) : rank(rank), dependences(program, rank) {
    for (const Step &step : rank.steps)
      numBlocks = std::max(numBlocks, blockOf(step) + 1);
  }

  void run() {
    std::vector<Clock> clocks(rank.steps.size());
    std::vector<Clock> current(numBlocks, Clock(numBlocks, kNothing));
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      uint32_t block = blockOf(rank.steps[i]);
      Clock &clock = current[block];
      synchronize(i, clock, clocks);
      clock[block] = i;
      clocks[i] = clock;
    }
  }

private:
  static uint32_t blockOf(const Step &step) {
    return static_cast<uint32_t>(std::max(0, step.instruction.threadBlock));
  }

  /// Adds what the step must still wait for, latest first: what is complete when a later step is
  /// may be among the rest.
  void synchronize(uint32_t i, Clock &clock, const std::vector<Clock> &clocks) {
    Step &step = rank.steps[i];
    step.dependencies.clear();
    for (uint32_t before : llvm::reverse(dependences.before(i))) {
      uint32_t other = blockOf(rank.steps[before]);
      if (clock[other] >= before)
        continue;
      step.dependencies.push_back(before);
      for (uint32_t b = 0; b < numBlocks; ++b)
        clock[b] = std::max(clock[b], clocks[before][b]);
    }
    std::reverse(step.dependencies.begin(), step.dependencies.end());
  }

  Rank &rank;
  RankDependences dependences;
  uint32_t numBlocks = 1;
};

class InstSynchronizePass : public passes::impl::InstSynchronizeBase<InstSynchronizePass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp) {
      for (Rank &rank : program.ranks)
        Synchronization(program, rank).run();
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
