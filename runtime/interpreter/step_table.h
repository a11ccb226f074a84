// The steps of a thread block on a host, resolved when its program is bound: all that executing
// them would look up lies side by side in the order of use. What is left is to add where an
// invocation's memory lies and which flags are its own. StepDriver (step_driver.h) executes it.
//
// For thread blocks of plain lines: on one tile, in messages of one slice, which wait for nothing
// but lines and store nothing but lines and buffers.
#pragma once

#include "runtime/interpreter/fold_host.h"
#include "runtime/interpreter/invocation.h"

#include <cstdint>
#include <vector>

namespace occl::interpreter {

/// One tile, one slice, nothing to wait for but lines and announcements, nothing to store but lines
/// and buffers. Of the first instruction of a step: all the step's are so.
bool isPlainLines(const Program &program, const BoundInstruction &instruction);

/// Immutable: concurrent reads are safe.
class StepTable {
public:
  /// Of a thread block whose instructions are all plain lines.
  StepTable(const Program &program, const BoundBlock &block);

private:
  friend class StepDriver;

  /// An address of an invocation is that of the place and the offset.
  struct Operand {
    uint64_t offset = 0;
    uint64_t flag = 0; // of lines: more than the invocation's flagBase; else 0
    Place place = 0;
  };
  /// An instruction of a step.
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
  /// A source in lines, and whom it comes from.
  struct Polled {
    uint64_t offset = 0, flag = 0, bytes = 0;
    Place place = 0;
    uint32_t connection = 0, peer = 0;
  };
  /// Kept with its first instruction; its others have nothing.
  struct Step {
    uint32_t numMembers = 0; // they begin where the step does
    uint32_t firstOperand = 0;
    uint32_t firstPolled = 0, numPolled = 0;
    uint32_t firstNeed = 0, numNeeds = 0; // places that no source in lines names
    uint32_t firstRung = 0, numRung = 0;
  };

  void addStep(const Program &program, const BoundInstruction *first);
  void addMember(const Program &program, const BoundInstruction &instruction);
  void addOperand(const Program &program, const BoundOperand &operand);

  LineFormat line;
  std::vector<Step> steps;       // by instruction
  std::vector<Member> members;   // by instruction
  std::vector<Operand> operands; // of each member the sources, then the destinations
  std::vector<Polled> polled;    // of each step
  std::vector<BoundNeed> needs;  // of each step
  std::vector<uint32_t> rung;    // of each step: ranks that may sleep until it is done
};

} // namespace occl::interpreter
