// The first rule of inst-fuse: a result is stored where a copy would take it.
#include "compiler/analysis/AccessMap.h"
#include "compiler/analysis/Dependences.h"
#include "compiler/passes/fusion/FusionRules.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>

using namespace occl;
using namespace occl::analysis;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

namespace {

constexpr uint32_t kNone = ~0u;

class CopyForwarding {
public:
  CopyForwarding(const Program &program, Rank &rank)
      : program(program), rank(rank), dependences(program, rank),
        consumers(consumersOf(rank, dependences)), computedBy(rank.steps.size()),
        isShared(rank.steps.size()), notBefore(rank.steps.size(), 0),
        overwriters(rank.steps.size()) {
    // At first each step computes its own result.
    for (uint32_t i = 0; i < computedBy.size(); ++i)
      computedBy[i] = i;
    findOverwriters();
  }

  void run() {
    std::vector<bool> erased(rank.steps.size());
    for (uint32_t i = 0; i < rank.steps.size(); ++i)
      if (isCopy(i))
        erased[i] = forward(i);
    eraseSteps(rank, erased);
  }

private:
  bool isCopy(uint32_t step) const {
    return opcodeOf(rank.steps[step].instruction) == plan::Opcode::Copy;
  }

  Range rangeAt(Place place, uint32_t count) const { return rangeOf(program, rank, place, count); }

  /// Goes backwards to see, for each copy, which steps write next to where it copies to.
  void findOverwriters() {
    // For each location, who writes it next, as seen from the end: that is who overwrites a copy's
    // target.
    AccessMap<uint32_t> next[] = {AccessMap(kNone), AccessMap(kNone), AccessMap(kNone)};
    for (uint32_t i = static_cast<uint32_t>(rank.steps.size()); i-- > 0;) {
      const Instruction &instruction = rank.steps[i].instruction;
      const Place *target = instruction.localDestination();
      if (!target)
        continue;
      Range range = rangeAt(*target, instruction.count);
      if (isCopy(i))
        next[range.space].forEach(range.begin, range.end, [&](int64_t, int64_t, uint32_t writer) {
          if (writer != kNone)
            overwriters[i].push_back(writer);
        });
      next[range.space].assign(range.begin, range.end, i);
    }
  }

  bool forward(uint32_t copy) {
    // The copy's source must be scratch that one instruction has written, exactly this range.
    auto producer = passes::exactProducer(rank, dependences, copy);
    const Instruction &copying = rank.steps[copy].instruction;
    const Place stored = copying.sources.front(), target = *copying.localDestination();
    if (!producer || stored.kind != PlaceKind::Scratch)
      return false;
    // The producer may have been forwarded before.
    uint32_t origin = computedBy[*producer];
    Instruction &instruction = rank.steps[origin].instruction;
    // Its result may go to the copy's target if nothing between the two touches that, and everybody
    // else who reads it can read it there.
    if (isShared[origin] || !agreeOnBlock(instruction, copying) || !canStoreAt(origin, target) ||
        isTouched(copy, *producer) || !canRedirect(copy, *producer, stored))
      return false;
    // The store moves; the copy becomes one onto itself, which is dropped later.
    for (Place &place : instruction.destinations)
      if (place.isLocal())
        place = target;
    joinHints(instruction, copying);
    redirect(copy, *producer, stored, target);
    computedBy[copy] = origin;
    return true;
  }

  /// Whether the target is disjoint from each local source of the step, or the same.
  bool canStoreAt(uint32_t step, Place target) const {
    const Instruction &instruction = rank.steps[step].instruction;
    Range range = rangeAt(target, instruction.count);
    return llvm::all_of(instruction.sources, [&](Place place) {
      if (!place.isLocal())
        return true;
      Range source = rangeAt(place, instruction.count);
      return !source.overlaps(range) || source == range;
    });
  }

  /// Whether somebody uses the target between the producer and the copy.
  bool isTouched(uint32_t copy, uint32_t producer) const {
    uint32_t origin = computedBy[producer];
    return notBefore[copy] > origin || llvm::any_of(dependences.before(copy), [&](uint32_t before) {
             return before > origin && before != producer;
           });
  }

  /// Whether all others that read what is stored can read it from the target instead.
  bool canRedirect(uint32_t copy, uint32_t producer, Place stored) const {
    // The copy is the only one that reads it.
    if (consumers[producer].size() == 1)
      return true;
    // Until its last reader the target must hold the value.
    uint32_t last = std::max(copy, consumers[producer].back());
    if (llvm::any_of(overwriters[copy], [&](uint32_t writer) { return writer <= last; }))
      return false;
    Range range = rangeAt(stored, rank.steps[copy].instruction.count);
    return llvm::all_of(consumers[producer], [&](uint32_t reader) {
      return reader == copy || readsOnlyWithin(reader, producer, range);
    });
  }

  /// Whether what the step reads of the range lies within it, and comes from the producer.
  // Whatever the reader reads of the range must come from this producer as a whole.
  bool readsOnlyWithin(uint32_t reader, uint32_t producer, const Range &range) const {
    const Instruction &instruction = rank.steps[reader].instruction;
    bool isWithin = llvm::all_of(instruction.sources, [&](Place place) {
      Range source = place.isLocal() ? rangeAt(place, instruction.count) : Range();
      return !place.isLocal() || !source.overlaps(range) ||
             (source.begin >= range.begin && source.end <= range.end);
    });
    return isWithin && llvm::all_of(dependences.producers(reader), [&](uint32_t other) {
             const Instruction &writing = rank.steps[other].instruction;
             return other == producer ||
                    !rangeAt(*writing.localDestination(), writing.count).overlaps(range);
           });
  }

  void redirect(uint32_t copy, uint32_t producer, Place stored, Place target) {
    uint32_t count = rank.steps[copy].instruction.count;
    // Other readers read from the target, and those who overwrite the target must not come before
    // them.
    for (uint32_t reader : consumers[producer]) {
      if (reader == copy)
        continue;
      for (Place &place : rank.steps[reader].instruction.sources)
        if (isWithin(place, stored, count))
          place = movedPlace(place, stored, target);
      isShared[computedBy[producer]] = true;
      for (uint32_t writer : overwriters[copy])
        notBefore[writer] = std::max(notBefore[writer], reader);
    }
  }

  static bool isWithin(Place place, Place stored, uint32_t count) {
    return place.kind == stored.kind && place.index >= stored.index &&
           place.index < stored.index + count;
  }

  static Place movedPlace(Place place, Place stored, Place target) {
    return {target.kind, -1, target.index + (place.index - stored.index)};
  }

  const Program &program;
  Rank &rank;
  RankDependences dependences;
  std::vector<llvm::SmallVector<uint32_t, 2>> consumers;
  /// The step that now stores what a step stored: another one for copies that are gone.
  std::vector<uint32_t> computedBy;
  /// Whether others, which were redirected, read what the step stores.
  std::vector<bool> isShared;
  /// For each step, one that now reads what the step overwrites, or 0.
  std::vector<uint32_t> notBefore;
  /// For each copy, the steps that write next to its target.
  std::vector<llvm::SmallVector<uint32_t, 1>> overwriters;
};

} // namespace

void passes::forwardCopies(const Program &program, Rank &rank) {
  bool hasCopies = llvm::any_of(rank.steps, [](const Step &step) {
    return opcodeOf(step.instruction) == plan::Opcode::Copy;
  });
  if (hasCopies)
    CopyForwarding(program, rank).run();
}
