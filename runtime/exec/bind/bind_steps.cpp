// What is known of a step before it runs: the control words that it waits for and stores, the
// places that it uses, which instructions make one step.
#include "runtime/exec/bind/binder.h"

#include <span>

namespace occl::interpreter {

void Binder::resolveSteps() {
  for (uint32_t b = 0; b < rankPlan.numThreadBlocks; ++b) {
    const plan::ThreadBlock &planBlock = plan.threadBlocks[rankPlan.firstThreadBlock + b];
    auto instructions = plan.instructionsOf(planBlock);
    for (uint32_t i = 0; i < planBlock.numInstructions; ++i) {
      BoundInstruction &bound = binding->instructions[binding->blocks[b].firstInstruction + i];
      // The words of an instruction are consecutive, so that steps can be joined.
      bound.firstAcquire = static_cast<uint32_t>(binding->acquires.size());
      bound.firstRelease = static_cast<uint32_t>(binding->releases.size());
      bound.firstNeed = static_cast<uint32_t>(binding->needs.size());
      bound.movesData = bound.count != 0;
      bound.numStepOperands = static_cast<uint16_t>(bound.numSources + bound.numDestinations);
      for (uint32_t o = 0; o < bound.numStepOperands; ++o)
        resolveOperand(bound, bound.firstOperand + o, o < bound.numSources);
      resolveDependencies(instructions[i], b);
      bound.numAcquires = static_cast<uint16_t>(binding->acquires.size() - bound.firstAcquire);
      bound.numReleases = static_cast<uint16_t>(binding->releases.size() - bound.firstRelease);
      bound.numNeeds = static_cast<uint16_t>(binding->needs.size() - bound.firstNeed);
    }
  }
}

void Binder::resolveOperand(BoundInstruction &bound, uint32_t index, bool isSource) {
  BoundOperand &operand = binding->operands[index];
  if (operand.kind != plan::OperandKind::Connection) {
    // A buffer of another rank is usable once that rank has announced it.
    auto kind = static_cast<uint32_t>(operand.kind);
    bool isOwn = operand.rank == request.rank;
    operand.place = isOwn ? kind : peerBufferPlace(plan.numRanks, operand.rank, kind);
    bound.readsPeers |= isSource && !isOwn;
    return isOwn ? void() : pushNeed(bound, operand.rank, 0);
  }
  // A message has a slot, and words at the ends of its connection.
  const ConnectionEnd &end = binding->ends[operand.end];
  operand.place = arenaPlace(end.dataRank);
  operand.offset = end.slotsOffset;
  operand.slotBytes = end.slotBytes;
  operand.messagesPerTile = end.messagesPerTile;
  operand.mayRefer = end.mayRefer;
  bound.readsPeers |= isSource && end.mayRefer;
  if (isSource)
    resolveSource(bound, index, end);
  else
    resolveDestination(bound, index, end);
}

/// Waits for the tail, returns credit.
void Binder::resolveSource(BoundInstruction &bound, uint32_t index, const ConnectionEnd &end) {
  const uint64_t slices = binding->bound.slicesPerMessage;
  const BoundOperand &operand = binding->operands[index];
  uint64_t first = operand.message * slices, perTile = end.messagesPerTile * slices;
  // Lines show by themselves that they have come, other messages by the tail.
  if (end.isCounter || !hasLines())
    binding->acquires.push_back({end.tailOffset, static_cast<int64_t>(first),
                                 static_cast<int64_t>(perTile), operand.place, end.connection,
                                 binding->peers[end.firstPeer],
                                 end.isCounter ? BlockReason::Signal : BlockReason::Data});
  else
    pushNeed(bound, end.dataRank, end.connection);
  // Credit is given only if the source will look at it.
  if (end.isCounter || end.lastCredit == 0)
    return;
  pushNeed(bound, end.creditRank, end.connection);
  binding->releases.push_back({end.headsOffset, first, perTile, end.lastCredit,
                               arenaPlace(end.creditRank), index, end.firstPeer,
                               static_cast<uint16_t>(end.numPeers)});
}

/// Waits for credit, stores the tail.
void Binder::resolveDestination(BoundInstruction &bound, uint32_t index, const ConnectionEnd &end) {
  const Program &program = binding->bound;
  const BoundOperand &operand = binding->operands[index];
  uint64_t first = operand.message * program.slicesPerMessage;
  uint64_t perTile = end.messagesPerTile * program.slicesPerMessage;
  uint64_t capacity = program.depth * program.slicesPerMessage;
  // The slot is free once each destination has read the message `capacity` slices before.
  for (uint32_t p = 0; end.lastCredit != 0 && p < end.numPeers; ++p)
    binding->acquires.push_back(
        {end.headsOffset + p * kControlStride, static_cast<int64_t>(first - capacity),
         static_cast<int64_t>(perTile), arenaPlace(end.creditRank), end.connection,
         binding->peers[end.firstPeer + p], BlockReason::Credit});
  // The memory of the slot must be known before anything is stored there.
  pushNeed(bound, end.dataRank, end.connection);
  binding->releases.push_back({end.tailOffset, first, perTile, ~0ull, operand.place, index,
                               end.firstPeer, static_cast<uint16_t>(end.numPeers),
                               end.isCounter || !hasLines(), end.mayRefer});
}

/// What a thread block has done itself before needs no poll.
void Binder::resolveDependencies(const plan::Instruction &instruction, uint32_t block) {
  for (const plan::Dependency &dependency : plan.dependenciesOf(instruction)) {
    if (dependency.threadBlock == block)
      continue;
    const BoundBlock &other = binding->blocks[dependency.threadBlock];
    // The other block stores its progress only because of this.
    binding->instructions[other.firstInstruction + dependency.instruction].published = true;
    binding->acquires.push_back({dependency.threadBlock * kControlStride,
                                 static_cast<int64_t>(dependency.instruction) + 1,
                                 other.numInstructions, kProgressPlace, dependency.threadBlock,
                                 request.rank, BlockReason::Dependency, false});
  }
}

void Binder::pushNeed(BoundInstruction &bound, uint32_t rank, uint32_t connection) {
  Place place = arenaPlace(rank);
  auto isIt = [place](const auto &other) { return other.place == place; };
  // Words that are waited for imply that their memory is known.
  if (rank != request.rank &&
      std::ranges::none_of(std::span(binding->acquires).subspan(bound.firstAcquire), isIt) &&
      std::ranges::none_of(std::span(binding->needs).subspan(bound.firstNeed), isIt))
    binding->needs.push_back({place, connection, rank});
}

void Binder::groupInstructions() {
  for (const BoundBlock &block : binding->blocks)
    if (isToBeGrouped(block))
      groupSteps(block);
}

void Binder::makeStepTables() {
  if (!request.hostSteps)
    return;
  for (uint32_t b = 0; b < rankPlan.numThreadBlocks; ++b)
    binding->stepTables.push_back(std::make_unique<StepTable>(binding->bound, b));
}

bool Binder::isToBeGrouped(const BoundBlock &block) const {
  if (request.hostSteps)
    return arePlainLines(block);
  if (request.stepOperands == 0 || request.referenceBytes != 0)
    return false;
  return !hasLines() || (request.lineStepBytes != 0 && canGroupLines(block));
}

/// Makes one step of consecutive instructions wherever that keeps nobody waiting who would not wait
/// otherwise: see mayJoin().
void Binder::groupSteps(const BoundBlock &block) {
  uint32_t end = block.firstInstruction + block.numInstructions;
  // The leader takes in the instructions behind it, as long as each may join.
  for (uint32_t leader = block.firstInstruction; leader < end;) {
    BoundInstruction &step = binding->instructions[leader];
    uint32_t next = leader + 1;
    for (; next < end && mayJoin(leader, next); ++next) {
      // The leader's counts cover the whole step; members have none of their own.
      BoundInstruction &member = binding->instructions[next];
      ++step.numInstructions;
      step.numStepOperands += member.numStepOperands;
      step.numAcquires += member.numAcquires;
      step.numReleases += member.numReleases;
      step.numNeeds += member.numNeeds;
      step.movesData |= member.movesData;
      step.published |= member.published;
      member.numInstructions = 0;
    }
    leader = next;
  }
}

/// So little that the tables surely fit.
bool Binder::canGroupLines(const BoundBlock &block) const {
  constexpr uint32_t kMaxInstructions = 32, kMaxOperands = 64;
  if (block.numInstructions == 0 || block.numInstructions > kMaxInstructions)
    return false;
  const BoundInstruction &first = binding->instructions[block.firstInstruction],
                         &last = (&first)[block.numInstructions - 1];
  return last.firstOperand + last.numSources + last.numDestinations - first.firstOperand <=
             kMaxOperands &&
         std::ranges::all_of(std::span(binding->instructions)
                                 .subspan(block.firstInstruction, block.numInstructions),
                             [&](const BoundInstruction &bound) { return mayBeGrouped(bound); });
}

bool Binder::arePlainLines(const BoundBlock &block) const {
  return std::ranges::all_of(
      std::span(binding->instructions).subspan(block.firstInstruction, block.numInstructions),
      [&](const BoundInstruction &bound) { return isPlainLines(binding->bound, bound); });
}

/// A source comes in lines, so there is no word to wait for.
bool Binder::waitsForLines(const BoundInstruction &bound) const {
  return hasLines() &&
         std::ranges::any_of(
             std::span(binding->operands).subspan(bound.firstOperand, bound.numSources),
             [](const BoundOperand &operand) { return operand.slotBytes != 0; });
}

/// What a step is in lines at most: all pieces count as the largest.
bool Binder::fitsInLines(uint32_t leader, uint32_t next) const {
  if (!hasLines() || request.hostSteps)
    return true;
  uint64_t largest = 0;
  for (uint32_t i = leader; i <= next; ++i)
    largest = std::max(largest,
                       std::min(binding->instructions[i].elements, binding->instructions[i].span));
  return (next - leader + 1) * alignUp(largest * binding->bound.elementBytes, 64) <=
         request.lineStepBytes;
}

/// Chunks side by side, and if they are not lines, in one slice.
bool Binder::mayBeGrouped(const BoundInstruction &bound) const {
  return bound.contiguous &&
         (bound.count == 0 || hasLines() || bound.sliceElements >= messageElements(bound.count));
}

/// A step waits for all that its instructions wait for before it does any of them. So either the
/// member waits for nothing, or nobody can notice that those before it are not done yet.
bool Binder::mayJoin(uint32_t leader, uint32_t next) const {
  std::span instructions(binding->instructions);
  const BoundInstruction &step = instructions[leader], &member = instructions[next];
  if (!mayBeGrouped(step) || !mayBeGrouped(member) ||
      step.numInstructions == kMaxStepInstructions ||
      (!request.hostSteps &&
       step.numStepOperands + member.numStepOperands > int(request.stepOperands)) ||
      ((member.numAcquires != 0 || waitsForLines(member)) &&
       (step.numReleases != 0 || step.published)) ||
      !fitsInLines(leader, next) || storeTheSameWord(step, member))
    return false;
  return std::ranges::all_of(
      instructions.subspan(leader, next - leader),
      [&](const BoundInstruction &before) { return areIndependent(before, member); });
}

/// Two signals of a counter, or two messages of a connection: a step stores its words all at once,
/// so that either value could stay.
bool Binder::storeTheSameWord(const BoundInstruction &a, const BoundInstruction &b) const {
  std::span releases(binding->releases);
  auto ofB = releases.subspan(b.firstRelease, b.numReleases);
  return std::ranges::any_of(
      releases.subspan(a.firstRelease, a.numReleases), [&](const BoundRelease &x) {
        return x.isStored && std::ranges::any_of(ofB, [&](const BoundRelease &y) {
                 return y.isStored && x.place == y.place && x.offset == y.offset;
               });
      });
}

/// Whether two local operands may share memory, of so many bytes each. In place, any chunk of the
/// input may be any of the output.
bool Binder::mayOverlap(const BoundOperand &a, uint64_t aBytes, const BoundOperand &b,
                        uint64_t bBytes) const {
  using plan::OperandKind;
  if (a.kind == OperandKind::Connection || b.kind == OperandKind::Connection || a.rank != b.rank)
    return false;
  if (a.kind != b.kind)
    return plan.inPlace && a.kind != OperandKind::Scratch && b.kind != OperandKind::Scratch;
  return a.offset < b.offset + bBytes && b.offset < a.offset + aBytes;
}

/// Neither changes what the other accesses.
bool Binder::areIndependent(const BoundInstruction &a, const BoundInstruction &b) const {
  uint64_t size = binding->bound.elementBytes;
  auto stays = [&](const BoundInstruction &bound) {
    return staysInOutput[static_cast<size_t>(&bound - binding->instructions.data())];
  };
  for (uint32_t i = 0; i < uint32_t(a.numSources) + a.numDestinations; ++i)
    for (uint32_t j = 0; j < uint32_t(b.numSources) + b.numDestinations; ++j) {
      const BoundOperand &x = binding->operands[a.firstOperand + i],
                         &y = binding->operands[b.firstOperand + j];
      bool aStores = i >= a.numSources, bStores = j >= b.numSources;
      // Of input and output only the latter is stored.
      if ((aStores || bStores) && !(x.kind != y.kind && stays(aStores ? a : b)) &&
          mayOverlap(x, a.elements * size, y, b.elements * size))
        return false;
    }
  return true;
}

} // namespace occl::interpreter
