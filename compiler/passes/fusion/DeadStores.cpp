#include "compiler/passes/fusion/DeadStores.h"

#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/STLExtras.h"

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

/// Which chunks of a rank somebody may still read, going backwards from the end.
class Liveness {
public:
  Liveness(const Program &program, const Rank &rank) : program(program), rank(rank) {
    // The end reads input and output, which every range but those of scratch belongs to.
    Range scratch = rangeOf(program, rank, {PlaceKind::Scratch, -1, 0}, 1);
    spaces[scratch.space] = AccessMap<Flag>(Flag{true});
  }

  bool isLive(Place place, uint32_t count) {
    bool live = false;
    Range range = rangeOf(program, rank, place, count);
    spaces[range.space].forEach(range.begin, range.end,
                                [&](int64_t, int64_t, Flag flag) { live |= !flag.dead; });
    return live;
  }

  void set(Place place, uint32_t count, bool dead) {
    Range range = rangeOf(program, rank, place, count);
    spaces[range.space].assign(range.begin, range.end, Flag{dead});
  }

private:
  struct Flag {
    bool dead = false;
  };

  const Program &program;
  const Rank &rank;
  AccessMap<Flag> spaces[3];
};

} // namespace

/// Whether the instruction copies a range onto itself, as it may after others read their values
/// elsewhere.
static bool isIdentity(const Program &program, const Rank &rank, const Instruction &instruction) {
  return opcodeOf(instruction) == plan::Opcode::Copy &&
         areSame(program, rank, instruction.sources.front(), instruction.destinations.front(),
                 instruction.count);
}

void dropDeadStores(const Program &program, Rank &rank) {
  // Backwards, from what is live at the end: outputs, and what others read.
  Liveness liveness(program, rank);
  std::vector<bool> erased(rank.steps.size());
  for (size_t i = rank.steps.size(); i-- > 0;) {
    Instruction &instruction = rank.steps[i].instruction;
    if (isIdentity(program, rank, instruction)) {
      erased[i] = true;
      continue;
    }
    bool isLocal = llvm::all_of(instruction.sources, [](Place place) { return place.isLocal(); });
    if (const Place *place = instruction.localDestination()) {
      bool live = liveness.isLive(*place, instruction.count);
      // A local instruction whose only result nobody reads is not needed. One with messages is:
      // others wait for them.
      if (!live && isLocal && instruction.destinations.size() == 1) {
        erased[i] = true;
        continue;
      }
      // Its destination is written here, so what was there before is not live above.
      liveness.set(*place, instruction.count, true);
      // It still sends its result, but need not store it.
      if (!live && instruction.destinations.size() > 1)
        llvm::erase_if(instruction.destinations, [](Place p) { return p.isLocal(); });
    }
    // What it reads is live above.
    for (Place place : instruction.sources)
      if (place.isLocal())
        liveness.set(place, instruction.count, false);
  }
  eraseSteps(rank, erased);
}

void compactScratch(Rank &rank) {
  if (rank.scratchChunks == 0)
    return;
  // Which chunks are used at all, by any step.
  std::vector<bool> used(rank.scratchChunks);
  auto forEachScratch = [&](auto fn) {
    for (Step &step : rank.steps)
      for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
        for (Place &place : *places)
          if (place.kind == PlaceKind::Scratch)
            fn(place, step.instruction.count);
  };
  forEachScratch(
      [&](Place &place, uint32_t count) { std::fill_n(used.begin() + place.index, count, true); });
  // The used ones move together, in order, so that ranges stay ranges.
  std::vector<uint32_t> position(rank.scratchChunks);
  uint32_t next = 0;
  for (uint32_t chunk = 0; chunk < rank.scratchChunks; ++chunk) {
    position[chunk] = next;
    next += used[chunk];
  }
  forEachScratch([&](Place &place, uint32_t) { place.index = position[place.index]; });
  rank.scratchChunks = next;
}

} // namespace occl::passes
