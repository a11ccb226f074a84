// The instructions of a plan. See shape.h.
#include "plan/model/names.h"
#include "plan/verify/checks/network.h"
#include "plan/verify/checks/shape.h"

#include <cstdlib>
#include <utility>

namespace occl::plan::verify {

namespace {

class InstructionChecker {
public:
  InstructionChecker(const Plan &plan, const Limits &most)
      : plan(plan), most(most), lastUser(plan.connections.size(), kNone) {}

  Finding run() {
    for (place.rank = 0; place.rank < plan.numRanks; ++place.rank) {
      const RankPlan &rank = plan.ranks[place.rank];
      for (place.threadBlock = 0; place.threadBlock < rank.numThreadBlocks; ++place.threadBlock) {
        const ThreadBlock &block = plan.threadBlocks[rank.firstThreadBlock + place.threadBlock];
        for (place.instruction = 0; place.instruction < block.numInstructions;
             ++place.instruction) {
          current = block.firstInstruction + place.instruction;
          // In the plan's order, so that of several faults the same one is reported each time.
          if (Finding finding = check(plan.instructions[current]))
            return finding;
        }
      }
    }
    return {};
  }

private:
  Finding error(Code code, std::string message) const {
    return VerifyError{.code = code,
                       .message = std::move(message),
                       .place = place,
                       .location = plan.instructions[current].location};
  }

  Finding check(const Instruction &instruction) {
    if (static_cast<unsigned>(instruction.opcode) >= kNumOpcodes)
      return error(Code::UnknownInstruction, "the opcode is invalid");
    if (instruction.location != kNoLocation && !isLocation(instruction.location))
      return error(Code::BadLocation,
                   "there is no source location " + std::to_string(instruction.location));
    // Each part may rely on those before: the operands are looked at when their number is known to
    // be within the limits, overlaps when ranges are known to lie in their buffers.
    for (Finding (InstructionChecker::*part)(const Instruction &) :
         {&InstructionChecker::checkCounts, &InstructionChecker::checkOperands,
          &InstructionChecker::checkOverlap, &InstructionChecker::checkDependencies})
      if (Finding finding = (this->*part)(instruction))
        return finding;
    return {};
  }

  bool isLocation(uint32_t location) const {
    return location < plan.locations.size() && plan.locations[location].file < plan.files.size();
  }

  Finding checkCounts(const Instruction &instruction) {
    // Signals and waits move no data, and have other rules throughout.
    if (isControl(instruction.opcode))
      return checkControl(instruction);
    if (instruction.count == 0 || instruction.count > most.chunks)
      return error(Code::BadNumber, "it moves " + std::to_string(instruction.count) +
                                        " chunks, allowed are 1 to " + std::to_string(most.chunks));
    if (instruction.extent >= plan.partChunks)
      return error(Code::BadNumber, "extent " + std::to_string(instruction.extent) +
                                        " is no chunk of a part of " +
                                        std::to_string(plan.partChunks));
    if (instruction.value != 0)
      return error(Code::BadNumber, "only wait has a value");
    // `final` marks the reduction that completes a result (an average divides there); a copy
    // completes nothing.
    if (instruction.final && instruction.numSources < 2)
      return error(Code::BadNumber, "it is marked final but reduces nothing");
    // Both directions would be harmless to execute, but the flag says for which operations a plan
    // may be used, and a reader trusts it.
    if (instruction.final && !plan.average)
      return error(Code::BadNumber,
                   "it is marked final, but the plan says that nothing is averaged");
    return checkNumbers(instruction);
  }

  Finding checkControl(const Instruction &instruction) {
    if (instruction.count != 0 || instruction.extent != 0 || instruction.final)
      return error(Code::BadNumber,
                   "it moves no chunks, but has a count, an extent or a reduction's final mark");
    if ((instruction.value != 0) != (instruction.opcode == Opcode::Wait))
      return error(Code::BadNumber, instruction.value == 0
                                        ? "the value that it waits for is 0"
                                        : "only wait has a value");
    return checkNumbers(instruction);
  }

  Finding checkNumbers(const Instruction &instruction) {
    uint32_t numOperands = instruction.numSources + instruction.numDestinations;
    if (numOperands > most.operands || instruction.numDependencies > most.dependencies)
      return error(Code::LimitExceeded,
                   "it has " + std::to_string(numOperands) + " operands and " +
                       std::to_string(instruction.numDependencies) + " dependencies, allowed are " +
                       std::to_string(most.operands) + " and " + std::to_string(most.dependencies));
    // Bounds the verifier's own time: its proofs go over all chunks of all operands.
    work += uint64_t{instruction.count} * numOperands;
    if (instruction.opcode == Opcode::LoadReduceStore) // compares all pairs, see checkOverlap()
      work += uint64_t{numOperands} * instruction.numDestinations;
    if (work > most.chunkAccesses)
      return error(Code::LimitExceeded, "up to here the plan accesses more than " +
                                            std::to_string(most.chunkAccesses) + " chunks");
    return {};
  }

  Finding checkOperands(const Instruction &instruction) {
    // The opcode's row says how many sources and destinations it has of which kind; here both are
    // counted and compared. 255 in a row means any number.
    OpcodeShape shape = shapeOf(instruction.opcode);
    uint32_t connectionSources = 0, localDestinations = 0;
    for (const Operand &source : plan.sourcesOf(instruction)) {
      connectionSources += source.kind == OperandKind::Connection;
      if (Finding finding = checkOperand(instruction, source, true))
        return finding;
    }
    for (const Operand &destination : plan.destinationsOf(instruction)) {
      localDestinations += destination.kind != OperandKind::Connection;
      if (Finding finding = checkOperand(instruction, destination, false))
        return finding;
    }
    bool tooMany = shape.maxSources != 255 && instruction.numSources > shape.maxSources;
    // A wait takes counters and nothing else.
    bool isMixed = isControl(instruction.opcode) && connectionSources != instruction.numSources;
    if (instruction.numSources < shape.minSources || tooMany || isMixed ||
        (shape.needsLocalSource && connectionSources != 0) ||
        (shape.needsConnectionSource && connectionSources == 0))
      return error(Code::WrongOperands, wrongOperands(instruction, "sources"));
    // A destination that is not local is a send.
    uint32_t sends = instruction.numDestinations - localDestinations;
    if (localDestinations < shape.minLocalDestinations ||
        (shape.maxLocalDestinations != 255 && localDestinations > shape.maxLocalDestinations) ||
        (sends != 0) != shape.sends || (instruction.opcode == Opcode::Signal && sends != 1))
      return error(Code::WrongOperands, wrongOperands(instruction, "destinations"));
    return {};
  }

  static std::string wrongOperands(const Instruction &instruction, const char *which) {
    return std::string(mnemonic(instruction.opcode)) + " has the wrong kind or number of " + which;
  }

  Finding checkOperand(const Instruction &instruction, const Operand &operand, bool isSource) {
    // The kinds are read from a file as numbers; anything beyond the last one would index no table.
    if (operand.kind > OperandKind::Connection)
      return error(Code::WrongOperands, "the kind of an operand is invalid");
    if (operand.kind == OperandKind::Connection)
      return checkConnection(instruction, operand, isSource);
    // Only loadReduceStore reaches into other ranks' memory: for the others the owner of each
    // access is known without looking at operands, which all proofs rely on.
    if (operand.rank >= plan.numRanks ||
        (operand.rank != place.rank && instruction.opcode != Opcode::LoadReduceStore))
      return error(Code::OutsideOfBuffer,
                   "it accesses a buffer of rank " + std::to_string(operand.rank) +
                       ": that rank does not exist, or the instruction is not loadReduceStore");
    uint32_t size = sizeOf(plan.ranks[operand.rank], operand.kind);
    // In 64 bits: the sum of two 32-bit numbers could wrap around and pass.
    if (uint64_t{operand.index} + instruction.count > size)
      return error(Code::OutsideOfBuffer,
                   "it accesses " + std::string(nameOf(operand.kind)) + " chunks " +
                       std::to_string(operand.index) + " to " +
                       std::to_string(uint64_t{operand.index} + instruction.count - 1) + " of " +
                       std::to_string(size));
    // Chunks of a part differ in size by their number in it, except in plans for uniform chunks;
    // scratch takes the size of what is stored there.
    if (operand.kind != OperandKind::Scratch && !plan.uniformChunks &&
        operand.index % plan.partChunks != instruction.extent)
      return error(Code::WrongExtent,
                   std::string(nameOf(operand.kind)) + " chunk " + std::to_string(operand.index) +
                       " has extent " + std::to_string(operand.index % plan.partChunks) +
                       ", the instruction " + std::to_string(instruction.extent) +
                       ": only a plan for uniform chunks may mix them");
    return {};
  }

  Finding checkConnection(const Instruction &instruction, const Operand &operand, bool isSource) {
    auto name = [&] { return "connection " + std::to_string(operand.index); };
    // Before anything else is asked of it, as its number is still only a number of the file.
    if (operand.index >= plan.connections.size())
      return error(Code::WrongEnd, "there is no " + name());
    if (operand.rank != 0)
      return error(Code::WrongEnd, "the operand of " + name() + " names a rank");
    const Connection &connection = plan.connections[operand.index];
    if (connection.isCounter != isControl(instruction.opcode))
      return error(Code::WrongEnd,
                   name() + (connection.isCounter ? " is a counter: only signal and wait take one"
                                                  : " is no counter: it takes sends and receives"));
    // The rank has the end that it uses: that of the source for a send, one of the destinations for
    // a receive.
    bool isHere = isSource ? endpointOf(plan, connection, place.rank) != kNone
                           : connection.source == place.rank;
    if (!isHere)
      return error(Code::WrongEnd, name() + " (" + describeConnection(plan, connection) +
                                       ") does not " + (isSource ? "end" : "start") + " here");
    // Each end has a FIFO; two messages of one connection within an instruction would have no
    // defined order.
    if (std::exchange(lastUser[operand.index], current) == current)
      return error(Code::ConnectionTwice, "it uses " + name() + " twice");
    return {};
  }

  /// A destination must be disjoint from each source or the same range: else slices would read what
  /// others wrote. Two destinations must be disjoint.
  Finding checkOverlap(const Instruction &instruction) {
    std::span<const Operand> destinations = plan.destinationsOf(instruction);
    for (size_t i = 0; i < destinations.size(); ++i) {
      if (destinations[i].kind == OperandKind::Connection)
        continue;
      for (const Operand &source : plan.sourcesOf(instruction))
        if (Finding finding = checkPair(instruction, source, destinations[i], true))
          return finding;
      for (const Operand &other : destinations.first(i))
        if (Finding finding = checkPair(instruction, other, destinations[i], false))
          return finding;
    }
    return {};
  }

  Finding checkPair(const Instruction &instruction, const Operand &a, const Operand &b,
                    bool mayBeSame) const {
    // In place, input and output are one memory with an offset between them; only then can ranges
    // of different kinds overlap.
    bool aliases = plan.inPlace && a.kind != b.kind && isUserBuffer(a.kind) && isUserBuffer(b.kind);
    if (a.rank != b.rank || (a.kind != b.kind && !aliases))
      return {};
    int64_t distance = position(a) - position(b);
    // The same range is allowed for a source and a destination, because each slice is read before
    // it is written; two destinations would write each slice twice.
    if ((distance == 0 && mayBeSame) || std::abs(distance) >= instruction.count)
      return {};
    Finding overlap = error(
        Code::Overlap, std::string(nameOf(a.kind)) + " chunks from " + std::to_string(a.index) +
                           " and " + std::string(nameOf(b.kind)) + " chunks from " +
                           std::to_string(b.index) + " overlap: split the instruction");
    // Without the mode the message would be wrong for a plan that is valid out of place.
    if (aliases)
      overlap->mode = AliasMode::InPlace;
    return overlap;
  }

  static bool isUserBuffer(OperandKind kind) {
    return kind == OperandKind::Input || kind == OperandKind::Output;
  }

  /// The chunk number of a range's begin where input and output share a buffer. Two ranges of the
  /// input have the same distance anyway.
  int64_t position(const Operand &operand) const {
    bool isInput = operand.kind == OperandKind::Input;
    return int64_t{operand.index} + (isInput ? plan.ranks[operand.rank].inPlaceOffset : 0);
  }

  Finding checkDependencies(const Instruction &instruction) {
    const RankPlan &rank = plan.ranks[place.rank];
    for (const Dependency &dependency : plan.dependenciesOf(instruction)) {
      auto dependencyError = [&](const char *what) {
        return error(Code::BadDependency,
                     "the dependency on thread block " + std::to_string(dependency.threadBlock) +
                         ", instruction " + std::to_string(dependency.instruction) + what);
      };
      // A dependency counts instructions of a thread block of the own rank; other ranks are waited
      // for by messages and signals.
      if (dependency.threadBlock >= rank.numThreadBlocks ||
          dependency.instruction >=
              plan.threadBlocks[rank.firstThreadBlock + dependency.threadBlock].numInstructions)
        return dependencyError(" points nowhere");
      // Such a wait could not end: thread blocks execute in order.
      if (dependency.threadBlock == place.threadBlock &&
          dependency.instruction >= place.instruction) {
        Finding finding =
            dependencyError(" points to itself or to a later instruction of its own thread block");
        // What stands there has not been checked yet, and so is not described.
        Place later = {place.rank, dependency.threadBlock, dependency.instruction};
        finding->witness = {{"it would wait for " + describePlace(later), later}};
        return finding;
      }
    }
    return {};
  }

  const Plan &plan;
  const Limits &most;
  std::vector<uint32_t> lastUser; // of each connection: the last instruction that names it
  Place place;
  uint32_t current = 0;
  uint64_t work = 0;
};

} // namespace

Finding checkInstructions(const Plan &plan, const Limits &most) {
  return InstructionChecker(plan, most).run();
}

Finding checkShape(const Plan &plan, const Limits &most) {
  if (Finding finding = checkStructure(plan, most))
    return finding;
  return checkInstructions(plan, most);
}

} // namespace occl::plan::verify
