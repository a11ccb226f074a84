// The steps of an MSCCL XML file as the instructions of a plan. Nops disappear: what they wait for
// is waited for by the step that follows. Reductions in a row into one place become one.
#include "compiler/interchange/msccl/MscclImport.h"

#include "plan/model/builder.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace occl::interchange::msccl {

using frontend::DiagnosticCode;
using plan::Opcode;
using plan::Operand;
using plan::OperandKind;

namespace {

constexpr uint32_t kNone = ~0u;

Opcode opcodeOf(StepType type) {
  // Those without an instruction of their own (nops, foreign steps) were taken out, or refused,
  // before.
  switch (type) {
  case StepType::Send:
    return Opcode::Send;
  case StepType::Recv:
    return Opcode::Recv;
  case StepType::RecvCopySend:
    return Opcode::RecvCopySend;
  case StepType::RecvReduceSend:
    return Opcode::RecvReduceSend;
  case StepType::RecvReduceCopy:
    return Opcode::RecvReduceCopy;
  case StepType::RecvReduceCopySend:
    return Opcode::RecvReduceCopySend;
  case StepType::Reduce:
    return Opcode::Reduce;
  case StepType::Copy:
  case StepType::ResidualAdd:
  case StepType::Nop:
    return Opcode::Copy;
  }
  return Opcode::Copy;
}

/// Where the steps of a thread block are in the plan.
struct BlockPositions {
  std::vector<uint32_t> instruction; // of each step: its position; kNone for a nop
  std::vector<uint32_t> signal; // the first step from here on that others can wait for, or kNone
};

class PlanLowering {
public:
  PlanLowering(const Algorithm &algorithm, const BufferLayout &layout, const ImportOptions &options,
               const ImportedPostcondition &postcondition, Reporter &reporter)
      : algorithm(algorithm), layout(layout), options(options), postcondition(postcondition),
        reporter(reporter) {}

  std::optional<plan::Plan> run() {
    // Connections first, as instructions name them by index; a rank's positions before its
    // instructions, as dependencies may point forward.
    setHeader();
    addConnections();
    file = builder.file(std::string(reporter.fileName()));
    for (uint32_t r = 0; r < algorithm.numGpus; ++r)
      emitRank(r);
    if (postcondition && !postcondition->isStandard)
      addRequirements();
    if (reporter.hasErrors())
      return std::nullopt;
    return std::move(builder).take();
  }

private:
  void setHeader() {
    // What the file does not say has the value that fits any algorithm.
    plan::Plan &header = builder.header();
    header.name = algorithm.name.empty() ? "imported" : algorithm.name;
    header.collective = layout.collective;
    header.parameters = {{"ranks", algorithm.numGpus}};
    header.partChunks = layout.partChunks;
    header.root = layout.root;
    header.outOfPlace = layout.outOfPlace;
    header.inPlace = layout.inPlace;
    header.hasPostcondition = layout.hasPostcondition;
    header.protocol = algorithm.protocol;
    // As many messages as the format's runtimes have in flight.
    header.depth = options.depth.value_or(algorithm.protocol == plan::Protocol::Simple ? 2 : 8);
    // The file counts bytes of a whole buffer, the plan those of a part.
    uint64_t parts = layout.partsOfBuffer;
    if (algorithm.minBytes)
      header.minBytes = (*algorithm.minBytes + parts - 1) / parts;
    if (algorithm.maxBytes)
      header.maxBytes = std::max(header.minBytes, *algorithm.maxBytes / parts);
  }

  void addConnections() {
    // Connections are what steps send and receive on; thread blocks may name peers without using
    // them. A map keeps them in order.
    for (const Gpu &gpu : algorithm.gpus)
      for (const ThreadBlock &block : gpu.threadBlocks)
        for (const Step &step : block.steps) {
          if (shapeOf(step.type).sends)
            connections.try_emplace({gpu.id, block.sendPeer, block.channel});
          if (shapeOf(step.type).receives)
            connections.try_emplace({block.recvPeer, gpu.id, block.channel});
        }
    for (auto &[key, index] : connections)
      index = builder.addConnection(static_cast<uint32_t>(std::get<0>(key)), std::get<2>(key),
                                    {static_cast<uint32_t>(std::get<1>(key))});
  }

  void emitRank(uint32_t r) {
    rank = r;
    const Gpu &gpu = algorithm.gpus[r];
    builder.beginRank(layout.ranks[r]);
    positions.clear();
    // Where each step ends up: nops vanish, and reductions in a row become one instruction.
    for (const ThreadBlock &block : gpu.threadBlocks)
      positions.push_back(locate(block));
    numCopies = 0;
    for (const InitialCopy &copy : gpu.copies)
      numCopies += !isIdentity(copy);
    // Copies of the format's <copy> elements run before everything else.
    for (const ThreadBlock &block : gpu.threadBlocks)
      emitBlock(gpu, block);
    if (numCopies > 0)
      emitCopies(gpu);
  }

  BlockPositions locate(const ThreadBlock &block) const {
    BlockPositions result;
    uint32_t next = 0;
    for (size_t s = 0; s < block.steps.size(); ++s) {
      bool isNop = block.steps[s].type == StepType::Nop;
      bool isMerged = !isNop && continuesReduction(block, s);
      result.instruction.push_back(isNop ? kNone : isMerged ? next - 1 : next++);
    }
    // Which later step of the block signals first: a wait for a step that does not signal is one
    // for the next that does.
    result.signal.assign(block.steps.size(), kNone);
    uint32_t signal = kNone;
    for (size_t s = block.steps.size(); s-- > 0; result.signal[s] = signal)
      if (block.steps[s].type != StepType::Nop && block.steps[s].signals.value_or(true))
        signal = static_cast<uint32_t>(s);
    return result;
  }

  /// Whether step `s` adds to what the step before it has reduced, and nobody could tell whether
  /// both are one.
  bool continuesReduction(const ThreadBlock &block, size_t s) const {
    // Reductions into the same place, without anybody who could see the sum in between.
    const Step &step = block.steps[s];
    if (s == 0 || step.type != StepType::Reduce || step.dependencyBlock >= 0)
      return false;
    const Step &before = block.steps[s - 1];
    if (before.type != StepType::Reduce || before.signals.value_or(true) ||
        before.count != step.count || before.destination.buffer != step.destination.buffer ||
        before.destination.index != step.destination.index)
      return false;
    // Sources and destination must not overlap, or the second sum would read what the first has
    // written.
    if (step.source.buffer != step.destination.buffer)
      return step.source.buffer == OperandKind::Scratch ||
             step.destination.buffer == OperandKind::Scratch || !layout.inPlace;
    int64_t distance = int64_t{step.source.index} - step.destination.index;
    return std::abs(distance) >= int64_t{step.count};
  }

  void emitBlock(const Gpu &gpu, const ThreadBlock &block) {
    // Dependencies are collected until an instruction takes them: those of a nop belong to what
    // follows.
    builder.beginThreadBlock();
    dependencies.clear();
    bool isFirst = true;
    for (size_t s = 0; s < block.steps.size(); ++s) {
      const Step &step = block.steps[s];
      if (step.dependencyBlock >= 0)
        addDependency(gpu, block, s);
      if (step.type == StepType::Nop)
        continue;
      // The first instruction of a block waits for the initial copies; what follows it is behind
      // it.
      if (isFirst && numCopies > 0)
        dependencies[static_cast<uint32_t>(gpu.threadBlocks.size())] = numCopies - 1;
      isFirst = false;
      size_t last = s;
      while (last + 1 < block.steps.size() && continuesReduction(block, last + 1))
        ++last;
      emitInstruction(block, s, last);
      s = last;
    }
  }

  void addDependency(const Gpu &gpu, const ThreadBlock &block, size_t s) {
    // From a step of the file to an instruction of the plan, by the tables above.
    const Step &step = block.steps[s];
    auto target = static_cast<uint32_t>(step.dependencyBlock);
    uint32_t signal = positions[target].signal[static_cast<size_t>(step.dependencyStep)];
    // A runtime would wait for ever.
    if (signal == kNone) {
      uint32_t waited =
          gpu.threadBlocks[target].steps[static_cast<size_t>(step.dependencyStep)].offset;
      reporter
          .error(DiagnosticCode::ImportNeverSignalled, step.offset, "deps",
                 "gpu " + std::to_string(gpu.id) + ", tb " + std::to_string(block.id) + ", step " +
                     std::to_string(s) + ": it waits for step " +
                     std::to_string(step.dependencyStep) + " of tb " + std::to_string(target) +
                     ", but neither that step nor a later one there has hasdep=\"1\": it would "
                     "wait forever")
          .note(reporter.element(waited), "this is the step that it waits for");
      return;
    }
    uint32_t instruction = positions[target].instruction[signal];
    // Order within a thread block needs no dependency.
    bool isEarlierHere = target == static_cast<uint32_t>(block.id) && signal < s;
    if (isEarlierHere)
      return;
    // The latest one of each block is enough.
    auto [entry, isNew] = dependencies.try_emplace(target, instruction);
    if (!isNew)
      entry->second = std::max(entry->second, instruction);
  }

  Operand operand(const Range &range) const {
    return {range.buffer, rank, static_cast<uint32_t>(range.index)};
  }

  /// Steps first to last are one instruction: one step, or reductions in a row.
  void emitInstruction(const ThreadBlock &block, size_t first, size_t last) {
    // Sources in the order of the format: a message, then memory. A reduction's destination is one
    // of its operands there.
    const Step &step = block.steps[first];
    const StepShape &shape = shapeOf(step.type);
    sources.clear();
    destinations.clear();
    if (shape.receives)
      sources.push_back(plan::connection(
          connections.at({block.recvPeer, static_cast<int32_t>(rank), block.channel})));
    if (step.type == StepType::Reduce)
      sources.push_back(operand(step.destination));
    if (shape.readsSource)
      for (size_t s = first; s <= last; ++s)
        sources.push_back(operand(block.steps[s].source));
    if (shape.writesDestination)
      destinations.push_back(operand(step.destination));
    if (shape.sends)
      destinations.push_back(plan::connection(
          connections.at({static_cast<int32_t>(rank), block.sendPeer, block.channel})));
    add(opcodeOf(step.type), step.count, step.offset);
  }

  void add(Opcode opcode, uint32_t count, uint32_t offset) {
    // Sorted by thread block, as the map has them.
    std::vector<plan::Dependency> list;
    for (auto [block, instruction] : dependencies)
      list.push_back({block, instruction});
    dependencies.clear();
    frontend::LineColumn at = reporter.place(offset);
    builder.addInstruction(
        {.opcode = opcode, .count = count, .location = builder.location(file, at.line, at.column)},
        sources, destinations, list);
  }

  /// In place the copy may be to the place itself.
  bool isIdentity(const InitialCopy &copy) const {
    return !layout.outOfPlace &&
           int64_t{copy.inputChunk} + layout.ranks[rank].inPlaceOffset == int64_t{copy.outputChunk};
  }

  /// A thread block of their own, which all others wait for.
  void emitCopies(const Gpu &gpu) {
    // Behind the file's own thread blocks, so that their numbers stay.
    builder.beginThreadBlock();
    dependencies.clear();
    for (const InitialCopy &copy : gpu.copies) {
      if (isIdentity(copy))
        continue;
      sources = {plan::input(rank, copy.inputChunk)};
      destinations = {plan::output(rank, copy.outputChunk)};
      add(Opcode::Copy, copy.count, copy.offset);
    }
  }

  /// See ProgramInfo::requirements.
  void addRequirements() {
    const std::vector<int32_t> &flat = postcondition->requirements;
    std::vector<plan::Contribution> contributions;
    for (size_t i = 0; i < flat.size(); i += 4 + 2 * static_cast<size_t>(flat[i + 3])) {
      contributions.clear();
      for (size_t c = 0; c < static_cast<size_t>(flat[i + 3]); ++c)
        contributions.push_back({static_cast<uint32_t>(flat[i + 4 + 2 * c]),
                                 static_cast<uint32_t>(flat[i + 5 + 2 * c])});
      builder.addRequirement({.rank = static_cast<uint32_t>(flat[i]),
                              .outputChunk = static_cast<uint32_t>(flat[i + 1]),
                              .count = static_cast<uint32_t>(flat[i + 2])},
                             contributions);
    }
  }

  const Algorithm &algorithm;
  const BufferLayout &layout;
  const ImportOptions &options;
  const ImportedPostcondition &postcondition;
  Reporter &reporter;
  plan::PlanBuilder builder;
  uint32_t file = 0;
  std::map<std::tuple<int32_t, int32_t, uint32_t>, uint32_t> connections; // from, to, channel

  uint32_t rank = 0; // the one that is emitted
  uint32_t numCopies = 0;
  std::vector<BlockPositions> positions;     // of its thread blocks
  std::map<uint32_t, uint32_t> dependencies; // of the next instruction: thread block, instruction
  std::vector<Operand> sources, destinations;
};

} // namespace

std::optional<plan::Plan> emitPlan(const Algorithm &algorithm, const BufferLayout &layout,
                                   const ImportOptions &options,
                                   const ImportedPostcondition &postcondition, Reporter &reporter) {
  return PlanLowering(algorithm, layout, options, postcondition, reporter).run();
}

} // namespace occl::interchange::msccl
