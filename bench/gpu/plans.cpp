#include "bench/gpu/plans.h"

#include "plan/builder.h"

#include <string>
#include <vector>

namespace occl::bench {

using namespace plan;

namespace {

PlanBuilder start(const std::string &name, uint32_t numRanks, uint32_t numBlocks,
                  uint32_t partChunks) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = name;
  header.collective = "allreduce";
  header.parameters = {{"ranks", numRanks}, {"blocks", numBlocks}};
  header.sourceHash = "0000000000000000";
  header.partChunks = partChunks;
  return builder;
}

Instruction onChunk(Opcode opcode, uint32_t chunk, bool final = false) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.final = final;
  instruction.count = 1;
  instruction.extent = chunk;
  return instruction;
}

/// The other ranks, from the next one on: so that not all send to the same one at once.
std::vector<uint32_t> rotatedPeers(uint32_t rank, uint32_t numRanks) {
  std::vector<uint32_t> peers;
  for (uint32_t i = 1; i < numRanks; ++i)
    peers.push_back((rank + i) % numRanks);
  return peers;
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

Plan oneShotAllReduce(uint32_t n, uint32_t blocks) { return oneShotAfterCopies(n, blocks, 0); }

Plan oneShotAfterCopies(uint32_t n, uint32_t blocks, uint32_t copies) {
  PlanBuilder builder = start("one_shot", n, blocks, blocks);
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

Plan twoShotAllReduce(uint32_t n, uint32_t blocks) {
  PlanBuilder builder = start("two_shot", n, blocks, n * blocks);
  // [block][source][destination]
  std::vector pairs(blocks, std::vector(n, std::vector<uint32_t>(n)));
  std::vector<std::vector<uint32_t>> multicast; // [block][source]
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t r = 0; r < n; ++r)
      for (uint32_t q : rotatedPeers(r, n))
        pairs[b][r][q] = builder.addConnection(r, 2 * b, {q});
    multicast.push_back(connectAll(builder, n, 2 * b + 1));
  }
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n * blocks, .outputChunks = n * blocks});
    for (uint32_t b = 0; b < blocks; ++b) {
      auto chunkOf = [&](uint32_t rank) { return rank * blocks + b; };
      builder.beginThreadBlock();
      for (uint32_t q : rotatedPeers(r, n))
        builder.addInstruction(onChunk(Opcode::Send, chunkOf(q)), {input(r, chunkOf(q))},
                               {connection(pairs[b][r][q])});
      std::vector<Operand> sources;
      for (uint32_t q = 0; q < n; ++q)
        sources.push_back(q == r ? input(r, chunkOf(r)) : connection(pairs[b][q][r]));
      Operand results[] = {output(r, chunkOf(r)), connection(multicast[b][r])};
      builder.addInstruction(onChunk(Opcode::RecvReduceCopySend, chunkOf(r), true), sources,
                             results);
      for (uint32_t q : rotatedPeers(r, n))
        builder.addInstruction(onChunk(Opcode::Recv, chunkOf(q)), {connection(multicast[b][q])},
                               {output(r, chunkOf(q))});
    }
  }
  return std::move(builder).take();
}

Plan ringAllReduce(uint32_t n, uint32_t blocks) {
  PlanBuilder builder = start("ring", n, blocks, n * blocks);
  for (uint32_t b = 0; b < blocks; ++b)
    for (uint32_t r = 0; r < n; ++r)
      builder.addConnection(r, b, {(r + 1) % n});
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n * blocks, .outputChunks = n * blocks});
    for (uint32_t b = 0; b < blocks; ++b) {
      builder.beginThreadBlock();
      Operand from = connection(b * n + (r + n - 1) % n), to = connection(b * n + r);
      for (uint32_t step = 0; step <= 2 * n - 2; ++step) {
        uint32_t chunk = (r + 2 * n - step) % n * blocks + b;
        if (step == 0)
          builder.addInstruction(onChunk(Opcode::Send, chunk), {input(r, chunk)}, {to});
        else if (step < n - 1)
          builder.addInstruction(onChunk(Opcode::RecvReduceSend, chunk), {input(r, chunk), from},
                                 {to});
        else if (step == n - 1)
          builder.addInstruction(onChunk(Opcode::RecvReduceCopySend, chunk, true),
                                 {input(r, chunk), from}, {output(r, chunk), to});
        else if (step < 2 * n - 2)
          builder.addInstruction(onChunk(Opcode::RecvCopySend, chunk), {from},
                                 {output(r, chunk), to});
        else
          builder.addInstruction(onChunk(Opcode::Recv, chunk), {from}, {output(r, chunk)});
      }
    }
  }
  return std::move(builder).take();
}

} // namespace occl::bench
