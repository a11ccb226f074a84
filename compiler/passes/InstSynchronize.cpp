#include "compiler/analysis/Dependences.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

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

/// The rank's steps in place, where a copy of a range onto itself only reads. Nothing if there is
/// no such copy: then the dependences in place are all.
std::optional<Rank> withoutCopiesOntoThemselves(const Program &program, const Rank &rank) {
  std::optional<Rank> result;
  // Out of place such a copy writes, in place it does nothing: dependences differ between the two.
  for (uint32_t i = 0; program.inPlace && i < rank.steps.size(); ++i) {
    const inst::Instruction &copy = rank.steps[i].instruction;
    if (opcodeOf(copy) != plan::Opcode::Copy ||
        rangeOf(program, rank, copy.sources.front(), copy.count) !=
            rangeOf(program, rank, copy.destinations.front(), copy.count))
      continue;
    if (!result)
      result = rank;
    result->steps[i].instruction.destinations.clear();
  }
  return result;
}

/// Then nothing waits.
bool hasOneBlock(const Rank &rank) {
  return llvm::all_of(rank.steps,
                      [](const Step &step) { return step.instruction.threadBlock <= 0; });
}

void clearDependencies(Rank &rank) {
  for (Step &step : rank.steps)
    step.dependencies.clear();
}

class Synchronization {
public:
  Synchronization(const Program &program, Rank &rank) : rank(rank) {
    // With such copies both modes are looked at, and a step waits for what it needs in either.
    if (std::optional<Rank> inPlace = withoutCopiesOntoThemselves(program, rank)) {
      Program apart;
      apart.inPlace = false;
      dependences.emplace_back(program, *inPlace);
      dependences.emplace_back(apart, rank);
    } else {
      dependences.emplace_back(program, rank);
    }
    for (const Step &step : rank.steps)
      numBlocks = std::max(numBlocks, blockOf(step) + 1);
  }

  void run() {
    // A vector clock for each thread block: which step of each other block is known to be complete.
    std::vector<Clock> clocks(rank.steps.size());
    std::vector<Clock> current(numBlocks, Clock(numBlocks, kNothing));
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      uint32_t block = blockOf(rank.steps[i]);
      // Waiting for the latest first, as its clock may cover the others.
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
    // Dependences on steps of other blocks, as far as they are not known to be complete.
    Step &step = rank.steps[i];
    step.dependencies.clear();
    llvm::SmallVector<uint32_t, 8> all;
    for (const RankDependences &ofMode : dependences)
      llvm::append_range(all, ofMode.before(i));
    llvm::sort(all); // what is there twice is known to be complete the second time
    for (uint32_t before : llvm::reverse(all)) {
      uint32_t other = blockOf(rank.steps[before]);
      // Known through something else that was waited for.
      if (clock[other] >= before)
        continue;
      step.dependencies.push_back(before);
      // With it everything that it knew.
      for (uint32_t b = 0; b < numBlocks; ++b)
        clock[b] = std::max(clock[b], clocks[before][b]);
    }
    std::reverse(step.dependencies.begin(), step.dependencies.end());
  }

  Rank &rank;
  llvm::SmallVector<RankDependences, 2> dependences; // in place and out of place
  uint32_t numBlocks = 1;
};

class InstSynchronizePass : public passes::impl::InstSynchronizeBase<InstSynchronizePass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp) {
      forEachRankAtOnce(program, [&](uint32_t r) {
        // Within one thread block everything is in order.
        if (hasOneBlock(program.ranks[r]))
          clearDependencies(program.ranks[r]);
        else
          Synchronization(program, program.ranks[r]).run();
      });
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
