// Writes a large plan for measurements of the verifier: an all-reduce along a chain of ranks and
// back, on two channels, each with four thread blocks a rank (receive and reduce, pass on, receive
// the result, pass that on) that are tied together by dependencies.
//
//   make_plan <ranks> <chunks a channel> <file.plan.json or .cbor>
//
// 1,024 ranks and 122 chunks are 998,448 instructions.
#include "plan/io/writer.h"
#include "plan/model/builder.h"

#include <cstdio>
#include <cstdlib>

namespace occl::plan {
namespace {

constexpr uint32_t kChannels = 2;

struct Chain {
  uint32_t numRanks, chunks; // chunks of one channel

  /// Connections come in the order of ranks, for each rank of channels.
  uint32_t up(uint32_t rank, uint32_t channel) const { return rank * kChannels + channel; }
  uint32_t down(uint32_t rank, uint32_t channel) const {
    return (numRanks - 1 + rank) * kChannels + channel;
  }
};

void connect(PlanBuilder &builder, const Chain &chain) {
  for (bool up : {true, false})
    for (uint32_t rank = 0; rank + 1 < chain.numRanks; ++rank)
      for (uint32_t channel = 0; channel < kChannels; ++channel)
        builder.addConnection(up ? rank : rank + 1, channel, {up ? rank + 1 : rank});
}

/// A thread block of one instruction a chunk. Each depends on the one at its position in thread
/// block `after`, unless that is negative.
template <typename Sources, typename Destination>
void addBlock(PlanBuilder &builder, const Chain &chain, uint32_t channel, Instruction step,
              const Sources &sources, const Destination &destination, int64_t after) {
  builder.beginThreadBlock();
  for (uint32_t i = 0; i < chain.chunks; ++i) {
    step.count = 1;
    step.extent = channel * chain.chunks + i;
    step.location = builder.location(0, 3 + static_cast<uint32_t>(step.opcode), 5);
    Operand to = destination(step.extent);
    Dependency dependency = {static_cast<uint32_t>(after), i};
    builder.addInstruction(step, sources(step.extent), {&to, 1},
                           std::span(&dependency, after < 0 ? 0 : 1));
  }
}

/// The four thread blocks of one channel, those that the rank's place in the chain needs.
void addChannel(PlanBuilder &builder, const Chain &chain, uint32_t rank, uint32_t channel) {
  const bool isFirst = rank == 0, isLast = rank + 1 == chain.numRanks;
  auto block = [&] { return int64_t{builder.header().ranks.back().numThreadBlocks} - 1; };
  auto here = [&](uint32_t chunk) { return output(rank, chunk); };
  auto own = [&](uint32_t chunk) { return isFirst ? input(rank, chunk) : output(rank, chunk); };
  auto to = [](uint32_t index) { return [=](uint32_t) { return connection(index); }; };
  auto only = [](const auto &source) {
    return [=](uint32_t chunk) { return std::vector<Operand>{source(chunk)}; };
  };
  int64_t last = -1;
  if (!isFirst) {
    auto both = [&](uint32_t chunk) {
      return std::vector<Operand>{input(rank, chunk), connection(chain.up(rank - 1, channel))};
    };
    addBlock(builder, chain, channel, {.opcode = Opcode::RecvReduceCopy, .final = isLast}, both,
             here, last);
    last = block();
  }
  if (!isLast) {
    addBlock(builder, chain, channel, {.opcode = Opcode::Send}, only(own),
             to(chain.up(rank, channel)), last);
    last = block();
    addBlock(builder, chain, channel, {.opcode = Opcode::Recv}, only(to(chain.down(rank, channel))),
             here, last);
    last = block();
  }
  if (!isFirst)
    addBlock(builder, chain, channel, {.opcode = Opcode::Send}, only(here),
             to(chain.down(rank - 1, channel)), last);
}

Plan makePlan(const Chain &chain) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = "chain_allreduce";
  header.collective = "allreduce";
  header.parameters = {{"ranks", chain.numRanks}};
  header.sourceHash = "0123456789abcdef";
  header.partChunks = kChannels * chain.chunks;
  builder.file("chain.coll");
  connect(builder, chain);
  for (uint32_t rank = 0; rank < chain.numRanks; ++rank) {
    builder.beginRank({.inputChunks = header.partChunks, .outputChunks = header.partChunks});
    for (uint32_t channel = 0; channel < kChannels; ++channel)
      addChannel(builder, chain, rank, channel);
  }
  return std::move(builder).take();
}

int run(uint32_t numRanks, uint32_t chunks, const char *path) {
  Plan plan = makePlan({numRanks, chunks});
  occl::support::Status status = writePlanFile(plan, path);
  if (!status) {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return 1;
  }
  std::printf("%zu instructions, %zu dependencies\n", plan.instructions.size(),
              plan.dependencies.size());
  return 0;
}

} // namespace
} // namespace occl::plan

int main(int argc, char **argv) {
  int ranks = argc == 4 ? std::atoi(argv[1]) : 0, chunks = argc == 4 ? std::atoi(argv[2]) : 0;
  if (ranks < 2 || chunks < 1) {
    std::fprintf(stderr, "usage: %s <ranks, at least 2> <chunks a channel> <file>\n", argv[0]);
    return 2;
  }
  return occl::plan::run(static_cast<uint32_t>(ranks), static_cast<uint32_t>(chunks), argv[3]);
}
