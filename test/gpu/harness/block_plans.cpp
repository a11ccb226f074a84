#include "test/gpu/harness/block_plans.h"

#include "plan/model/builder.h"

#include <utility>
#include <vector>

namespace occl::gpu_test {

namespace {

plan::PlanBuilder start(const char *name, uint32_t partChunks) {
  plan::PlanBuilder builder;
  builder.header().name = name;
  builder.header().collective = "allreduce";
  builder.header().sourceHash = "0123456789abcdef";
  builder.header().partChunks = partChunks;
  return builder;
}

std::vector<uint32_t> allBut(uint32_t rank, uint32_t numRanks) {
  std::vector<uint32_t> others;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (r != rank)
      others.push_back(r);
  return others;
}

} // namespace

plan::Plan oneShotInBlocks(uint32_t numRanks, uint32_t numBlocks, plan::Protocol protocol,
                           Adding adding) {
  plan::PlanBuilder builder = start("one_shot_in_blocks", numBlocks);
  builder.header().protocol = protocol;
  for (uint32_t r = 0; r < numRanks; ++r)
    for (uint32_t b = 0; b < numBlocks; ++b)
      builder.addConnection(r, b, allBut(r, numRanks));
  for (uint32_t r = 0; r < numRanks; ++r) {
    builder.beginRank({.inputChunks = numBlocks, .outputChunks = numBlocks});
    for (uint32_t b = 0; b < numBlocks; ++b) {
      builder.beginThreadBlock();
      builder.addInstruction({.opcode = plan::Opcode::Send, .count = 1, .extent = b},
                             {plan::input(r, b)}, {plan::connection(r * numBlocks + b)});
      std::vector<plan::Operand> sources;
      for (uint32_t q = 0; q < numRanks; ++q)
        sources.push_back(q == r ? plan::input(r, b) : plan::connection(q * numBlocks + b));
      const plan::Operand result = plan::output(r, b);
      std::vector<plan::Dependency> after;
      if (adding == Adding::AfterNext)
        after.push_back({(b + 1) % numBlocks, 0});
      builder.addInstruction(
          {.opcode = plan::Opcode::RecvReduceCopy, .final = true, .count = 1, .extent = b}, sources,
          {&result, 1}, after);
    }
  }
  return std::move(builder).take();
}

plan::Plan directInBlocks(uint32_t numRanks, uint32_t numBlocks) {
  const uint32_t numChunks = numRanks * numBlocks;
  plan::PlanBuilder builder = start("direct_in_blocks", numChunks);
  for (uint32_t r = 0; r < numRanks; ++r)
    for (uint32_t b = 0; b < numBlocks; ++b)
      builder.addCounter(r, allBut(r, numRanks));
  for (uint32_t r = 0; r < numRanks; ++r) {
    builder.beginRank({.inputChunks = numChunks, .outputChunks = numChunks});
    for (uint32_t b = 0; b < numBlocks; ++b) {
      builder.beginThreadBlock();
      const uint32_t chunk = r * numBlocks + b;
      std::vector<plan::Operand> sources, destinations;
      for (uint32_t q = 0; q < numRanks; ++q) {
        sources.push_back(plan::input(q, chunk));
        destinations.push_back(plan::output(q, chunk));
      }
      builder.addInstruction(
          {.opcode = plan::Opcode::LoadReduceStore, .final = true, .count = 1, .extent = chunk},
          sources, destinations);
      builder.addInstruction({.opcode = plan::Opcode::Signal}, {}, {plan::connection(chunk)});
      for (uint32_t q : allBut(r, numRanks))
        builder.addInstruction({.opcode = plan::Opcode::Wait, .value = 1},
                               {plan::connection(q * numBlocks + b)}, {});
    }
  }
  return std::move(builder).take();
}

plan::Plan chainOfPairs(uint32_t numRanks) {
  constexpr uint32_t kChunks = 2;
  plan::PlanBuilder builder = start("chain_of_pairs", kChunks);
  builder.header().collective = "broadcast";
  for (uint32_t r = 0; r + 1 < numRanks; ++r)
    builder.addConnection(r, 0, {r + 1});
  for (uint32_t r = 0; r < numRanks; ++r) {
    builder.beginRank({.inputChunks = kChunks, .outputChunks = kChunks});
    builder.beginThreadBlock();
    const bool isFirst = r == 0, isLast = r + 1 == numRanks;
    const plan::Operand from = isFirst ? plan::input(r, 0) : plan::connection(r - 1);
    if (isFirst)
      builder.addInstruction({.opcode = plan::Opcode::Copy, .count = kChunks}, {from},
                             {plan::output(r, 0)});
    if (isFirst && !isLast)
      builder.addInstruction({.opcode = plan::Opcode::Send, .count = kChunks}, {from},
                             {plan::connection(r)});
    else if (isLast && !isFirst)
      builder.addInstruction({.opcode = plan::Opcode::Recv, .count = kChunks}, {from},
                             {plan::output(r, 0)});
    else if (!isFirst)
      builder.addInstruction({.opcode = plan::Opcode::RecvCopySend, .count = kChunks}, {from},
                             {plan::output(r, 0), plan::connection(r)});
  }
  return std::move(builder).take();
}

} // namespace occl::gpu_test
