#include "compiler/interchange/common/SplitFinal.h"

#include "plan/model/builder.h"

#include <algorithm>

namespace occl::interchange {

using plan::Instruction;
using plan::Opcode;
using plan::Operand;
using plan::OperandKind;

namespace {

/// A part of a reduction: chunks [begin, end) of it, all complete or none.
struct Piece {
  uint32_t begin, end;
  bool final;
};

std::vector<Piece> piecesOf(const std::vector<bool> &completes, size_t first, uint32_t count) {
  // Runs of chunks that are final, or not, alike.
  std::vector<Piece> pieces;
  for (uint32_t i = 0; i < count; ++i) {
    bool final = completes[first + i];
    if (pieces.empty() || pieces.back().final != final)
      pieces.push_back({i, i, final});
    pieces.back().end = i + 1;
  }
  return pieces;
}

class Splitter {
public:
  Splitter(const plan::Plan &plan, const std::vector<bool> &completes)
      : plan(plan), completes(completes) {}

  plan::Plan run() {
    copyHeader();
    // Dependencies may point forward: positions must be known before anything is emitted.
    size_t result = 0;
    // Results of all instructions are numbered through.
    for (const Instruction &instruction : plan.instructions) {
      pieces.push_back(piecesOf(completes, result, instruction.count));
      result += instruction.count;
    }
    for (uint32_t r = 0; r < plan.numRanks; ++r)
      splitRank(r);
    return std::move(builder).take();
  }

private:
  void copyHeader() {
    // Everything but what the instructions are in.
    plan::Plan &header = builder.header();
    header = plan;
    header.ranks.clear();
    header.threadBlocks.clear();
    header.instructions.clear();
    header.operands.clear();
    header.dependencies.clear();
  }

  bool isMixed(uint32_t index) const { return pieces[index].size() > 1; }

  static bool isConnection(const Operand &operand) {
    return operand.kind == OperandKind::Connection;
  }

  /// Instructions that become of one.
  uint32_t sizeOf(uint32_t index) const {
    if (!isMixed(index))
      return 1;
    const Instruction &instruction = plan.instructions[index];
    // One for each piece, one for each message that is received first, and one that sends.
    auto sources = plan.sourcesOf(instruction), destinations = plan.destinationsOf(instruction);
    auto received = std::count_if(sources.begin(), sources.end(), isConnection);
    bool sends = std::any_of(destinations.begin(), destinations.end(), isConnection);
    return static_cast<uint32_t>(pieces[index].size() + static_cast<size_t>(received) + sends);
  }

  void splitRank(uint32_t r) {
    // Where each old instruction ends in its new thread block: dependencies wait for the last of
    // its parts. Known for all blocks of the rank before the first is emitted.
    rank = r;
    const plan::RankPlan &sizes = plan.ranks[r];
    scratch = sizes.scratchChunks;
    lastPosition.clear();
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(sizes)) {
      std::vector<uint32_t> &last = lastPosition.emplace_back();
      uint32_t position = 0;
      for (uint32_t i = 0; i < block.numInstructions; ++i) {
        position += sizeOf(block.firstInstruction + i);
        last.push_back(position - 1);
      }
    }
    builder.beginRank(sizes);
    for (const plan::ThreadBlock &block : plan.threadBlocksOf(sizes)) {
      builder.beginThreadBlock();
      for (uint32_t i = 0; i < block.numInstructions; ++i)
        emit(block.firstInstruction + i);
    }
    // What was received in parts needs scratch.
    builder.header().ranks.back().scratchChunks = scratch;
  }

  void emit(uint32_t index) {
    const Instruction &instruction = plan.instructions[index];
    // A dependency on an instruction that was cut is one on its last part.
    dependencies.clear();
    for (plan::Dependency dependency : plan.dependenciesOf(instruction)) {
      dependency.instruction = lastPosition[dependency.threadBlock][dependency.instruction];
      dependencies.push_back(dependency);
    }
    auto sources = plan.sourcesOf(instruction), destinations = plan.destinationsOf(instruction);
    if (isMixed(index))
      return split(index, {sources.begin(), sources.end()},
                   {destinations.begin(), destinations.end()});
    builder.addInstruction(instruction, sources, destinations, dependencies);
  }

  void split(uint32_t index, std::vector<Operand> sources, std::vector<Operand> destinations) {
    Instruction part = plan.instructions[index];
    // Messages are received as a whole, into scratch, as a FIFO has no parts.
    for (Operand &source : sources)
      if (isConnection(source)) {
        Operand here = plan::scratch(rank, scratch);
        scratch += part.count;
        add(part, Opcode::Recv, {source}, {here});
        source = here;
      }
    auto connections = std::partition(destinations.begin(), destinations.end(),
                                      [](const Operand &o) { return !isConnection(o); });
    std::vector<Operand> sends(connections, destinations.end());
    // The result lies where the instruction stores it, or in scratch if it only sends.
    Operand result = sources[0]; // scratch, where nothing is stored but sent
    if (connections != destinations.begin())
      result = destinations[0];
    // The reductions, each over its own run of chunks.
    for (const Piece &piece : pieces[index]) {
      Instruction reduction = part;
      reduction.final = piece.final;
      reduction.count = piece.end - piece.begin;
      if (!plan.uniformChunks)
        reduction.extent = (part.extent + piece.begin) % plan.partChunks;
      std::vector<Operand> from = sources;
      Operand to = result;
      for (Operand &source : from)
        source.index += piece.begin;
      to.index += piece.begin;
      add(reduction, Opcode::Reduce, from, {to});
    }
    // Then everything is sent, as one message again.
    if (!sends.empty())
      add(part, Opcode::Send, {result}, sends);
  }

  /// Only the first instruction that becomes of one waits.
  void add(Instruction instruction, Opcode opcode, const std::vector<Operand> &sources,
           const std::vector<Operand> &destinations) {
    instruction.opcode = opcode;
    instruction.final &= opcode == Opcode::Reduce;
    builder.addInstruction(instruction, sources, destinations, dependencies);
    dependencies.clear();
  }

  const plan::Plan &plan;
  const std::vector<bool> &completes;
  plan::PlanBuilder builder;
  std::vector<std::vector<Piece>> pieces; // of each instruction
  uint32_t rank = 0;
  uint32_t scratch = 0;                            // the first chunk that is free
  std::vector<std::vector<uint32_t>> lastPosition; // of the rank's thread blocks' instructions
  std::vector<plan::Dependency> dependencies;      // of the instruction that is emitted
};

} // namespace

plan::Plan splitFinal(const plan::Plan &plan, const std::vector<bool> &completes) {
  return Splitter(plan, completes).run();
}

} // namespace occl::interchange
