// A thread block of hosts that is nothing but a few steps in lines, laid out flat: all that
// LineStep looks up each time has been looked up, and lies side by side in the order of use. What
// is left is to add where an invocation's memory lies and which flags are its own.
//
// The same transactions as line_step.h's, in the same order, with the same words stored: a thread
// block may be begun here and gone on with there, from one step to the next.
#pragma once

#include "runtime/exec/reduce/fold_host.h"
#include "runtime/exec/step/invocation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace occl::interpreter {

/// Immutable but for its staging areas: one invocation at a time.
class FlatLines {
public:
  /// nullptr unless the program is one thread block of plain lines (isPlainLines) that move some
  /// bytes each, and few.
  static std::unique_ptr<FlatLines> make(const Program &program);

private:
  friend class FlatRun;

  struct Operand {
    uint64_t offset = 0; // from the place
    uint64_t flag = 0;   // of lines: more than the invocation's flagBase; else 0
    char *stage = nullptr;
    Place place = 0;
  };
  /// An instruction.
  struct Member {
    uint64_t bytes = 0;
    FoldFunction fold = nullptr; // null: a copy
    /// What is folded of staging areas: a multiple of what processors fold at once.
    uint64_t elements = 0;
    uint64_t divisor = 1;
    uint32_t numSources = 0, numDestinations = 0;
    /// All is folded in staging areas, since it is not such a multiple.
    bool isStaged = false;
  };
  struct Polled {
    uint64_t offset = 0, flag = 0, bytes = 0;
    Place place = 0;
  };
  struct Step {
    uint32_t firstInstruction = 0;
    uint32_t numMembers = 0, numPolled = 0, numRung = 0;
  };

  FlatLines() = default;
  bool add(const Program &program, const BoundInstruction &leader);
  void addMember(const Program &program, const BoundInstruction &instruction);
  void placeStages();

  LineFormat line;
  std::vector<Step> steps;
  std::vector<Polled> polled;
  std::vector<Member> members;
  std::vector<Operand> operands;      // of each member the sources, then the destinations
  std::vector<uint32_t> rung;         // ranks
  uint32_t mostOperands = 0;          // of a member
  std::unique_ptr<char *[]> pointers; // of a member that is folded
  uint64_t stageBytes = 0;
  std::unique_ptr<std::byte[]> stages;
};

/// One invocation's way through it. Used by who has claimed the thread block.
class FlatRun {
public:
  /// All places of `invocation` are known.
  FlatRun(FlatLines &lines, const Invocation &invocation)
      : lines(lines), invocation(invocation), step(lines.steps.data()), polled(lines.polled.data()),
        member(lines.members.data()), operand(lines.operands.data()), toRing(lines.rung.data()),
        rungTo(toRing) {}

  /// Does the steps whose lines have arrived. True if that was the last one. Doorbells are not rung
  /// yet.
  bool advance();
  /// Rings those who may sleep until one of the steps done since the last call, after a fence.
  /// Whether there were such steps.
  bool ring();
  /// Where it stands.
  BlockContext context() const;
  /// Instructions done.
  uint32_t slices() const { return numDone; }

private:
  bool arrived();
  void doMember();
  void copy();
  void reduce();
  char *addressOf(const FlatLines::Operand &which) const;

  FlatLines &lines;
  const Invocation &invocation;
  const FlatLines::Step *step;
  const FlatLines::Polled *polled; // the next to look at
  uint32_t numArrived = 0;         // of the step's
  const FlatLines::Member *member;
  const FlatLines::Operand *operand;
  const uint32_t *toRing, *rungTo;
  uint32_t numDone = 0, numSeen = 0;
};

} // namespace occl::interpreter
