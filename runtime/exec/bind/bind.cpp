// Binds a plan to a rank and a count: sizes, messages, arenas, then instructions.
#include "runtime/exec/bind/binder.h"

#include "plan/model/limits.h"
#include "runtime/base/cache_line.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <utility>

namespace occl::interpreter {

/// Slots and arena blocks start at multiples of this: two cache lines, as processors prefetch them.
static constexpr uint64_t kSlotAlignment = 128;
/// No buffer, scratch or arena block may have more bytes, so that no sum of a few overflows.
static constexpr uint64_t kMaxBytes = 1ull << 62;
/// Nor an invocation in lines more flags: half of those that 32 bits tell apart.
static constexpr uint64_t kMostFlags = 1ull << 31;

bool Binding::hasOnlyLines() const {
  return bound.line.bytes != 0 &&
         std::ranges::all_of(counterSizes, [](uint64_t bytes) { return bytes == 0; }) &&
         std::ranges::all_of(headSizes, [](uint64_t bytes) { return bytes == 0; });
}

Binder::Size Binder::sizeOfRank() const {
  Size all;
  for (const plan::ThreadBlock &block : plan.threadBlocksOf(rankPlan))
    for (const plan::Instruction &instruction : plan.instructionsOf(block)) {
      ++all.instructions;
      const size_t operands = size_t(instruction.numSources) + instruction.numDestinations;
      all.operands += operands;
      all.messages +=
          std::ranges::count(std::span(plan.operands).subspan(instruction.firstOperand, operands),
                             plan::OperandKind::Connection, &plan::Operand::kind);
    }
  return all;
}

/// Of what reserveTables() reserves, and some more for what it does not.
size_t Binder::expectedBytes() const {
  constexpr size_t kEachBlock = sizeof(BoundBlock) + sizeof(uint32_t),
                   kEachRank = 6 * sizeof(uint64_t),
                   kEachMessage = sizeof(ConnectionEnd) + sizeof(uint32_t),
                   kEachOperand = sizeof(BoundOperand) + sizeof(BoundAcquire) +
                                  sizeof(BoundRelease) + sizeof(BoundNeed),
                   kMore = 512;
  return rankPlan.numThreadBlocks * kEachBlock + plan.numRanks * kEachRank +
         size.instructions * sizeof(BoundInstruction) + size.operands * kEachOperand +
         size.messages * kEachMessage + plan.partChunks * sizeof(uint64_t) + kMore;
}

void Binder::setScalars() {
  Program &program = binding->bound;
  program.partChunks = plan.partChunks;
  program.elementBytes = sizeOf(request.type);
  program.depth = std::bit_ceil(std::max(plan.depth, 1u));
  program.slicesPerMessage = std::max(request.tiles.slicesPerMessage, 1u);
  program.rank = request.rank;
  program.numRanks = plan.numRanks;
  program.numBlocks = rankPlan.numThreadBlocks;
  program.type = request.type;
  program.op = request.op;
}

void Binder::measureMessages() {
  layouts.resize(plan.connections.size());
  // Find the largest message of each connection, and how many a tile has.
  for (const plan::Instruction &instruction : plan.instructions)
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if (operand.kind == plan::OperandKind::Connection) {
        Layout &layout = layouts[operand.index];
        layout.maxCount = std::max(layout.maxCount, instruction.count);
        ++layout.messagesPerTile;
        maxCount = std::max(maxCount, instruction.count);
      }
  size_t all = 0;
  for (const plan::Connection &connection : plan.connections)
    all += numMailboxes(connection);
  mailboxes.reserve(all);
}

/// Messages as large as they may be while the arenas that they need fit.
Status Binder::layOutMessages() {
  if (mayHaveReferences())
    findCopies();
  // Halve the messages until all arenas fit, or they are as small as they may be.
  for (messageBytes = request.tiles.messageBytes;; messageBytes /= 2) {
    chooseTiles();
    chooseLines();
    if (Status status = checkMessages(); !status.ok())
      return status;
    findReferences();
    layOutArenas();
    if (std::ranges::max(binding->arenaSizes) <= request.mostArenaBytes || hasLines() ||
        messageBytes <= request.smallestMessageBytes)
      return {};
  }
}

void Binder::chooseTiles() {
  Program &program = binding->bound;
  uint64_t chunk = std::max<uint64_t>(chunking.maxSize(), 1);
  // Without messages there is nothing to bound: a tile is all, and slices keep steps short. Nor do
  // messages that are read in place fill any cache.
  uint64_t wanted = maxCount == 0 ? chunk : sliceOf(maxCount);
  if (isOneCopyEach())
    wanted *= 8;
  program.numTiles = (chunk + wanted - 1) / wanted;
  // Tiles of about equal size; cutting at the grain may save the last one.
  program.tileElements = program.numTiles == 1
                             ? chunk
                             : alignUp((chunk + program.numTiles - 1) / program.numTiles, grain);
  program.numTiles = (chunk + program.tileElements - 1) / program.tileElements;
  program.scratchStride = alignUp(chunking.maxSize(), grain);
  binding->chunkBegins.clear();
  binding->chunkBegins.reserve(plan.partChunks + 1);
  for (uint64_t k = 0; k <= plan.partChunks; ++k)
    binding->chunkBegins.push_back(chunking.begin(k));
}

/// A slice of lines is no larger than the staging areas of its instruction's operands.
void Binder::chooseLines() {
  if (plan.protocol == plan::Protocol::Simple || request.isSimple || maxCount == 0)
    return;
  Program &program = binding->bound;
  const LinePolicy &policy = request.lines;
  // The instruction with the most operands decides how much stage each operand gets.
  uint32_t mostOperands = 0;
  for (const plan::Instruction &instruction : plan.instructions) {
    uint32_t operands = uint32_t(instruction.numSources) + instruction.numDestinations;
    // A source that stores to each destination has an operand for each.
    if (!isAtSource())
      for (const plan::Operand &operand : plan.destinationsOf(instruction))
        if (operand.kind == plan::OperandKind::Connection)
          operands += plan.connections[operand.index].numDestinations - 1;
    mostOperands = std::max(mostOperands, operands);
  }
  // LL has narrow lines unless all are to be wide; LL128 has wide ones where the target does.
  const bool isNarrow = plan.protocol == plan::Protocol::LL && !request.onlyWideLines;
  program.line = isNarrow || !policy.hasWide
                     ? LineFormat{kWordLineBytes, kWordLineBytes / 2}
                     : LineFormat{policy.wideLineBytes, policy.wideLineBytes - 8};
  // A stage is divided equally, in units of its alignment; each operand has at least one.
  program.stageStride =
      std::clamp<uint64_t>(policy.stageBytes / mostOperands / kStageAlignment * kStageAlignment,
                           kStageAlignment, policy.sliceBytes);
  // Cut the largest message into slices, and count the flags of an invocation.
  uint64_t slice = sliceElements(maxCount);
  program.slicesPerMessage = std::max<uint64_t>((messageElements(maxCount) + slice - 1) / slice, 1);
  uint64_t messagesPerTile = 0;
  for (const Layout &layout : layouts)
    messagesPerTile = std::max<uint64_t>(messagesPerTile, layout.messagesPerTile);
  program.flagsPerInvocation = program.numTiles * messagesPerTile * program.slicesPerMessage + 1;
}

/// Of the lines that hold so many bytes of data.
uint64_t Binder::lineBytes(uint64_t dataBytes) const {
  const LineFormat &line = binding->bound.line;
  return std::max<uint64_t>((dataBytes + line.dataBytes - 1) / line.dataBytes, 1) * line.bytes;
}

Status Binder::refuseCount(const std::string &makes) const {
  return {StatusCode::InvalidArgument, "plan '" + plan.name + "': a count of " +
                                           std::to_string(request.count) + " makes " + makes};
}

/// Of all ranks' buffers, before anything is computed with the count: all refuse the same ones.
Status Binder::checkSizes() const {
  const uint64_t elementBytes = binding->bound.elementBytes;
  uint64_t largest = 1;
  for (const plan::RankPlan &rank : plan.ranks)
    largest = std::max({largest, uint64_t{rank.inputChunks}, uint64_t{rank.outputChunks},
                        uint64_t{rank.scratchChunks}});
  // A buffer may have several parts, each of which has `count` elements.
  const uint64_t parts = largest / plan.partChunks + 1;
  if (request.count > kMaxBytes / elementBytes / parts ||
      alignUp(chunking.maxSize(), grain) > kMaxBytes / elementBytes / largest)
    return refuseCount("a buffer of more than 2^62 bytes");
  return {};
}

/// What counters and flags count up to.
Status Binder::checkMessages() const {
  const Program &program = binding->bound;
  uint64_t perTile = 1; // slices of a connection
  for (const Layout &layout : layouts)
    perTile = std::max(perTile, uint64_t{layout.messagesPerTile} * program.slicesPerMessage);
  // Flags have 32 bits, all other words 64.
  const uint64_t most = hasLines() ? kMostFlags : kMaxBytes;
  if (program.numTiles >= most / perTile)
    return refuseCount(std::to_string(program.numTiles) + " tiles of " + std::to_string(perTile) +
                       " slices on a connection, expected less than 2^" +
                       std::to_string(std::countr_zero(most)) + " slices" +
                       (hasLines() ? "; use protocol Simple" : ""));
  return {};
}

void Binder::setSizes() {
  const Program &program = binding->bound;
  binding->scratchSize = rankPlan.scratchChunks * program.scratchStride * program.elementBytes;
  binding->inputSize = chunking.beginInBuffer(rankPlan.inputChunks) * program.elementBytes;
  binding->outputSize = chunking.beginInBuffer(rankPlan.outputChunks) * program.elementBytes;
}

void Binder::layOutArenas() {
  const Program &program = binding->bound;
  mailboxes.clear();
  layOutCounters();
  binding->controlSizes = binding->counterSizes;
  // Lines are control words, too: they must be zero at first.
  Binding::Table<uint64_t> &sizes = hasLines() ? binding->controlSizes : binding->arenaSizes;
  sizes = binding->counterSizes;
  for (uint64_t &size : sizes)
    size = std::max(size, request.slotsOffset);
  // Slots follow the counters, connection by connection.
  for (size_t i = 0; i < layouts.size(); ++i) {
    Layout &layout = layouts[i];
    if (isCounter(i))
      continue;
    uint64_t slice = hasLines() ? std::min(messageElements(layout.maxCount), sliceElements(0))
                                : sliceElements(layout.maxCount);
    uint64_t bytes = slice * program.elementBytes;
    layout.slotBytes = alignUp(hasLines() ? lineBytes(bytes) : bytes, kSlotAlignment);
    for (uint32_t m = 0; m < numMailboxes(plan.connections[i]); ++m) {
      Mailbox &mailbox = mailboxes[layout.firstMailbox + m];
      uint64_t &size = sizes[mailbox.rank];
      mailbox.slotsOffset = alignUp(size, kSlotAlignment);
      size = mailbox.slotsOffset + program.depth * program.slicesPerMessage * layout.slotBytes;
    }
  }
  if (hasLines())
    binding->arenaSizes = binding->controlSizes;
  // A block is at least as large as the heads that lie outside of it.
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    binding->arenaSizes[r] = std::max(binding->arenaSizes[r], binding->headSizes[r]);
}

/// Tails and heads, as far as there are any: lines have no tails, and who never waits for credit
/// has no heads.
void Binder::layOutCounters() {
  Binding::Table<uint64_t> &sizes = binding->counterSizes;
  sizes.assign(plan.numRanks, 0);
  binding->headSizes.assign(plan.numRanks, 0);
  Binding::Table<uint64_t> &heads = request.headsDistance != 0 ? binding->headSizes : sizes;
  // Mailboxes of a connection have consecutive numbers.
  for (size_t i = 0; i < layouts.size(); ++i) {
    const plan::Connection &connection = plan.connections[i];
    layouts[i].firstMailbox = static_cast<uint32_t>(mailboxes.size());
    for (uint32_t m = 0; m < numMailboxes(connection); ++m) {
      uint32_t rank = isAtSource() ? connection.source : plan.destinationsOf(connection)[m];
      mailboxes.push_back({rank, sizes[rank], 0});
      if (!hasLines() || connection.isCounter)
        sizes[rank] += kControlStride;
    }
    // Heads lie with the source, one for each destination.
    layouts[i].headsOffset = request.headsDistance + heads[connection.source];
    if (lastCredit(i) != 0)
      heads[connection.source] += connection.numDestinations * kControlStride;
  }
}

/// The last head of a connection that its source waits for.
uint64_t Binder::lastCredit(size_t connection) const {
  const Program &program = binding->bound;
  // With references a slot is free only once its data have been read.
  uint64_t messages = program.numTiles * layouts[connection].messagesPerTile;
  if (layouts[connection].mayRefer)
    return messages * program.slicesPerMessage;
  // The first `depth` messages find free slots and wait for nothing.
  return messages > program.depth && !isCounter(connection)
             ? (messages - program.depth) * program.slicesPerMessage
             : 0;
}

/// As many as a plan without copies for several destinations has.
void Binder::reserveTables() {
  binding->blocks.reserve(rankPlan.numThreadBlocks);
  binding->firstInstructions.reserve(rankPlan.numThreadBlocks);
  binding->instructions.reserve(size.instructions);
  staysInOutput.reserve(size.instructions);
  binding->operands.reserve(size.operands);
  binding->acquires.reserve(size.operands);
  binding->releases.reserve(size.operands);
  binding->needs.reserve(size.operands);
  binding->ends.reserve(size.messages);
  binding->peers.reserve(size.messages);
}

Status Binder::bindBlocks() {
  reserveTables();
  // An end is made when the first operand needs it.
  receivingEnds.assign(layouts.size(), kNoEnd);
  sendingEnds.assign(mailboxes.size(), kNoEnd);
  accessed.assign(plan.numRanks, false);
  usesArena.assign(plan.numRanks, false);
  for (uint32_t b = 0; b < rankPlan.numThreadBlocks; ++b) {
    const plan::ThreadBlock &block = plan.threadBlocks[rankPlan.firstThreadBlock + b];
    binding->blocks.push_back({static_cast<uint32_t>(binding->instructions.size()),
                               block.numInstructions,
                               static_cast<uint32_t>(binding->drains.size())});
    binding->firstInstructions.push_back(block.firstInstruction);
    for (const plan::Instruction &instruction : plan.instructionsOf(block))
      if (Status status = bindInstruction(instruction, b); !status.ok())
        return status;
    // Drains of the block are the ends that its own instructions have made.
    binding->blocks.back().numDrains =
        static_cast<uint32_t>(binding->drains.size()) - binding->blocks.back().firstDrain;
  }
  return {};
}

Status Binder::bindInstruction(const plan::Instruction &instruction, uint32_t block) {
  auto refuse = [&](std::string what) {
    return Status(StatusCode::InvalidPlan, "plan '" + plan.name + "', rank " +
                                               std::to_string(request.rank) + ", thread block " +
                                               std::to_string(block) + ": " + std::move(what) +
                                               ", which this runtime does not execute");
  };
  const Program &program = binding->bound;
  BoundInstruction bound;
  // Measure the instruction: its elements over all tiles, and those of a slice.
  bound.elements = chunking.beginInBuffer(uint64_t(instruction.extent) + instruction.count) -
                   chunking.beginInBuffer(instruction.extent);
  bound.sliceElements =
      maxCount == 0 && instruction.count != 0 ? sliceOf(1) : sliceElements(instruction.count);
  bound.firstOperand = static_cast<uint32_t>(binding->operands.size());
  bound.count = instruction.count;
  bound.extent = instruction.extent % plan.partChunks;
  bound.numSources = instruction.numSources;
  bound.divides = instruction.final && request.op == ReduceOp::Avg && plan.numRanks > 1;
  bool usesScratch = false;
  // Bind sources, then local destinations, then messages: the driver relies on this order.
  for (const plan::Operand &operand : plan.sourcesOf(instruction))
    bindOperand(instruction, operand, true);
  for (bool connections : {false, true})
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if ((operand.kind == plan::OperandKind::Connection) == connections) {
        bindOperand(instruction, operand, false);
        bound.numLocalDestinations += !connections;
      }
  bindReference(instruction, bound);
  size_t numOperands = binding->operands.size() - bound.firstOperand;
  if (numOperands > plan::limits::kMaxOperands)
    return refuse("an instruction with " + std::to_string(numOperands) +
                  " operands, a copy for each destination counted");
  bound.numDestinations = static_cast<uint16_t>(numOperands - bound.numSources);
  for (const plan::Operand &operand :
       std::span(plan.operands)
           .subspan(instruction.firstOperand,
                    size_t(instruction.numSources) + instruction.numDestinations)) {
    usesScratch |= operand.kind == plan::OperandKind::Scratch;
    if (operand.kind != plan::OperandKind::Connection && operand.rank != request.rank)
      accessed[operand.rank] = usesArena[operand.rank] = true;
  }
  // In place, a chunk that stays where it is changes nothing in the output.
  staysInOutput.push_back(
      std::ranges::all_of(plan.destinationsOf(instruction), [&](const plan::Operand &operand) {
        return operand.kind != plan::OperandKind::Output ||
               (!bound.divides && isSourceInPlace(request.rank, instruction, operand));
      }));
  // Chunks lie side by side on a single tile, unless scratch spaces them out.
  bound.contiguous = instruction.count <= 1 || (program.numTiles == 1 && !usesScratch);
  bound.span = instruction.count <= 1 ? program.tileElements : bound.elements;
  if (instruction.count != 0)
    binding->bound.maxOperands = std::max(program.maxOperands, static_cast<uint32_t>(numOperands));
  binding->instructions.push_back(bound);
  return {};
}

void Binder::bindOperand(const plan::Instruction &instruction, const plan::Operand &operand,
                         bool isSource) {
  if (operand.kind == plan::OperandKind::Connection) {
    // A wait receives nothing, but polls the counter.
    if (instruction.opcode == plan::Opcode::Wait)
      return pushWait(operand.index, instruction.value);
    if (isSource)
      return pushMessage(receivingEnd(operand.index));
    // Each mailbox gets a copy of the message.
    for (uint32_t m = 0; m < numMailboxes(plan.connections[operand.index]); ++m)
      pushMessage(sendingEnd(operand.index, m));
    return;
  }
  // A local operand begins at its first chunk.
  BoundOperand bound;
  bound.kind = operand.kind;
  bound.rank = operand.rank;
  uint64_t element = operand.kind == plan::OperandKind::Scratch
                         ? operand.index * binding->bound.scratchStride
                         : chunking.beginInBuffer(operand.index);
  bound.offset = element * binding->bound.elementBytes;
  binding->operands.push_back(bound);
}

void Binder::pushMessage(uint32_t end) {
  BoundOperand bound;
  bound.kind = plan::OperandKind::Connection;
  bound.end = end;
  bound.message = binding->ends[end].messagesPerTile++;
  binding->operands.push_back(bound);
}

void Binder::pushWait(uint32_t connection, uint32_t value) {
  BoundOperand bound;
  bound.kind = plan::OperandKind::Connection;
  bound.end = receivingEnd(connection);
  // The v-th signal is message v - 1 of the counter.
  bound.message = value - 1;
  binding->ends[bound.end].messagesPerTile = layouts[connection].messagesPerTile;
  binding->operands.push_back(bound);
}

uint32_t Binder::receivingEnd(uint32_t index) {
  uint32_t &end = receivingEnds[index];
  if (end == kNoEnd) {
    // Heads are numbered by destination, so this rank needs its place among them.
    const plan::Connection &connection = plan.connections[index];
    auto destinations = plan.destinationsOf(connection);
    uint32_t self =
        static_cast<uint32_t>(std::ranges::find(destinations, request.rank) - destinations.begin());
    end = makeEnd(index, isAtSource() ? 0 : self, self, std::span(&connection.source, 1));
  }
  return end;
}

uint32_t Binder::sendingEnd(uint32_t index, uint32_t mailbox) {
  uint32_t &end = sendingEnds[layouts[index].firstMailbox + mailbox];
  if (end == kNoEnd) {
    auto destinations = plan.destinationsOf(plan.connections[index]);
    end = makeEnd(index, mailbox, mailbox,
                  isAtSource() ? destinations : destinations.subspan(mailbox, 1));
    // Receivers must have read the data before the thread block ends.
    if (layouts[index].mayRefer)
      binding->drains.push_back(end);
  }
  return end;
}

/// `head`: the number of its first head. `others`: the ranks at the other end.
uint32_t Binder::makeEnd(uint32_t index, uint32_t mailbox, uint32_t head,
                         std::span<const uint32_t> others) {
  const Layout &layout = layouts[index];
  const Mailbox &box = mailboxes[layout.firstMailbox + mailbox];
  // Find the tail, the slots and the heads in the arena blocks.
  ConnectionEnd end;
  end.tailOffset = box.tailOffset;
  end.headsOffset = layout.headsOffset + head * kControlStride;
  end.slotsOffset = box.slotsOffset;
  end.slotBytes = layout.slotBytes;
  end.isCounter = isCounter(index);
  end.mayRefer = layout.mayRefer;
  end.lastCredit = lastCredit(index);
  end.dataRank = box.rank;
  end.creditRank = plan.connections[index].source;
  end.firstPeer = static_cast<uint32_t>(binding->peers.size());
  end.numPeers = static_cast<uint32_t>(others.size());
  end.connection = index;
  // Slots use one rank's block, heads the block of the source.
  usesArena[end.dataRank] = usesArena[end.creditRank] = true;
  binding->peers.insert(binding->peers.end(), others.begin(), others.end());
  binding->ends.push_back(end);
  return static_cast<uint32_t>(binding->ends.size() - 1);
}

void Binder::finish() {
  Program &program = binding->bound;
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    if (usesArena[r])
      binding->usedArenas.push_back(r);
    if (accessed[r])
      binding->accessedRanks.push_back(r);
  }
  // No table grows any more, so the program may point into them.
  program.blocks = binding->blocks.data();
  program.instructions = binding->instructions.data();
  program.operands = binding->operands.data();
  program.acquires = binding->acquires.data();
  program.releases = binding->releases.data();
  program.needs = binding->needs.data();
  program.ends = binding->ends.data();
  program.peers = binding->peers.data();
  program.drains = binding->drains.data();
  program.chunkBegins = binding->chunkBegins.data();
}

StatusOr<std::shared_ptr<const Binding>> bind(const plan::Plan &plan, const BindRequest &request,
                                              std::pmr::memory_resource *memory) {
  auto refuse = [&](std::string why) {
    return Status(StatusCode::InvalidArgument, "plan '" + plan.name + "': " + std::move(why));
  };
  // Refuse requests that do not fit the plan.
  if (request.rank >= plan.numRanks)
    return refuse("rank " + std::to_string(request.rank) + " of a plan for " +
                  std::to_string(plan.numRanks) + " ranks");
  if (request.count > kMaxBytes)
    return refuse("a count of " + std::to_string(request.count) + " is too large");
  if (plan.uniformChunks && request.count % plan.partChunks != 0)
    return refuse("needs equal chunks: a count that " + std::to_string(plan.partChunks) +
                  " divides, not " + std::to_string(request.count));
  if (request.op == ReduceOp::Avg && !(plan.average && plan.hasPostcondition))
    return refuse("cannot average: no instruction is known to complete a result");
  return Binder(plan, request, memory).run();
}

} // namespace occl::interpreter
