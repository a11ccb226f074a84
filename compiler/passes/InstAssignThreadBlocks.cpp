#include "compiler/analysis/StepGraph.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include "llvm/ADT/IntEqClasses.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTASSIGNTHREADBLOCKS
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

/// Divides the steps of a rank among thread blocks.
class Assignment {
public:
  Assignment(Rank &rank, uint32_t maxThreadBlocks) : rank(rank), maxThreadBlocks(maxThreadBlocks) {}

  void run() {
    std::vector<uint32_t> groups = groupSteps();
    std::vector<uint64_t> work(1 + *llvm::max_element(groups), 0);
    for (auto [step, group] : llvm::zip(rank.steps, groups))
      work[group] += workOf(step.instruction);
    std::vector<int32_t> block = fill(work);
    for (auto [step, group] : llvm::zip(rank.steps, groups))
      step.instruction.threadBlock = block[group];
  }

private:
  /// Chunks that an instruction reads and writes.
  static uint64_t workOf(const Instruction &instruction) {
    return uint64_t(instruction.count) *
           (instruction.sources.size() + instruction.destinations.size());
  }

  /// A number for each step, from 0 on in the order of first use; equal where an end of a
  /// connection ties steps together. Local steps belong to the message that came before them.
  std::vector<uint32_t> groupSteps() {
    uint32_t numSteps = static_cast<uint32_t>(rank.steps.size());
    llvm::IntEqClasses classes(numSteps);
    llvm::DenseMap<uint32_t, uint32_t> user;
    uint32_t previous = 0;
    for (uint32_t i = 0; i < numSteps; ++i) {
      bool hasMessage = false;
      auto tie = [&](const Place &place) {
        hasMessage = true;
        classes.join(i, user.try_emplace(place.index, i).first->second);
      };
      forEachMessage(rank.steps[i].instruction.sources, tie);
      forEachMessage(rank.steps[i].instruction.destinations, tie);
      if (!hasMessage)
        classes.join(i, previous);
      previous = i;
    }
    classes.compress();
    std::vector<uint32_t> groups(numSteps);
    for (uint32_t i = 0; i < numSteps; ++i)
      groups[i] = classes[i];
    return groups;
  }

  /// The thread block of each group: the largest groups first, each to the block that has least.
  std::vector<int32_t> fill(llvm::ArrayRef<uint64_t> work) const {
    std::vector<uint32_t> order(work.size());
    for (uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    llvm::stable_sort(order, [&](uint32_t a, uint32_t b) { return work[a] > work[b]; });
    std::vector<uint64_t> load(std::min<size_t>(maxThreadBlocks, work.size()), 0);
    std::vector<int32_t> block(work.size());
    for (uint32_t group : order) {
      auto least = llvm::min_element(load);
      *least += work[group];
      block[group] = static_cast<int32_t>(least - load.begin());
    }
    return block;
  }

  Rank &rank;
  uint32_t maxThreadBlocks;
};

class InstAssignThreadBlocksPass
    : public passes::impl::InstAssignThreadBlocksBase<InstAssignThreadBlocksPass> {
  using InstAssignThreadBlocksBase::InstAssignThreadBlocksBase;

  void runOnOperation() override {
    auto transform = [&](Program &program, inst::ProgramOp op) {
      if (maxThreadBlocks == 0)
        return LogicalResult(op.emitOpError("cannot be executed by 0 thread blocks"));
      if (failed(passes::requireTransfers(op)))
        return failure();
      Network network(program);
      if (!StepGraph(program, network, MessageOrder::Program).isConsistent())
        return LogicalResult(
            op.emitOpError("has messages whose order differs between the ends of a connection"));
      for (Rank &rank : program.ranks) {
        for (Step &step : rank.steps)
          for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
            forEachMessage(*places, [&](Place &place) {
              place = {PlaceKind::Connection, -1, network.connectionOf(place)};
            });
        if (!rank.steps.empty())
          Assignment(rank, maxThreadBlocks).run();
      }
      program.connections = std::move(network.connections);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
