#include "runtime/interpreter/bind.h"

#include "plan/chunking.h"
#include "runtime/base/cache_line.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>

namespace occl::interpreter {

/// Slots and arena blocks start at multiples of this: two cache lines, as processors prefetch them.
static constexpr uint64_t kSlotAlignment = 128;
/// No buffer, scratch or arena block may have more bytes, so that no sum of a few overflows.
static constexpr uint64_t kMaxBytes = 1ull << 62;

/// Fills a Binding, phase by phase.
class Binder {
public:
  Binder(const plan::Plan &plan, const BindRequest &request)
      : plan(plan), request(request), rankPlan(plan.ranks[request.rank]),
        chunking(plan::Chunking::of(request.count, plan.partChunks, sizeOf(request.type))),
        grain(plan::kGrainBytes / sizeOf(request.type)), binding(new Binding) {}

  StatusOr<std::shared_ptr<const Binding>> run() {
    setScalars();
    measureMessages();
    chooseTiles();
    if (Status status = setSizes(); !status.ok())
      return status;
    layOutArenas();
    if (Status status = bindBlocks(); !status.ok())
      return status;
    finish();
    return std::shared_ptr<const Binding>(std::move(binding));
  }

private:
  /// Where a connection lies and how large it is; the same on all ranks.
  struct Layout {
    uint64_t tailOffset = 0, slotsOffset = 0, slotBytes = 0;
    uint32_t maxCount = 0;
    uint32_t messagesPerTile = 0;
  };

  void setScalars();
  void measureMessages();
  void chooseTiles();
  Status setSizes();
  void layOutArenas();
  Status bindBlocks();
  Status bindInstruction(const plan::Instruction &instruction, uint32_t block);
  void bindOperand(const plan::Operand &operand, bool isSource);
  void bindDependencies(const plan::Instruction &instruction, uint32_t block);
  uint32_t endOf(uint32_t connection, bool receives);
  void finish();

  uint64_t sliceElements(uint32_t count) const {
    const Program &program = binding->bound;
    uint64_t message = count * std::min(program.tileElements, chunking.maxSize());
    uint64_t slice = (message + program.slicesPerMessage - 1) / program.slicesPerMessage;
    return std::max<uint64_t>(alignUp(slice, grain), 1);
  }

  const plan::Plan &plan;
  const BindRequest &request;
  const plan::RankPlan &rankPlan;
  const plan::Chunking chunking;
  const uint64_t grain; // elements of 128 bytes
  std::unique_ptr<Binding> binding;
  std::vector<Layout> layouts; // by connection
  std::unordered_map<uint64_t, uint32_t> ends;
  uint32_t maxCount = 1; // chunks of the largest message
};

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
  for (const plan::Instruction &instruction : plan.instructions)
    for (const plan::Operand &operand : plan.destinationsOf(instruction))
      if (operand.kind == plan::OperandKind::Connection) {
        Layout &layout = layouts[operand.index];
        layout.maxCount = std::max(layout.maxCount, instruction.count);
        ++layout.messagesPerTile;
        maxCount = std::max(maxCount, instruction.count);
      }
}

void Binder::chooseTiles() {
  Program &program = binding->bound;
  uint64_t chunk = std::max<uint64_t>(chunking.maxSize(), 1);
  uint64_t wanted = request.tiles.messageBytes / (maxCount * program.elementBytes);
  wanted = std::max(wanted / grain, uint64_t(1)) * grain;
  program.numTiles = (chunk + wanted - 1) / wanted;
  // Tiles of about equal size; cutting at the grain may save the last one.
  program.tileElements = program.numTiles == 1
                             ? chunk
                             : alignUp((chunk + program.numTiles - 1) / program.numTiles, grain);
  program.numTiles = (chunk + program.tileElements - 1) / program.tileElements;
  program.scratchStride = alignUp(chunking.maxSize(), grain);
  binding->chunkBegins.reserve(plan.partChunks + 1);
  for (uint64_t k = 0; k <= plan.partChunks; ++k)
    binding->chunkBegins.push_back(chunking.begin(k));
}

Status Binder::setSizes() {
  Program &program = binding->bound;
  uint64_t largest =
      std::max({rankPlan.inputChunks, rankPlan.outputChunks, rankPlan.scratchChunks});
  uint64_t parts = largest / plan.partChunks + 1;
  if (request.count > kMaxBytes / program.elementBytes / parts ||
      program.scratchStride > kMaxBytes / program.elementBytes / std::max<uint64_t>(largest, 1))
    return {StatusCode::InvalidArgument, "plan '" + plan.name + "': a count of " +
                                             std::to_string(request.count) +
                                             " makes a buffer of more than 2^62 bytes"};
  binding->scratchSize = rankPlan.scratchChunks * program.scratchStride * program.elementBytes;
  binding->inputSize = chunking.beginInBuffer(rankPlan.inputChunks) * program.elementBytes;
  binding->outputSize = chunking.beginInBuffer(rankPlan.outputChunks) * program.elementBytes;
  return {};
}

void Binder::layOutArenas() {
  Program &program = binding->bound;
  std::vector<uint64_t> &controls = binding->controlSizes, &sizes = binding->arenaSizes;
  controls.assign(plan.numRanks, 0);
  for (size_t i = 0; i < layouts.size(); ++i) {
    const plan::Connection &connection = plan.connections[i];
    layouts[i].tailOffset = controls[connection.source];
    controls[connection.source] += (1 + connection.numDestinations) * kControlStride;
  }
  sizes = controls;
  for (size_t i = 0; i < layouts.size(); ++i) {
    Layout &layout = layouts[i];
    uint64_t &size = sizes[plan.connections[i].source];
    layout.slotsOffset = alignUp(size, kSlotAlignment);
    layout.slotBytes =
        alignUp(sliceElements(layout.maxCount) * program.elementBytes, kSlotAlignment);
    size = layout.slotsOffset + program.depth * program.slicesPerMessage * layout.slotBytes;
  }
}

Status Binder::bindBlocks() {
  for (uint32_t b = 0; b < rankPlan.numThreadBlocks; ++b) {
    const plan::ThreadBlock &block = plan.threadBlocks[rankPlan.firstThreadBlock + b];
    binding->blocks.push_back(
        {static_cast<uint32_t>(binding->instructions.size()), block.numInstructions});
    binding->firstInstructions.push_back(block.firstInstruction);
    for (const plan::Instruction &instruction : plan.instructionsOf(block))
      if (Status status = bindInstruction(instruction, b); !status.ok())
        return status;
  }
  for (const BoundDependency &dependency : binding->dependencies) {
    const BoundBlock &block = binding->blocks[dependency.block];
    binding->instructions[block.firstInstruction + dependency.instruction].published = true;
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
  if (instruction.numSources == 0)
    return refuse(std::string("instruction ") + plan::mnemonic(instruction.opcode));
  const Program &program = binding->bound;
  BoundInstruction bound;
  bound.elements = chunking.beginInBuffer(uint64_t(instruction.extent) + instruction.count) -
                   chunking.beginInBuffer(instruction.extent);
  bound.sliceElements = sliceElements(instruction.count);
  bound.firstOperand = static_cast<uint32_t>(binding->operands.size());
  bound.count = instruction.count;
  bound.extent = instruction.extent % plan.partChunks;
  bound.numSources = instruction.numSources;
  bound.numDestinations = instruction.numDestinations;
  bound.divides = instruction.final && request.op == ReduceOp::Avg && plan.numRanks > 1;
  bool usesScratch = false;
  for (const plan::Operand &operand : plan.sourcesOf(instruction))
    bindOperand(operand, true);
  for (const plan::Operand &operand : plan.destinationsOf(instruction))
    bindOperand(operand, false);
  uint32_t numOperands = uint32_t(instruction.numSources) + instruction.numDestinations;
  for (const plan::Operand &operand :
       std::span(plan.operands).subspan(instruction.firstOperand, numOperands)) {
    usesScratch |= operand.kind == plan::OperandKind::Scratch;
    if (operand.kind != plan::OperandKind::Connection && operand.rank != request.rank)
      return refuse("an operand in the buffer of rank " + std::to_string(operand.rank));
  }
  bound.contiguous = instruction.count == 1 || (program.numTiles == 1 && !usesScratch);
  bound.span = instruction.count == 1 ? program.tileElements : bound.elements;
  binding->bound.maxOperands = std::max(program.maxOperands, numOperands);
  bound.firstDependency = static_cast<uint32_t>(binding->dependencies.size());
  bindDependencies(instruction, block);
  bound.numDependencies =
      static_cast<uint16_t>(binding->dependencies.size() - bound.firstDependency);
  binding->instructions.push_back(bound);
  return {};
}

void Binder::bindOperand(const plan::Operand &operand, bool isSource) {
  BoundOperand bound;
  bound.kind = operand.kind;
  if (operand.kind == plan::OperandKind::Connection) {
    bound.end = endOf(operand.index, isSource);
    bound.message = binding->ends[bound.end].messagesPerTile++;
  } else {
    uint64_t element = operand.kind == plan::OperandKind::Scratch
                           ? operand.index * binding->bound.scratchStride
                           : chunking.beginInBuffer(operand.index);
    bound.offset = element * binding->bound.elementBytes;
  }
  binding->operands.push_back(bound);
}

/// What a thread block has done itself before needs no poll.
void Binder::bindDependencies(const plan::Instruction &instruction, uint32_t block) {
  for (const plan::Dependency &dependency : plan.dependenciesOf(instruction))
    if (dependency.threadBlock != block)
      binding->dependencies.push_back({dependency.threadBlock, dependency.instruction});
}

uint32_t Binder::endOf(uint32_t index, bool receives) {
  auto [position, isNew] =
      ends.try_emplace(2 * uint64_t(index) + receives, static_cast<uint32_t>(binding->ends.size()));
  if (!isNew)
    return position->second;
  const plan::Connection &connection = plan.connections[index];
  const Program &program = binding->bound;
  const Layout &layout = layouts[index];
  auto destinations = plan.destinationsOf(connection);
  ConnectionEnd end;
  end.tailOffset = layout.tailOffset;
  end.slotsOffset = layout.slotsOffset;
  end.slotBytes = layout.slotBytes;
  uint64_t messages = program.numTiles * layout.messagesPerTile;
  end.lastCredit =
      messages > program.depth ? (messages - program.depth) * program.slicesPerMessage : 0;
  end.source = connection.source;
  end.connection = index;
  end.firstPeer = static_cast<uint32_t>(binding->peers.size());
  if (receives) {
    end.head =
        static_cast<uint32_t>(std::ranges::find(destinations, request.rank) - destinations.begin());
    binding->peers.push_back(connection.source);
  } else {
    binding->peers.insert(binding->peers.end(), destinations.begin(), destinations.end());
  }
  end.numPeers = static_cast<uint32_t>(binding->peers.size()) - end.firstPeer;
  binding->ends.push_back(end);
  return position->second;
}

void Binder::finish() {
  Program &program = binding->bound;
  std::set<uint32_t> arenas;
  for (const ConnectionEnd &end : binding->ends)
    arenas.insert(end.source);
  binding->usedArenas.assign(arenas.begin(), arenas.end());
  program.blocks = binding->blocks.data();
  program.instructions = binding->instructions.data();
  program.operands = binding->operands.data();
  program.dependencies = binding->dependencies.data();
  program.ends = binding->ends.data();
  program.peers = binding->peers.data();
  program.chunkBegins = binding->chunkBegins.data();
}

StatusOr<std::shared_ptr<const Binding>> bind(const plan::Plan &plan, const BindRequest &request) {
  auto refuse = [&](std::string why) {
    return Status(StatusCode::InvalidArgument, "plan '" + plan.name + "': " + std::move(why));
  };
  if (request.rank >= plan.numRanks)
    return refuse("rank " + std::to_string(request.rank) + " of a plan for " +
                  std::to_string(plan.numRanks) + " ranks");
  if (request.count > kMaxBytes)
    return refuse("a count of " + std::to_string(request.count) + " is too large");
  if (plan.uniformChunks && request.count % plan.partChunks != 0)
    return refuse("needs equal chunks: a count that " + std::to_string(plan.partChunks) +
                  " divides, not " + std::to_string(request.count));
  return Binder(plan, request).run();
}

} // namespace occl::interpreter
