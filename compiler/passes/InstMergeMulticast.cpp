#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include <map>
#include <tuple>

namespace occl::passes {
#define GEN_PASS_DEF_INSTMERGEMULTICAST
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

/// Sends that may share a transfer: the same chunks, with the same content, on the same channel.
using Content = std::tuple<PlaceKind, uint32_t, uint32_t, uint32_t, int16_t, std::vector<uint32_t>>;

/// A merged send in the making.
struct Group {
  uint32_t transfer;
  llvm::SmallDenseSet<uint32_t, 8> ranks; // that receive it
};

class Merger {
public:
  explicit Merger(Program &program)
      : program(program), replacement(program.numTransfers), receiver(program.numTransfers) {
    for (uint32_t t = 0; t < program.numTransfers; ++t)
      replacement[t] = t;
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (const Step &step : program.ranks[r].steps)
        forEachMessage(step.instruction.sources,
                       [&](const Place &place) { receiver[place.index] = r; });
  }

  void run() {
    for (Rank &rank : program.ranks)
      mergeSends(rank);
    for (Rank &rank : program.ranks)
      for (Step &step : rank.steps)
        forEachMessage(step.instruction.sources,
                       [&](Place &place) { place.index = replacement[place.index]; });
  }

private:
  void mergeSends(Rank &rank) {
    RankDependences dependences(program, rank);
    std::map<Content, std::vector<Group>> groups;
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      const Instruction &instruction = rank.steps[i].instruction;
      if (plan::Opcode::Send != opcodeOf(instruction) || instruction.destinations.size() != 1)
        continue;
      Place source = instruction.sources.front(), transfer = instruction.destinations.front();
      llvm::ArrayRef<uint32_t> producers = dependences.producers(i);
      auto &sameContent =
          groups[{source.kind, source.index, instruction.count, instruction.extent,
                  transfer.channel, std::vector<uint32_t>(producers.begin(), producers.end())}];
      erased[i] = join(sameContent, transfer.index);
    }
    eraseSteps(rank, erased);
  }

  /// True if the transfer has become part of an earlier one; otherwise it begins a group.
  bool join(std::vector<Group> &groups, uint32_t transfer) {
    for (Group &group : groups)
      if (group.ranks.insert(receiver[transfer]).second) {
        replacement[transfer] = group.transfer;
        return true;
      }
    groups.push_back({transfer, {receiver[transfer]}});
    return false;
  }

  Program &program;
  std::vector<uint32_t> replacement; // of each transfer
  std::vector<uint32_t> receiver;    // rank
};

class InstMergeMulticastPass : public passes::impl::InstMergeMulticastBase<InstMergeMulticastPass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      Program merged = program;
      Merger(merged).run();
      if (completes(merged, merged.depth))
        program = std::move(merged);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
