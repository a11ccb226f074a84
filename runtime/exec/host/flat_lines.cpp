#include "runtime/exec/host/flat_lines.h"

#include "runtime/base/cache_line.h"
#include "runtime/exec/host/lines_host.h"
#include "runtime/exec/step/plain_lines.h"
#include "runtime/sync/doorbell.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace occl::interpreter {

namespace {

/// More than that is not small: what is looked up costs little beside what is moved.
constexpr uint32_t kMostSteps = 8, kMostOperands = 64;
constexpr uint64_t kMostStageBytes = 32 << 10;

/// What folds take at once; staging areas are multiples of it.
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

std::unique_ptr<FlatLines> FlatLines::make(const Program &program) {
  if (program.numBlocks != 1 || program.line.bytes == 0)
    return nullptr;
  const BoundBlock &block = program.blocks[0];
  std::unique_ptr<FlatLines> flat(new FlatLines);
  flat->line = program.line;
  for (uint32_t i = 0; i < block.numInstructions; i += flat->steps.back().numMembers) {
    flat->steps.push_back({.firstInstruction = i});
    if (!flat->add(program, program.instructions[block.firstInstruction + i]))
      return nullptr;
  }
  if (flat->steps.empty() || flat->steps.size() > kMostSteps ||
      flat->mostOperands > kMostOperands || flat->stageBytes > kMostStageBytes)
    return nullptr;
  flat->pointers = std::make_unique<char *[]>(flat->mostOperands);
  flat->placeStages();
  return flat;
}

bool FlatLines::add(const Program &program, const BoundInstruction &leader) {
  if (!isPlainLines(program, leader))
    return false;
  Step &step = steps.back();
  for (const BoundInstruction &instruction : std::span(&leader, leader.numInstructions)) {
    if (instruction.elements == 0)
      return false;
    for (const BoundOperand &source :
         operandsOf(program, instruction).first(instruction.numSources))
      if (isInLines(source)) {
        polled.push_back({offsetOf(program, source), flagOf(program, source),
                          instruction.elements * program.elementBytes, source.place});
        ++step.numPolled;
      }
    addMember(program, instruction);
    ++step.numMembers;
  }
  for (const BoundRelease &release :
       std::span(program.releases + leader.firstRelease, leader.numReleases))
    for (uint32_t p = 0; p < release.numPeers; ++p) {
      rung.push_back(program.peers[release.firstPeer + p]);
      ++step.numRung;
    }
  return true;
}

void FlatLines::addMember(const Program &program, const BoundInstruction &instruction) {
  Member member;
  member.bytes = instruction.elements * program.elementBytes;
  member.numSources = instruction.numSources;
  member.numDestinations = instruction.numDestinations;
  member.divisor = instruction.divides ? program.numRanks : 1;
  const uint64_t paddedBytes = alignUp(member.bytes, kFoldBytes);
  member.isStaged = paddedBytes != member.bytes;
  member.elements = paddedBytes / program.elementBytes;
  if (member.numSources > 1 || member.divisor > 1)
    member.fold =
        foldTable()
            .functions[static_cast<unsigned>(program.type)][static_cast<unsigned>(program.op)];
  members.push_back(member);
  for (const BoundOperand &bound : operandsOf(program, instruction)) {
    operands.push_back(
        {.offset = offsetOf(program, bound), .flag = flagOf(program, bound), .place = bound.place});
    stageBytes += paddedBytes;
  }
  mostOperands = std::max(mostOperands, member.numSources + member.numDestinations);
}

/// One for each operand, so that what lies beyond its bytes stays zero.
void FlatLines::placeStages() {
  stages = std::make_unique<std::byte[]>(stageBytes + kFoldBytes);
  const uint64_t begin = reinterpret_cast<uintptr_t>(stages.get());
  char *next = reinterpret_cast<char *>(stages.get()) + (alignUp(begin, kFoldBytes) - begin);
  Operand *operand = operands.data();
  for (const Member &member : members)
    for (uint32_t i = 0; i < member.numSources + member.numDestinations; ++i) {
      (operand++)->stage = next;
      next += alignUp(member.bytes, kFoldBytes);
    }
}

inline char *FlatRun::addressOf(const FlatLines::Operand &which) const {
  return invocation.places[which.place] + which.offset;
}

bool FlatRun::advance() {
  const FlatLines::Step *const end = lines.steps.data() + lines.steps.size();
  for (; step != end; ++step) {
    if (!arrived())
      return false;
    numArrived = 0;
    for (uint32_t m = 0; m < step->numMembers; ++m)
      doMember();
    numDone += step->numMembers;
    rungTo += step->numRung;
  }
  return true;
}

/// Lines that have been there once are there until the step is done.
bool FlatRun::arrived() {
  for (; numArrived < step->numPolled; ++numArrived, ++polled)
    if (!lines::arrived(lines.line, invocation.places[polled->place] + polled->offset,
                        polled->bytes, invocation.flagBase + polled->flag))
      return false;
  return true;
}

void FlatRun::doMember() {
  member->fold ? reduce() : copy();
  operand += member->numSources + member->numDestinations;
  ++member;
}

void FlatRun::copy() {
  const FlatLines::Operand &source = operand[0];
  const uint64_t bytes = member->bytes;
  const char *from = addressOf(source);
  if (source.flag != 0) {
    char *to = operand[1].flag != 0 ? source.stage : addressOf(operand[1]);
    lines::unpack(lines.line, from, to, bytes);
    from = to;
  }
  for (const FlatLines::Operand &destination : std::span(operand + 1, member->numDestinations)) {
    char *to = addressOf(destination);
    if (destination.flag != 0)
      lines::pack(lines.line, from, to, bytes, invocation.flagBase + destination.flag);
    else if (to != from)
      std::memcpy(to, from, bytes);
  }
}

void FlatRun::reduce() {
  char **const pointers = lines.pointers.get();
  const uint32_t numSources = member->numSources, end = numSources + member->numDestinations;
  const uint64_t bytes = member->bytes;
  const bool isStaged = member->isStaged;
  for (uint32_t i = 0; i < end; ++i) {
    const FlatLines::Operand &each = operand[i];
    char *const address = addressOf(each);
    const bool isStagedHere = isStaged || each.flag != 0;
    pointers[i] = isStagedHere ? each.stage : address;
    if (i >= numSources || !isStagedHere)
      continue;
    if (each.flag != 0)
      lines::unpack(lines.line, address, each.stage, bytes);
    else
      std::memcpy(each.stage, address, bytes);
  }
  member->fold(pointers, numSources, member->numDestinations, member->elements, member->divisor);
  for (uint32_t i = numSources; i < end; ++i) {
    const FlatLines::Operand &each = operand[i];
    if (each.flag != 0)
      lines::pack(lines.line, each.stage, addressOf(each), bytes, invocation.flagBase + each.flag);
    else if (isStaged)
      std::memcpy(addressOf(each), each.stage, bytes);
  }
}

bool FlatRun::ring() {
  const bool hasMoved = numDone != numSeen;
  numSeen = numDone;
  if (toRing == rungTo || invocation.doorbells == nullptr)
    return hasMoved;
  threadFence(std::memory_order_seq_cst);
  for (; toRing != rungTo; ++toRing)
    if (Doorbell *bell = invocation.doorbells[*toRing])
      bell->ringFenced();
  return hasMoved;
}

BlockContext FlatRun::context() const {
  const bool isOver = step == lines.steps.data() + lines.steps.size();
  return {.tile = isOver ? 1u : 0u, .instruction = isOver ? 0 : step->firstInstruction};
}

} // namespace occl::interpreter
