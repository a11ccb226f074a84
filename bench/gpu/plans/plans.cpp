#include "bench/gpu/plans/plans.h"

#include "plan/model/builder.h"

#include <string>
#include <vector>

namespace occl::bench {

using namespace plan;

namespace {

Instruction onChunk(Opcode opcode, uint32_t chunk, bool final = false) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.final = final;
  instruction.count = 1;
  instruction.extent = chunk;
  return instruction;
}

/// A connection from each rank to all others; by source.
std::vector<uint32_t> connectAll(PlanBuilder &builder, uint32_t numRanks, uint32_t channel) {
  std::vector<uint32_t> index;
  for (uint32_t source = 0; source < numRanks; ++source) {
    std::vector<uint32_t> others;
    for (uint32_t r = 0; r < numRanks; ++r)
      if (r != source)
        others.push_back(r);
    index.push_back(builder.addConnection(source, channel, others));
  }
  return index;
}

void addOneShot(PlanBuilder &builder, uint32_t rank, uint32_t chunk,
                const std::vector<uint32_t> &multicast) {
  builder.addInstruction(onChunk(Opcode::Send, chunk), {input(rank, chunk)},
                         {connection(multicast[rank])});
  std::vector<Operand> sources;
  for (uint32_t r = 0; r < multicast.size(); ++r)
    sources.push_back(r == rank ? input(rank, chunk) : connection(multicast[r]));
  Operand result = output(rank, chunk);
  builder.addInstruction(onChunk(Opcode::RecvReduceCopy, chunk, true), sources, {&result, 1});
}

} // namespace

Plan oneShotAfterCopies(uint32_t n, uint32_t blocks, uint32_t copies) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = "copies";
  header.collective = "allreduce";
  header.parameters = {{"ranks", n}, {"blocks", blocks}};
  header.sourceHash = "0000000000000000";
  header.partChunks = blocks;
  std::vector<std::vector<uint32_t>> multicast; // [block][source]
  for (uint32_t b = 0; b < blocks; ++b)
    multicast.push_back(connectAll(builder, n, b));
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank(
        {.inputChunks = blocks, .outputChunks = blocks, .scratchChunks = copies * blocks});
    for (uint32_t b = 0; b < blocks; ++b) {
      builder.beginThreadBlock();
      for (uint32_t i = 0; i < copies; ++i)
        builder.addInstruction(onChunk(Opcode::Copy, b), {input(r, b)},
                               {scratch(r, b * copies + i)});
      addOneShot(builder, r, b, multicast[b]);
    }
  }
  return std::move(builder).take();
}

} // namespace occl::bench
