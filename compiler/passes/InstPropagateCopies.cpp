#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"
#include "compiler/analysis/ListScheduler.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/ProgramPass.h"
#include "compiler/passes/fusion/DeadStores.h"

namespace occl::passes {
#define GEN_PASS_DEF_INSTPROPAGATECOPIES
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

constexpr uint32_t kNone = ~0u;

/// Where the content of a chunk was copied from.
struct Origin {
  uint32_t copy = kNone; // the step
  PlaceKind kind = PlaceKind::Input;
  int64_t shift = 0; // index there - index here
};

/// Goes through the steps of a rank in order and lets them read originals.
class Propagation {
public:
  Propagation(const Program &program, Rank &rank) : program(program), rank(rank) {}

  /// False if nothing reads a copy whose original is still there.
  bool run() {
    // In the order of execution: for each location, who wrote it last and, if that was a copy, from
    // where.
    bool changed = false;
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      Instruction &instruction = rank.steps[i].instruction;
      for (Place &source : instruction.sources)
        if (source.isLocal())
          changed |= replace(source, instruction);
      if (const Place *target = instruction.localDestination())
        store(i, instruction, *target);
    }
    return changed;
  }

private:
  bool replace(Place &source, const Instruction &instruction) {
    // The source is read where it was copied from, if that still holds the same and the instruction
    // may read it there.
    std::optional<Origin> origin = originOf(source, instruction.count);
    if (!origin)
      return false;
    Place original{origin->kind, -1, static_cast<uint32_t>(source.index + origin->shift)};
    if (!isUnchanged(original, instruction.count, origin->copy) ||
        overlapsInPart(original, instruction))
      return false;
    source = original;
    return true;
  }

  /// The one origin of all chunks of a place, if they have one.
  std::optional<Origin> originOf(Place place, uint32_t count) {
    // All chunks must come from the same copy, or from copies that lie as one.
    Range range = rangeOf(program, rank, place, count);
    std::optional<Origin> common;
    bool agree = true;
    contents[range.space].forEach(range.begin, range.end, [&](int64_t, int64_t, Content &content) {
      // Under the name of the other buffer that in place is the same, a copy is no copy.
      bool isCopy = content.origin.copy != kNone && content.kind == place.kind;
      agree &= isCopy && (!common || (common->kind == content.origin.kind &&
                                      common->shift == content.origin.shift));
      if (!common || content.origin.copy < common->copy)
        common = content.origin;
    });
    return agree ? common : std::nullopt;
  }

  /// Whether nobody wrote to the place after `copy`, which in place may be a copy to itself.
  bool isUnchanged(Place place, uint32_t count, uint32_t copy) {
    Range range = rangeOf(program, rank, place, count);
    // Anything written there after the copy has another content.
    bool unchanged = true;
    contents[range.space].forEach(range.begin, range.end,
                                  [&](int64_t, int64_t, const Content &content) {
                                    unchanged &= content.writer == kNone || content.writer <= copy;
                                  });
    return unchanged;
  }

  /// Whether the instruction, reading there, would write to a part of what it reads.
  bool overlapsInPart(Place source, const Instruction &instruction) const {
    const Place *target = instruction.localDestination();
    if (!target)
      return false;
    Range from = rangeOf(program, rank, source, instruction.count);
    Range to = rangeOf(program, rank, *target, instruction.count);
    return from.overlaps(to) && from != to;
  }

  void store(uint32_t step, const Instruction &instruction, Place target) {
    // A copy remembers its origin; everything else is one.
    Content content{step, target.kind, {}};
    if (opcodeOf(instruction) == plan::Opcode::Copy) {
      Place source = instruction.sources.front();
      content.origin = {step, source.kind, int64_t(source.index) - int64_t(target.index)};
    }
    Range range = rangeOf(program, rank, target, instruction.count);
    contents[range.space].assign(range.begin, range.end, content);
  }

  struct Content {
    uint32_t writer = kNone; // the last one
    PlaceKind kind = PlaceKind::Input;
    Origin origin;
  };

  const Program &program;
  Rank &rank;
  AccessMap<Content> contents[3]; // of each space
};

bool hasCopies(const Program &program) {
  return llvm::any_of(program.ranks, [](const Rank &rank) {
    return llvm::any_of(rank.steps, [](const Step &step) {
      return opcodeOf(step.instruction) == plan::Opcode::Copy;
    });
  });
}

class InstPropagateCopiesPass
    : public passes::impl::InstPropagateCopiesBase<InstPropagateCopiesPass> {
  void runOnOperation() override {
    auto transform = [](Program &program, inst::ProgramOp op) {
      if (failed(passes::requireTransfers(op)))
        return failure();
      // Most programs have no copies.
      if (!hasCopies(program))
        return success();
      Program direct = program;
      std::vector<uint8_t> changed(direct.ranks.size());
      // Each rank by itself; dead stores are those whose readers now read elsewhere.
      forEachRankAtOnce(program, [&](uint32_t r) {
        changed[r] = Propagation(direct, direct.ranks[r]).run();
        if (changed[r])
          passes::dropDeadStores(direct, direct.ranks[r]);
      });
      // Reading elsewhere changes what waits for what, so that the program has to complete still.
      if (llvm::is_contained(changed, true) && completes(direct, direct.depth))
        program = std::move(direct);
      return success();
    };
    if (failed(passes::transformPrograms(getOperation(), transform)))
      signalPassFailure();
  }
};

} // namespace
