#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"

#include <optional>
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

/// What sends that may share a transfer have in common, besides the content.
using Range = std::tuple<PlaceKind, uint32_t, uint32_t, uint32_t, int16_t, int32_t>;

/// The steps that wrote it.
using Content = llvm::ArrayRef<uint32_t>;

/// A merged send in the making.
struct Group {
  uint32_t transfer = 0;
  llvm::SmallDenseSet<uint32_t, 8> ranks; // that receive it
};

class Merger {
public:
  explicit Merger(const Program &program)
      : program(program), replacement(program.numTransfers), receiver(program.numTransfers),
        erased(program.ranks.size()) {
    // At first each transfer stands for itself.
    for (uint32_t t = 0; t < program.numTransfers; ++t)
      replacement[t] = t;
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      // Each transfer has one receiver here.
      for (const Step &step : program.ranks[r].steps)
        forEachMessage(step.instruction.sources,
                       [&](const Place &place) { receiver[place.index] = r; });
  }

  /// Finds out what can be merged; false if nothing.
  bool find() {
    forEachRankAtOnce(program, [&](uint32_t r) { findInRank(r); });
    return llvm::any_of(
        erased, [](const std::vector<bool> &flags) { return llvm::is_contained(flags, true); });
  }

  /// Merges it on rank r.
  void apply(Rank &rank, uint32_t r) const {
    eraseSteps(rank, erased[r]);
    for (Step &step : rank.steps)
      forEachMessage(step.instruction.sources,
                     [&](Place &place) { place.index = replacement[place.index]; });
  }

private:
  /// The sends of a rank that may share a message, so far as where they begin to read tells: in
  /// most programs none, and then there is nothing to sort.
  static std::vector<std::pair<Range, uint32_t>> sendsOf(const Rank &rank) {
    // Counted by where they begin to read, in one pass.
    std::vector<uint32_t> steps;
    std::vector<uint32_t> numSends[3]; // for each buffer, of those that read from a chunk on
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      const Instruction &instruction = rank.steps[i].instruction;
      if (plan::Opcode::Send != opcodeOf(instruction) || instruction.destinations.size() != 1)
        continue;
      const Place &source = instruction.sources.front();
      std::vector<uint32_t> &counts = numSends[static_cast<size_t>(source.kind)];
      counts.resize(std::max<size_t>(counts.size(), source.index + 1), 0);
      ++counts[source.index];
      steps.push_back(i);
    }
    // Those that share the begin with another one.
    std::vector<std::pair<Range, uint32_t>> sends;
    for (uint32_t step : steps) {
      const Instruction &instruction = rank.steps[step].instruction;
      const Place &source = instruction.sources.front();
      if (numSends[static_cast<size_t>(source.kind)][source.index] > 1)
        sends.push_back({{source.kind, source.index, instruction.count, instruction.extent,
                          instruction.destinations.front().channel, instruction.threadBlock},
                         step});
    }
    return sends;
  }

  void findInRank(uint32_t r) {
    const Rank &rank = program.ranks[r];
    std::vector<bool> &flags = erased[r];
    flags.resize(rank.steps.size());
    // Equal ranges become neighbours.
    std::vector<std::pair<Range, uint32_t>> sends = sendsOf(rank);
    llvm::sort(sends);
    // Dependences cost most of this pass, and are needed only if there is a group at all.
    std::optional<RankDependences> dependences;
    for (auto first = sends.begin(), last = first; first != sends.end(); first = last) {
      last =
          std::find_if(first, sends.end(), [&](auto &send) { return send.first != first->first; });
      if (last - first == 1)
        continue;
      if (!dependences)
        dependences.emplace(program, rank);
      // Mostly a chunk is sent again because it has another content.
      llvm::SmallDenseMap<Content, llvm::SmallVector<Group, 1>, 4> groups;
      // The same range with the same content: the same producers.
      for (auto &[range, step] : llvm::make_range(first, last)) {
        uint32_t transfer = rank.steps[step].instruction.destinations.front().index;
        flags[step] = join(groups[dependences->producers(step)], transfer);
      }
    }
  }

  /// True if the transfer has become part of an earlier one; otherwise it begins a group.
  bool join(llvm::SmallVectorImpl<Group> &groups, uint32_t transfer) {
    // One receiver takes a multicast once: a second message to the same rank is another group.
    for (Group &group : groups)
      if (group.ranks.insert(receiver[transfer]).second) {
        replacement[transfer] = group.transfer;
        return true;
      }
    Group &group = groups.emplace_back();
    group.transfer = transfer;
    group.ranks.insert(receiver[transfer]);
    return false;
  }

  const Program &program;
  std::vector<uint32_t> replacement;     // of each transfer
  std::vector<uint32_t> receiver;        // rank
  std::vector<std::vector<bool>> erased; // of each rank: its steps
};

class InstMergeMulticastPass : public passes::impl::InstMergeMulticastBase<InstMergeMulticastPass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp op) {
      // On a copy, which replaces the program only if it completes: a multicast is in flight until
      // its slowest receiver has taken it.
      if (failed(passes::requireTransfers(op)))
        return failure();
      Merger merger(program);
      if (!merger.find())
        return success();
      Program merged = passes::changedCopy(
          program, [&](const Program &, Rank &rank, uint32_t r) { merger.apply(rank, r); });
      if (completes(merged, merged.depth))
        program = std::move(merged);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
