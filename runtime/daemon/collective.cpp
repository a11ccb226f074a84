#include "runtime/daemon/collective.h"

#include "plan/chunking.h"

#include <algorithm>
#include <utility>

namespace occl::daemon {

namespace {

bool reduces(const plan::Plan &plan) {
  return std::any_of(
      plan.instructions.begin(), plan.instructions.end(),
      [](const plan::Instruction &instruction) { return instruction.numSources > 1; });
}

/// The destinations of this rank's sends.
std::vector<uint32_t> readersOf(const plan::Plan &plan, uint32_t rank) {
  std::vector<bool> reads(plan.numRanks, false);
  for (const plan::Connection &connection : plan.connections)
    if (connection.source == rank)
      for (uint32_t destination : plan.destinationsOf(connection))
        reads[destination] = true;
  std::vector<uint32_t> readers;
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    if (reads[r])
      readers.push_back(r);
  return readers;
}

void countBytes(Collective &collective) {
  const interpreter::Program &program = collective.binding->program();
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    const interpreter::BoundBlock &block = program.blocks[b];
    for (uint32_t i = 0; i < block.numInstructions; ++i) {
      const auto &instruction = program.instructions[block.firstInstruction + i];
      uint64_t bytes = instruction.elements * program.elementBytes;
      for (uint32_t o = 0; o < uint32_t{instruction.numSources} + instruction.numDestinations;
           ++o) {
        const auto &operand = program.operands[instruction.firstOperand + o];
        if (operand.kind != plan::OperandKind::Connection)
          continue;
        if (o < instruction.numSources)
          collective.bytesReceived += bytes;
        else
          collective.bytesSent += bytes * program.ends[operand.end].numPeers;
      }
    }
  }
}

/// Bytes from the start of the output to the chunk that input chunk 0 is in place; negative for an
/// input that begins before the output does.
int64_t inPlaceBytesOf(const plan::Plan &plan, uint32_t rank, uint64_t count,
                       uint64_t elementBytes) {
  int64_t offset = plan.ranks[rank].inPlaceOffset;
  auto chunking = plan::Chunking::of(count, plan.partChunks, elementBytes);
  auto distance = static_cast<int64_t>(
      chunking.beginInBuffer(static_cast<uint64_t>(offset < 0 ? -offset : offset)) * elementBytes);
  return offset < 0 ? -distance : distance;
}

} // namespace

std::string Collective::describe() const {
  return "'" + (spec.name.empty() ? spec.plan->name : spec.name) + "' (id " +
         std::to_string(spec.id) + ")";
}

StatusOr<std::unique_ptr<Collective>> makeCollective(CollectiveSpec spec, uint32_t rank) {
  auto binding = interpreter::bind(*spec.plan, {rank, spec.count, spec.type, spec.op, {}});
  if (!binding.ok())
    return binding.status();
  auto collective = std::make_unique<Collective>();
  collective->binding = *binding;
  uint32_t op = reduces(*spec.plan) ? static_cast<uint32_t>(spec.op) : 0;
  collective->traits = {spec.planHash, spec.count, static_cast<uint32_t>(spec.type), op};
  collective->readers = readersOf(*spec.plan, rank);
  collective->inPlaceBytes = inPlaceBytesOf(*spec.plan, rank, spec.count, sizeOf(spec.type));
  collective->spec = std::move(spec);
  countBytes(*collective);
  return collective;
}

} // namespace occl::daemon
