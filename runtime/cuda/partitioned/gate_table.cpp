// From the bound program, by thread block: partitions that it reads, and partitions that it makes.
#include "runtime/cuda/partitioned/gate_table.h"

#include "runtime/base/cache_line.h"

#include <algorithm>
#include <span>

namespace occl::cuda {

using interpreter::BoundBlock;
using interpreter::BoundInstruction;
using interpreter::BoundOperand;
using interpreter::Program;
using partitioned::CollectiveBuffers;

namespace {

/// By partition, whether it is one of the set.
using Flags = std::vector<bool>;

void set(Flags &flags, plan::Range partitions) {
  for (uint64_t p = partitions.begin; p < partitions.end; ++p)
    flags[p] = true;
}

/// What one thread block reads of the input, and makes of the output.
struct Use {
  Flags read, made;

  explicit Use(const CollectiveBuffers &buffers)
      : read(buffers.input.partitions), made(buffers.output.partitions) {}

  void add(const CollectiveBuffers &buffers, const BoundOperand &operand, bool isStored,
           plan::Range elements) {
    const bool isOutput =
        operand.place == static_cast<interpreter::Place>(plan::OperandKind::Output);
    if (!isOutput && operand.place != static_cast<interpreter::Place>(plan::OperandKind::Input))
      return;
    // An operand of the output needs the partitions of the input that lie there, too.
    set(read, buffers.input.cut().covering(isOutput ? buffers.inputOf(elements) : elements));
    if (isOutput && isStored)
      set(made, buffers.output.cut().covering(elements));
  }
};

Use useOf(const Program &program, const BoundBlock &block, const CollectiveBuffers &buffers) {
  Use use(buffers);
  for (const BoundInstruction &instruction :
       std::span(program.instructions + block.firstInstruction, block.numInstructions)) {
    const std::span operands(program.operands + instruction.firstOperand,
                             instruction.numSources + instruction.numDestinations);
    for (size_t i = 0; i < operands.size(); ++i) {
      const uint64_t begin = operands[i].offset / program.elementBytes;
      use.add(buffers, operands[i], i >= instruction.numSources,
              {begin, begin + instruction.elements});
    }
  }
  return use;
}

/// The set as ranges; how many.
uint32_t append(std::vector<PartitionRange> &ranges, const Flags &flags) {
  const size_t before = ranges.size();
  for (uint32_t p = 0; p < flags.size(); ++p) {
    if (!flags[p])
      continue;
    // A run of partitions is one range.
    if (p != 0 && flags[p - 1])
      ++ranges.back().end;
    else
      ranges.push_back({p, p + 1});
  }
  return static_cast<uint32_t>(ranges.size() - before);
}

} // namespace

GateTable::GateTable(const Program &program, const CollectiveBuffers &buffers)
    : numBlocks(std::max(1u, program.numBlocks)), outputs(buffers.output.partitions) {
  Flags unread(buffers.input.partitions, true);
  std::vector<Flags> made;
  for (uint32_t b = 0; b < numBlocks; ++b) {
    const Use use =
        b < program.numBlocks ? useOf(program, program.blocks[b], buffers) : Use(buffers);
    firstRead.push_back(static_cast<uint32_t>(ranges.size()));
    append(ranges, use.read);
    for (size_t p = 0; p < unread.size(); ++p)
      unread[p] = unread[p] && !use.read[p];
    for (size_t q = 0; q < outputs.size(); ++q)
      outputs[q].makers += use.made[q] ? 1 : 0;
    made.push_back(use.made);
  }
  // The first thread block waits for the unread ones at its end.
  firstRead.push_back(static_cast<uint32_t>(ranges.size()));
  atEnd = append(ranges, unread);
  // Ranges that are made come behind all that are read.
  for (const Flags &each : made) {
    firstMade.push_back(static_cast<uint32_t>(ranges.size()));
    append(ranges, each);
  }
  firstMade.push_back(static_cast<uint32_t>(ranges.size()));
  // The partitions of the input that lie where one of the output does.
  for (size_t q = 0; q < outputs.size(); ++q) {
    const plan::Range own =
        buffers.input.cut().covering(buffers.inputOf(buffers.output.elementsOf(q)));
    outputs[q].ownBegin = static_cast<uint32_t>(own.begin);
    outputs[q].ownEnd = static_cast<uint32_t>(own.end);
  }
}

GateLayout::GateLayout(uint64_t state, uint64_t inputPartitions, const GateTable &table) {
  constexpr uint64_t kAlignment = 128;
  bytes = state;
  const auto place = [&](uint64_t more) {
    const uint64_t at = alignUp(bytes, kAlignment);
    bytes = at + more;
    return at;
  };
  marked = place(inputPartitions * sizeof(uint64_t));
  outputs = place(table.outputs.size() * sizeof table.outputs[0]);
  gates = place(sizeof(PartGates));
  ranges = place(table.ranges.size() * sizeof(PartitionRange));
  firstRead = place(table.firstRead.size() * sizeof(uint32_t));
  firstMade = place(table.firstMade.size() * sizeof(uint32_t));
}

} // namespace occl::cuda
