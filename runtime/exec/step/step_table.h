// The steps of a thread block on a host, resolved when its program is bound: all that executing
// them would look up lies side by side in the order of use. What is left is to add where an
// invocation's memory lies and which numbers are its own. StepDriver (step_driver.h) executes it.
//
// In a table that is *fixed* each step is one slice on one tile, so that addresses, lengths and
// flags are known but for that. Else the driver cuts a message into its slices as it comes to them.
#pragma once

#include "runtime/exec/reduce/fold_host.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>
#include <vector>

namespace occl::interpreter {

/// One tile, one slice, nothing to wait for but lines and announcements, nothing to store but lines
/// and buffers. Of the first instruction of a step: all the step's are so.
bool isPlainLines(const Program &program, const BoundInstruction &instruction);

/// Immutable: concurrent reads are safe.
class StepTable {
public:
  /// The program outlives it.
  StepTable(const Program &program, uint32_t block);
  StepTable(const StepTable &) = delete;
  StepTable &operator=(const StepTable &) = delete;

  /// All instructions are plain lines.
  bool isPlain() const { return plain; }

private:
  friend class StepDriver;

  /// An address of an invocation is that of the place and the offset.
  struct Operand {
    uint64_t offset = 0;
    uint64_t flag = 0; // of lines: more than the invocation's flagBase; else 0
    Place place = 0;
  };
  /// An instruction of a fixed step.
  struct Member {
    uint64_t bytes = 0;
    FoldFunction fold = nullptr; // null: a copy
    /// What is folded at once, and from one staging area to the next.
    uint64_t elements = 0, stageBytes = 0;
    uint64_t divisor = 1;
    uint32_t numSources = 0, numDestinations = 0;
    /// All is folded in staging areas, padded to what processors fold at once.
    bool isPadded = false;
  };
  /// A source in lines, and whom it comes from. Not fixed: `operand` says where a slice of it lies.
  struct Polled {
    uint64_t offset = 0, flag = 0, bytes = 0;
    Place place = 0;
    uint32_t operand = 0; // of the program
    uint32_t connection = 0, peer = 0;
  };
  /// Kept with its first instruction; its others have nothing.
  struct Step {
    const BoundInstruction *first = nullptr;
    uint32_t index = 0; // of that in the thread block
    uint32_t numMembers = 0, numPolled = 0, numNeeds = 0, numRung = 0;
    bool awaitsWords = false, storesWords = false;
    const Step *next = nullptr;
    const Member *members = nullptr;
    const Operand *operands = nullptr;
    const Polled *polled = nullptr, *polledEnd = nullptr;
    const BoundNeed *needs = nullptr; // places that no source in lines names
    const uint32_t *rung = nullptr;   // of fixed steps
  };

  bool isOneSlice(const BoundInstruction &instruction) const;
  void addStep(uint32_t i);
  void addPolled(const BoundInstruction &instruction);
  void addMember(const BoundInstruction &instruction);
  void addOperand(const BoundOperand &operand);
  void addNeeds(Step &step);
  void addRung(Step &step);
  void link();
  bool isInLines(const BoundOperand &operand) const;
  uint64_t flagOf(const BoundOperand &operand) const;
  uint64_t offsetOf(const BoundOperand &operand) const;

  const Program &program;
  const uint32_t index; // of the thread block
  const BoundBlock &block;
  FoldFunction fold;
  bool fixed = false, plain = false;
  std::vector<Step> steps;       // by instruction, and one behind the last
  std::vector<Member> members;   // of fixed steps
  std::vector<Operand> operands; // of each member the sources, then the destinations
  std::vector<Polled> polled;    // of each step
  std::vector<BoundNeed> needs;  // of each step
  std::vector<uint32_t> rung;    // of each step: ranks that may sleep until it is done
};

} // namespace occl::interpreter
