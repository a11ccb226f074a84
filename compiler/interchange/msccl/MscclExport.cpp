#include "compiler/interchange/msccl/MscclExport.h"

#include "compiler/interchange/msccl/MscclLower.h"
#include "plan/collectives/collectives.h"
#include "plan/io/printer.h"

#include <algorithm>
#include <map>

namespace occl::interchange::msccl {

namespace {

using Opcode = plan::Opcode;

constexpr uint32_t kNone = ~0u;

/// A step that others may wait for: thread block and position among its operations.
struct Place {
  uint32_t block = kNone, operation = 0;
};

/// A thread block of the format while it fills.
struct Block {
  uint32_t receives = kNoEnd, sends = kNoEnd; // ends
  std::vector<Operation> operations;
  std::vector<std::vector<Place>> dependencies; // of each operation
  std::map<uint32_t, uint32_t> awaited;         // how far of each other block
};

class RankExport {
public:
  RankExport(const plan::Plan &plan, uint32_t rank, const Pairs &pairs,
             const std::vector<uint32_t> &channels)
      : plan(plan), rank(rank), pairs(pairs), channels(channels) {}

  Gpu run() {
    // Thread blocks of the plan are distributed to blocks of the format, then ordered by
    // dependencies, then written.
    const plan::RankPlan &sizes = plan.ranks[rank];
    Gpu gpu;
    gpu.id = static_cast<int32_t>(rank);
    gpu.inputChunks = sizes.inputChunks;
    gpu.outputChunks = sizes.outputChunks;
    scratch = gpu.scratchChunks = sizes.scratchChunks;
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(sizes))
      placeBlock(block);
    // Dependencies in a second pass, as they may point forward.
    for (uint32_t b = 0; b < sizes.numThreadBlocks; ++b)
      addDependencies(plan.threadBlocksOf(sizes)[b], b);
    for (size_t b = 0; b < blocks.size(); ++b)
      gpu.threadBlocks.push_back(finish(blocks[b], b));
    gpu.scratchChunks = scratch;
    // A step that is waited for has to say so in this format.
    markSignals(gpu);
    return gpu;
  }

private:
  /// Distributes the operations of a thread block of the plan to blocks of the format. They stay in
  /// their order: those in different blocks are ordered by dependencies.
  void placeBlock(const plan::ThreadBlock &content) {
    // One scratch chunk range for values that lie nowhere in the plan, shared by the operations of
    // a thread block, whose order keeps them apart.
    uint32_t largest = 0;
    std::vector<Operation> operations;
    std::vector<std::vector<Place>> &places = instructionPlaces.emplace_back();
    std::map<uint32_t, uint32_t> ofReceiver, ofSender; // blocks, by end
    uint32_t current = kNone;
    bool usesTemporary = false;
    for (const plan::Instruction &instruction : plan.instructionsOf(content)) {
      // An instruction with several messages is several operations here.
      operations.clear();
      lowerInstruction(plan, rank, instruction, pairs, scratch, operations);
      std::vector<Place> &own = places.emplace_back();
      for (const Operation &operation : operations) {
        for (const Range &range : {operation.source, operation.destination})
          usesTemporary |= range.buffer == plan::OperandKind::Scratch &&
                           range.index == static_cast<int32_t>(scratch);
        current = blockFor(operation, ofReceiver, ofSender, current);
        own.push_back({current, static_cast<uint32_t>(blocks[current].operations.size())});
        blocks[current].operations.push_back(operation);
      }
      largest = std::max(largest, instruction.count);
    }
    if (usesTemporary)
      scratch += largest;
  }

  uint32_t blockFor(const Operation &operation, std::map<uint32_t, uint32_t> &ofReceiver,
                    std::map<uint32_t, uint32_t> &ofSender, uint32_t current) {
    // A local operation can be anywhere, and stays where the block is.
    if (operation.receives == kNoEnd && operation.sends == kNoEnd) {
      if (current != kNone)
        return current;
      blocks.emplace_back();
      return static_cast<uint32_t>(blocks.size() - 1);
    }
    // Each end of a connection has one block from its first operation on.
    if (operation.receives != kNoEnd && ofReceiver.contains(operation.receives))
      return ofReceiver[operation.receives];
    if (operation.sends != kNoEnd && ofSender.contains(operation.sends))
      return ofSender[operation.sends];
    uint32_t receives = operation.receives, sends = operation.sends;
    // With the end that it is paired with, so that operations of both fit in.
    if (receives != kNoEnd)
      sends = pairs[receives];
    else if (auto paired = std::find(pairs.begin(), pairs.end(), sends); paired != pairs.end())
      receives = static_cast<uint32_t>(paired - pairs.begin());
    // A block that has only local operations so far can take any peers.
    bool isLocal =
        current != kNone && blocks[current].receives == kNoEnd && blocks[current].sends == kNoEnd;
    if (!isLocal) {
      blocks.emplace_back();
      current = static_cast<uint32_t>(blocks.size() - 1);
    }
    blocks[current].receives = receives;
    blocks[current].sends = sends;
    if (receives != kNoEnd)
      ofReceiver[receives] = current;
    if (sends != kNoEnd)
      ofSender[sends] = current;
    return current;
  }

  void addDependencies(const plan::ThreadBlock &content, uint32_t index) {
    // Operations of one thread block stay in order though they may be in different blocks: each
    // waits for the one before it. An instruction's dependencies are its first operation's.
    Place before;
    auto instructions = plan.instructionsOf(content);
    for (size_t i = 0; i < instructions.size(); ++i) {
      const std::vector<Place> &places = instructionPlaces[index][i];
      std::vector<Place> first;
      for (const plan::Dependency &dependency : plan.dependenciesOf(instructions[i]))
        first.push_back(instructionPlaces[dependency.threadBlock][dependency.instruction].back());
      for (const Place &place : places) {
        if (before.block != kNone)
          first.push_back(before);
        require(place, first);
        first.clear();
        before = place;
      }
    }
  }

  /// What the block has waited for already needs no second wait.
  void require(const Place &place, const std::vector<Place> &needed) {
    // A block that has waited for a later operation of another one has waited for all before that.
    Block &block = blocks[place.block];
    block.dependencies.resize(block.operations.size());
    for (const Place &one : needed) {
      if (one.block == place.block)
        continue;
      auto [known, isNew] = block.awaited.try_emplace(one.block, one.operation);
      if (!isNew && known->second >= one.operation)
        continue;
      known->second = one.operation;
      std::vector<Place> &list = block.dependencies[place.operation];
      // The later one of the same block replaces the earlier.
      std::erase_if(list, [&](const Place &earlier) { return earlier.block == one.block; });
      list.push_back(one);
    }
  }

  /// The number of an operation's step: nops for all but the last dependency precede each.
  uint32_t stepOf(const Place &place) const {
    const Block &block = blocks[place.block];
    uint32_t step = place.operation;
    for (uint32_t i = 0; i <= place.operation; ++i)
      step += nopsOf(block, i);
    return step;
  }

  static uint32_t nopsOf(const Block &block, uint32_t operation) {
    if (operation >= block.dependencies.size() || block.dependencies[operation].empty())
      return 0;
    return static_cast<uint32_t>(block.dependencies[operation].size() - 1);
  }

  ThreadBlock finish(const Block &block, size_t id) {
    // The peers of the block, with the channel that both have.
    ThreadBlock result;
    result.id = static_cast<int32_t>(id);
    if (block.sends != kNoEnd) {
      result.sendPeer = static_cast<int32_t>(plan.destinations[block.sends]);
      result.channel = channels[block.sends];
    }
    if (block.receives != kNoEnd) {
      result.recvPeer = static_cast<int32_t>(sourceOf(block.receives));
      result.channel = channels[block.receives];
    }
    // A step can wait for one other step only: further waits are steps of their own that do
    // nothing.
    for (uint32_t i = 0; i < block.operations.size(); ++i) {
      const Operation &operation = block.operations[i];
      Step step;
      step.signals = false;
      static const std::vector<Place> kNothing;
      const std::vector<Place> &needed =
          i < block.dependencies.size() ? block.dependencies[i] : kNothing;
      for (size_t d = 0; d < needed.size(); ++d) {
        step.dependencyBlock = static_cast<int32_t>(needed[d].block);
        step.dependencyStep = static_cast<int32_t>(stepOf(needed[d]));
        step.count = 0;
        // Of the last one the operation itself is the step.
        if (d + 1 < needed.size())
          result.steps.push_back(step);
      }
      step.type = operation.type;
      step.source = operation.source;
      step.destination = operation.destination;
      step.count = operation.count;
      result.steps.push_back(step);
    }
    return result;
  }

  uint32_t sourceOf(uint32_t end) const {
    auto after = std::upper_bound(
        plan.connections.begin(), plan.connections.end(), end,
        [](uint32_t e, const plan::Connection &c) { return e < c.firstDestination; });
    return std::prev(after)->source;
  }

  static void markSignals(Gpu &gpu) {
    for (const ThreadBlock &block : gpu.threadBlocks)
      for (const Step &step : block.steps)
        if (step.dependencyBlock >= 0)
          gpu.threadBlocks[static_cast<size_t>(step.dependencyBlock)]
              .steps[static_cast<size_t>(step.dependencyStep)]
              .signals = true;
  }

  const plan::Plan &plan;
  uint32_t rank;
  const Pairs &pairs;
  const std::vector<uint32_t> &channels;
  uint32_t scratch = 0; // the first chunk that is free
  std::vector<Block> blocks;
  std::vector<std::vector<std::vector<Place>>> instructionPlaces; // block, instruction, operation
};

/// Instructions without counterpart.
// The format knows messages and local operations.
support::Status checkExpressible(const plan::Plan &plan) {
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    Opcode opcode = plan.instructions[i].opcode;
    if (opcode < Opcode::LoadReduceStore)
      continue;
    return support::Status::error(
        "MSCCL XML cannot say " + std::string(plan::mnemonic(opcode)) + " (" +
        plan::describe(plan, static_cast<uint32_t>(i)) +
        "): ranks of it move data by messages only; compile the algorithm "
        "without direct access [E240]");
  }
  return {};
}

uint64_t multiply(uint64_t bytes, uint64_t parts) {
  constexpr uint64_t kMax = INT64_MAX;
  return bytes > kMax / parts ? kMax : bytes * parts;
}

void setHeader(Algorithm &algorithm, const plan::Plan &plan, Runtime runtime) {
  // "custom" is what tools call a collective that they do not know.
  algorithm.name = plan.name;
  algorithm.collective = "custom";
  uint64_t parts = 1;
  algorithm.chunksPerLoop = 1;
  // Without parts, a loop over the largest buffer.
  for (const plan::RankPlan &rank : plan.ranks)
    algorithm.chunksPerLoop =
        std::max({algorithm.chunksPerLoop, rank.inputChunks, rank.outputChunks});
  // Each runtime has its own names. Sizes in a file are those of the whole buffer, in a plan those
  // of a part.
  if (const auto standard = plan::standardCollectiveOf(plan.collective)) {
    algorithm.collective = runtime == Runtime::Msccl ? mscclNameOf(*standard) : nameOf(*standard);
    parts = hasManyParts(*standard) ? plan.numRanks : 1;
    algorithm.chunksPerLoop = plan.partChunks * static_cast<uint32_t>(parts);
  }
  algorithm.protocol = plan.protocol;
  algorithm.numGpus = plan.numRanks;
  algorithm.inPlace = plan.inPlace;
  algorithm.outOfPlace = plan.outOfPlace;
  algorithm.minBytes = multiply(plan.minBytes, parts);
  algorithm.maxBytes = multiply(plan.maxBytes, parts);
}

} // namespace

support::Expected<Algorithm> exportAlgorithm(const plan::Plan &plan, Runtime runtime) {
  // First whether it can be said at all, then which connections share thread blocks and channels,
  // then rank by rank.
  support::Status status = checkExpressible(plan);
  if (!status)
    return status;
  Algorithm algorithm;
  setHeader(algorithm, plan, runtime);
  Pairs pairs = choosePairs(plan);
  std::vector<uint32_t> channels = colourChannels(plan, pairs);
  for (uint32_t rank = 0; rank < plan.numRanks; ++rank)
    algorithm.gpus.push_back(RankExport(plan, rank, pairs, channels).run());
  return algorithm;
}

} // namespace occl::interchange::msccl
