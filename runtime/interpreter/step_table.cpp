#include "runtime/interpreter/step_table.h"

#include "runtime/base/cache_line.h"

#include <algorithm>
#include <span>

namespace occl::interpreter {

namespace {

/// What processors fold at once: an element by itself takes as long.
constexpr uint64_t kFoldBytes = kCacheLine;

bool isInLines(const BoundOperand &operand) { return operand.slotBytes != 0; }

uint64_t flagOf(const Program &program, const BoundOperand &operand) {
  return isInLines(operand) ? (uint64_t{operand.message} + 1) * program.slicesPerMessage : 0;
}

uint64_t offsetOf(const Program &program, const BoundOperand &operand) {
  const uint64_t slot = (operand.message & (program.depth - 1)) * program.slicesPerMessage;
  return operand.offset + (isInLines(operand) ? slot * operand.slotBytes : 0);
}

std::span<const BoundOperand> operandsOf(const Program &program,
                                         const BoundInstruction &instruction) {
  return {program.operands + instruction.firstOperand,
          size_t{instruction.numSources} + instruction.numDestinations};
}

} // namespace

bool isPlainLines(const Program &program, const BoundInstruction &instruction) {
  return program.line.bytes != 0 && program.numTiles == 1 && instruction.count != 0 &&
         instruction.contiguous && instruction.elements <= instruction.sliceElements &&
         instruction.numAcquires == 0 && !instruction.published &&
         std::ranges::none_of(
             std::span(program.releases + instruction.firstRelease, instruction.numReleases),
             &BoundRelease::isStored);
}

StepTable::StepTable(const Program &program, const BoundBlock &block) : line(program.line) {
  steps.resize(block.numInstructions);
  for (uint32_t i = 0; i < block.numInstructions; i += steps[i].numMembers)
    addStep(program, program.instructions + block.firstInstruction + i);
}

void StepTable::addStep(const Program &program, const BoundInstruction *first) {
  Step &step = steps[members.size()];
  step = {.numMembers = first->numInstructions,
          .firstOperand = static_cast<uint32_t>(operands.size()),
          .firstPolled = static_cast<uint32_t>(polled.size()),
          .firstNeed = static_cast<uint32_t>(needs.size()),
          .firstRung = static_cast<uint32_t>(rung.size())};
  for (const BoundInstruction &instruction : std::span(first, first->numInstructions))
    addMember(program, instruction);
  step.numPolled = static_cast<uint32_t>(polled.size()) - step.firstPolled;
  const auto sources = std::span(polled).subspan(step.firstPolled);
  for (const BoundNeed &need : std::span(program.needs + first->firstNeed, first->numNeeds))
    if (std::ranges::find(sources, need.place, &Polled::place) == sources.end())
      needs.push_back(need);
  step.numNeeds = static_cast<uint32_t>(needs.size()) - step.firstNeed;
  for (const BoundRelease &release :
       std::span(program.releases + first->firstRelease, first->numReleases))
    rung.insert(rung.end(), program.peers + release.firstPeer,
                program.peers + release.firstPeer + release.numPeers);
  step.numRung = static_cast<uint32_t>(rung.size()) - step.firstRung;
}

void StepTable::addMember(const Program &program, const BoundInstruction &instruction) {
  const auto bound = operandsOf(program, instruction);
  Member member;
  member.bytes = instruction.elements * program.elementBytes;
  member.divisor = instruction.divides ? program.numRanks : 1;
  if (instruction.elements != 0 && (instruction.numSources > 1 || member.divisor > 1))
    member.fold =
        foldTable()
            .functions[static_cast<unsigned>(program.type)][static_cast<unsigned>(program.op)];
  const uint64_t padded = alignUp(member.bytes, kFoldBytes);
  member.isPadded = padded != member.bytes && bound.size() * padded <= LinePolicy().stageBytes;
  member.stageBytes = member.isPadded ? padded : program.stageStride;
  member.elements = (member.isPadded ? padded : member.bytes) / program.elementBytes;
  for (const BoundOperand &source : bound.first(instruction.numSources)) {
    if (!isInLines(source))
      continue;
    const ConnectionEnd &end = program.ends[source.end];
    polled.push_back({offsetOf(program, source), flagOf(program, source), member.bytes,
                      source.place, end.connection, program.peers[end.firstPeer]});
  }
  if (instruction.elements != 0) {
    member.numSources = instruction.numSources;
    for (const BoundOperand &operand : bound)
      addOperand(program, operand);
    member.numDestinations = instruction.numDestinations;
  } else {
    // Of nothing there may be no buffer, but there are lines. They are copied from own memory.
    addOperand(program, {.place = kProgressPlace});
    member.numSources = 1;
    for (const BoundOperand &destination : bound.subspan(instruction.numSources))
      if (isInLines(destination)) {
        addOperand(program, destination);
        ++member.numDestinations;
      }
  }
  members.push_back(member);
}

void StepTable::addOperand(const Program &program, const BoundOperand &operand) {
  operands.push_back({offsetOf(program, operand), flagOf(program, operand), operand.place});
}

} // namespace occl::interpreter
