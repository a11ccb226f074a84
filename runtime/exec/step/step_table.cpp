// Tables of a thread block's steps for hosts.
#include "runtime/exec/step/step_table.h"

#include "runtime/base/cache_line.h"

#include <algorithm>
#include <span>

namespace occl::interpreter {

namespace {

/// What processors fold at once: an element by itself takes as long.
constexpr uint64_t kFoldBytes = kCacheLine;

std::span<const BoundRelease> releasesOf(const Program &program, const BoundInstruction &first) {
  return {program.releases + first.firstRelease, first.numReleases};
}

} // namespace

bool isPlainLines(const Program &program, const BoundInstruction &instruction) {
  return program.line.bytes != 0 && program.numTiles == 1 && instruction.count != 0 &&
         instruction.contiguous && instruction.elements <= instruction.sliceElements &&
         instruction.numAcquires == 0 && !instruction.published &&
         std::ranges::none_of(releasesOf(program, instruction), &BoundRelease::isStored);
}

StepTable::StepTable(const Program &program, uint32_t index)
    : program(program), index(index), block(program.blocks[index]),
      fold(foldTable()
               .functions[static_cast<unsigned>(program.type)][static_cast<unsigned>(program.op)]) {
  const std::span instructions(program.instructions + block.firstInstruction,
                               block.numInstructions);
  // Two properties of all instructions decide how the driver goes through the steps.
  plain = std::ranges::all_of(instructions, [&](const BoundInstruction &instruction) {
    return isPlainLines(program, instruction);
  });
  fixed = std::ranges::all_of(
      instructions, [&](const BoundInstruction &instruction) { return isOneSlice(instruction); });
  steps.resize(size_t{block.numInstructions} + 1);
  for (uint32_t i = 0; i < block.numInstructions; i += steps[i].numMembers)
    addStep(i);
  link();
}

/// What the steps have lies in their order.
void StepTable::link() {
  // Pointers are set last, when the tables have stopped growing.
  const Member *member = members.data();
  const Operand *operand = operands.data();
  const Polled *source = polled.data();
  const BoundNeed *need = needs.data();
  const uint32_t *ring = rung.data();
  for (uint32_t i = 0; i < block.numInstructions; i += steps[i].numMembers) {
    Step &step = steps[i];
    step.next = &step + step.numMembers;
    step.members = member;
    step.operands = operand;
    // Only fixed tables have members.
    for (uint32_t m = 0; fixed && m < step.numMembers; ++m, ++member)
      operand += member->numSources + member->numDestinations;
    step.polled = source;
    step.polledEnd = source += step.numPolled;
    step.needs = need;
    need += step.numNeeds;
    step.rung = ring;
    ring += step.numRung;
  }
}

/// On one tile, and nothing of it is read of another rank's buffers or may be.
bool StepTable::isOneSlice(const BoundInstruction &instruction) const {
  const auto mayRefer = [](const auto &any) { return any.mayRefer; };
  return program.numTiles == 1 && instruction.contiguous &&
         instruction.elements <= instruction.sliceElements && !instruction.readsPeers &&
         std::ranges::none_of(releasesOf(program, instruction), mayRefer);
}

void StepTable::addStep(uint32_t i) {
  const BoundInstruction *first = program.instructions + block.firstInstruction + i;
  const auto firstPolled = static_cast<uint32_t>(polled.size());
  Step &step = steps[i];
  step.first = first;
  step.index = i;
  step.numMembers = first->numInstructions;
  step.awaitsWords = first->numAcquires != 0;
  step.storesWords =
      first->published || std::ranges::any_of(releasesOf(program, *first), &BoundRelease::isStored);
  // Sources to poll for every table; members and doorbells for fixed ones alone.
  for (const BoundInstruction &instruction : std::span(first, first->numInstructions)) {
    addPolled(instruction);
    if (fixed)
      addMember(instruction);
  }
  step.numPolled = static_cast<uint32_t>(polled.size()) - firstPolled;
  addNeeds(step);
  if (fixed)
    addRung(step);
}

void StepTable::addNeeds(Step &step) {
  // Sources in lines say by themselves that the place is missing.
  const auto sources = std::span(polled).last(step.numPolled);
  for (const BoundNeed &need :
       std::span(program.needs + step.first->firstNeed, step.first->numNeeds))
    if (std::ranges::find(sources, need.place, &Polled::place) == sources.end()) {
      needs.push_back(need);
      ++step.numNeeds;
    }
}

void StepTable::addRung(Step &step) {
  const size_t before = rung.size();
  // A head beyond the limit wakes nobody, as it is not stored.
  for (const BoundRelease &release : releasesOf(program, *step.first))
    if (release.value + program.slicesPerMessage <= release.limit)
      rung.insert(rung.end(), program.peers + release.firstPeer,
                  program.peers + release.firstPeer + release.numPeers);
  if (step.first->published)
    rung.push_back(program.rank);
  step.numRung = static_cast<uint32_t>(rung.size() - before);
}

void StepTable::addPolled(const BoundInstruction &instruction) {
  for (const BoundOperand &source :
       std::span(program.operands + instruction.firstOperand, instruction.numSources)) {
    if (!isInLines(source))
      continue;
    const ConnectionEnd &end = program.ends[source.end];
    polled.push_back({offsetOf(source), flagOf(source), instruction.elements * program.elementBytes,
                      source.place, static_cast<uint32_t>(&source - program.operands),
                      end.connection, program.peers[end.firstPeer]});
  }
}

void StepTable::addMember(const BoundInstruction &instruction) {
  const auto bound = std::span(program.operands + instruction.firstOperand,
                               size_t{instruction.numSources} + instruction.numDestinations);
  Member member;
  member.bytes = instruction.elements * program.elementBytes;
  member.divisor = instruction.divides ? program.numRanks : 1;
  if (instruction.elements != 0 && (instruction.numSources > 1 || member.divisor > 1))
    member.fold = fold;
  const uint64_t padded = alignUp(member.bytes, kFoldBytes);
  member.isPadded = program.line.bytes != 0 && padded != member.bytes &&
                    bound.size() * padded <= LinePolicy().stageBytes;
  member.stageBytes = member.isPadded ? padded : program.stageStride;
  member.elements = (member.isPadded ? padded : member.bytes) / program.elementBytes;
  if (instruction.elements != 0) {
    member.numSources = instruction.numSources;
    member.numDestinations = instruction.numDestinations;
    for (const BoundOperand &operand : bound)
      addOperand(operand);
  } else {
    // Of nothing there may be no buffer, but there are lines. They are copied from own memory.
    addOperand({.place = kProgressPlace});
    member.numSources = 1;
    for (const BoundOperand &destination : bound.subspan(instruction.numSources))
      if (isInLines(destination)) {
        addOperand(destination);
        ++member.numDestinations;
      }
  }
  members.push_back(member);
}

void StepTable::addOperand(const BoundOperand &operand) {
  operands.push_back({offsetOf(operand), flagOf(operand), operand.place});
}

bool StepTable::isInLines(const BoundOperand &operand) const {
  return program.line.bytes != 0 && operand.slotBytes != 0;
}

uint64_t StepTable::flagOf(const BoundOperand &operand) const {
  return isInLines(operand) ? (uint64_t{operand.message} + 1) * program.slicesPerMessage : 0;
}

/// Of its first slice on the first tile.
uint64_t StepTable::offsetOf(const BoundOperand &operand) const {
  const uint64_t slot = (operand.message & (program.depth - 1)) * program.slicesPerMessage;
  return operand.offset + slot * operand.slotBytes;
}

} // namespace occl::interpreter
