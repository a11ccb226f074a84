// The resumable driver of hosts: polls a step of a StepTable, executes it, publishes it, goes on
// with the next one, and returns when one is blocked. It can be left between any two steps, and
// another driver begins where it stood.
//
// A step is a transaction as in step.h: nothing is stored before all that it waits for is there.
#pragma once

#include "runtime/exec/host/partitions.h"
#include "runtime/exec/host/peer_memory.h"
#include "runtime/exec/host/target_host.h"
#include "runtime/exec/step/message.h"
#include "runtime/exec/step/step.h"
#include "runtime/exec/step/step_table.h"

#include <array>
#include <cstdint>
#include <span>

namespace occl::interpreter {

/// One invocation's way through a thread block. Used by who has claimed the thread block. The
/// invocation's wordBase is 0.
class StepDriver {
public:
  /// From `context` on. The target is not used for anything else meanwhile. partitions: null if the
  /// buffers are there as a whole.
  StepDriver(const StepTable &table, const Invocation &invocation, const BlockContext &context,
             HostTarget &target, Partitions *partitions = nullptr)
      : table(table), program(table.program), invocation(invocation), target(target),
        partitions(partitions), places(invocation.places),
        end(table.steps.data() + table.block.numInstructions),
        step(context.tile == program.numTiles ? end : table.steps.data() + context.instruction),
        tile(context.tile), slice(context.slice), cut{.done = program.slicesPerMessage},
        polled(step->polled), toRing(step->rung), rungTo(toRing) {}

  /// Does what can be done of the block, or so much of it that at least `maxSlices` are done: then
  /// Progressed. Several instructions of a step each count as one. Doorbells may not have been rung
  /// yet.
  StepStatus advance(uint32_t maxSlices = ~0u) {
    return table.fixed ? advanceOf<true>(maxSlices) : advanceOf<false>(maxSlices);
  }
  /// Rings those who may sleep until one of the steps done since the last call, after a fence.
  /// Whether there were such steps.
  bool ring() {
    const bool hasMoved = numDone != numSeen;
    numSeen = numDone;
    ringNoted();
    return hasMoved;
  }
  /// Where it stands.
  BlockContext context() const;
  /// What it has found missing once it is blocked, or could not read once a peer is lost.
  const Obstacle &obstacle() const { return missing; }
  /// Done.
  uint32_t slices() const { return numDone; }

private:
  /// A slice of a message.
  struct Cut {
    uint64_t begin = 0, end = 0; // elements of the message
    uint64_t done = 0;           // slices of the message, with this one
    bool isLast = true;
  };

  /// kFixed: of a fixed table.
  template <bool kFixed> StepStatus advanceOf(uint32_t maxSlices);
  // Poll.
  template <bool kFixed> bool arrived();
  bool areAnnounced();
  bool haveWords();
  template <bool kFixed> bool haveLines();
  bool isThere(const char *base, const StepTable::Polled &polled) const;
  bool isSliceThere(const StepTable::Polled &polled) const;
  template <bool kFixed> bool mayAccess();
  bool pollDrains();
  // Execute.
  void executeFixed();
  void copy(const StepTable::Member &member, const StepTable::Operand *operands);
  void reduce(const StepTable::Member &member, const StepTable::Operand *operands);
  bool executeSlice();
  template <class Visit> bool forEachPiece(Visit visit) const;
  template <bool kFixed, class Visit> bool forEachOfUsers(Visit visit) const;
  bool foldPieces();
  bool foldPiece(uint64_t inSlice, uint64_t inUser, uint64_t inScratch, uint64_t elements);
  bool followReference(uint32_t source, uint64_t inSlice, uint64_t elements);
  bool sourcesWereKept();
  Reference referenceOfSlice() const;
  // Publish, advance.
  template <bool kFixed> void noteStored();
  void publish();
  template <bool kFixed> void goOn();
  template <bool kFixed> void nextStep();
  void noteRung();
  void noteRung(uint32_t rank);
  void ringNoted() {
    if (toRing != rungTo || numNoted != 0)
      ringAll();
  }
  void ringAll();
  void ringOne(uint32_t rank) const;

  std::span<const BoundOperand> operandsOf(const BoundInstruction &of) const {
    return {program.operands + of.firstOperand, size_t{of.numSources} + of.numDestinations};
  }
  Cut cutSlice() const;
  bool isMessage(const BoundOperand &operand) const {
    return operand.kind == plan::OperandKind::Connection;
  }
  bool isInLines(const BoundOperand &operand) const {
    return program.line.bytes != 0 && operand.slotBytes != 0;
  }
  uint64_t message(const BoundOperand &operand) const {
    return tile * operand.messagesPerTile + operand.message;
  }
  uint64_t flagOf(const BoundOperand &operand) const {
    return invocation.flagBase + message(operand) * program.slicesPerMessage + cut.done;
  }
  uint64_t slotIndex(const BoundOperand &operand) const {
    return (message(operand) & (program.depth - 1)) * program.slicesPerMessage + slice;
  }
  /// Of a message; of a buffer, its first chunk.
  char *slotOf(const BoundOperand &operand) const {
    return placeOf(operand.place) + operand.offset + slotIndex(operand) * operand.slotBytes;
  }
  uint64_t *referenceWord(char *tail, const BoundOperand &operand) const {
    return wordAt(tail) + 1 + slotIndex(operand);
  }
  /// What a tail or head is once this slice is done.
  uint64_t valueOf(const BoundRelease &released) const {
    return released.value + tile * released.perTile + cut.done;
  }
  uint64_t sliceBytes() const { return (cut.end - cut.begin) * program.elementBytes; }
  static uint64_t *wordAt(char *address) { return reinterpret_cast<uint64_t *>(address); }
  char *placeOf(Place place) const { return HostTarget::acquire(places + place); }
  char *addressOf(const StepTable::Operand &which) const {
    return placeOf(which.place) + which.offset;
  }
  bool lacks(BlockReason reason, uint32_t what, uint32_t peer) {
    missing = {reason, what, peer};
    return false;
  }

  const StepTable &table;
  const Program &program;
  const Invocation &invocation;
  HostTarget &target;
  Partitions *const partitions;
  char *const *const places;
  const StepTable::Step *const end, *step;
  uint64_t tile;
  uint32_t slice;
  Cut cut;
  const StepTable::Polled *polled; // the next source in lines to look at
  /// Ranks to ring: of fixed steps, of the table's; of others, noted here.
  const uint32_t *toRing, *rungTo;
  std::array<uint32_t, 32> noted;
  uint32_t numNoted = 0;
  uint32_t numDone = 0, numSeen = 0;
  Obstacle missing;
};

/// A look at a thread block: steps until it is finished or blocked, or so many slices are done
/// (then Progressed), but for the slices of a step of several instructions, of which there may be
/// more than `maxSlices`, by fewer than kMaxStepInstructions.
StepResult runOnHost(const Invocation &invocation, const StepTable &table, BlockContext &context,
                     HostTarget &target, uint32_t maxSlices, Partitions *partitions = nullptr);

/// Of the step that begins at `instruction` of a thread block, the instruction that waits for
/// `obstacle`: reports name it.
uint32_t waitingInstruction(const Program &program, uint32_t block, uint32_t instruction,
                            const Obstacle &obstacle);

} // namespace occl::interpreter
