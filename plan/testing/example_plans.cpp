#include "plan/testing/example_plans.h"

#include "plan/model/builder.h"

#include <functional>

namespace occl::plan::testing {

namespace {

PlanBuilder start(const std::string &name, const std::string &collective, uint32_t numRanks,
                  uint32_t partChunks) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = name;
  header.collective = collective;
  header.parameters = {{"ranks", numRanks}};
  header.sourceHash = "0123456789abcdef";
  header.partChunks = partChunks;
  builder.file(name + ".coll");
  return builder;
}

std::vector<uint32_t> allBut(uint32_t rank, uint32_t numRanks) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (r != rank)
      ranks.push_back(r);
  return ranks;
}

/// One connection from each rank to the next, of the same index as its source.
void connectRing(PlanBuilder &builder, uint32_t numRanks) {
  for (uint32_t r = 0; r < numRanks && numRanks > 1; ++r)
    builder.addConnection(r, 0, {(r + 1) % numRanks});
}

/// The connections of all pairs, from source to destination; [source][destination].
std::vector<std::vector<uint32_t>> connectPairs(PlanBuilder &builder, uint32_t numRanks) {
  std::vector<std::vector<uint32_t>> index(numRanks, std::vector<uint32_t>(numRanks));
  for (uint32_t source = 0; source < numRanks; ++source)
    for (uint32_t destination : allBut(source, numRanks))
      index[source][destination] = builder.addConnection(source, 0, {destination});
  return index;
}

std::vector<uint32_t> connectMulticast(PlanBuilder &builder, uint32_t numRanks, uint32_t channel) {
  std::vector<uint32_t> index(numRanks);
  for (uint32_t source = 0; source < numRanks && numRanks > 1; ++source)
    index[source] = builder.addConnection(source, channel, allBut(source, numRanks));
  return index;
}

/// An instruction on one chunk, from line `line` of the plan's file.
Instruction at(PlanBuilder &builder, uint32_t line, Opcode opcode, uint32_t extent,
               bool final = false) {
  Instruction instruction;
  instruction.opcode = opcode;
  instruction.final = final;
  instruction.count = 1;
  instruction.extent = extent;
  instruction.location = builder.location(0, line, 5);
  return instruction;
}

/// The sources of rank `self`'s reduction over all ranks in rank order, its own chunk being local.
std::vector<Operand> foldInRankOrder(uint32_t self, uint32_t numRanks, Operand own,
                                     const std::function<uint32_t(uint32_t)> &connectionFrom) {
  std::vector<Operand> sources;
  for (uint32_t r = 0; r < numRanks; ++r)
    sources.push_back(r == self ? own : connection(connectionFrom(r)));
  return sources;
}

void copyOnly(PlanBuilder &builder, uint32_t count) {
  Instruction copy = at(builder, 1, Opcode::Copy, 0);
  copy.count = count;
  builder.addInstruction(copy, {input(0, 0)}, {output(0, 0)});
}

} // namespace

Plan ringAllReduce(uint32_t n) {
  PlanBuilder builder = start("ring_allreduce", "allreduce", n, n);
  connectRing(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n});
    builder.beginThreadBlock();
    if (n == 1) {
      copyOnly(builder, 1);
      break;
    }
    Operand from = connection((r + n - 1) % n), to = connection(r);
    auto chunkAt = [&](uint32_t step) { return (r + 2 * n - step) % n; };
    builder.addInstruction(at(builder, 4, Opcode::Send, r), {input(r, r)}, {to});
    for (uint32_t step = 1; step < n - 1; ++step)
      builder.addInstruction(at(builder, 6, Opcode::RecvReduceSend, chunkAt(step)),
                             {input(r, chunkAt(step)), from}, {to});
    uint32_t own = chunkAt(n - 1);
    builder.addInstruction(at(builder, 6, Opcode::RecvReduceCopySend, own, true),
                           {input(r, own), from}, {output(r, own), to});
    for (uint32_t step = n; step < 2 * n - 2; ++step)
      builder.addInstruction(at(builder, 8, Opcode::RecvCopySend, chunkAt(step)), {from},
                             {output(r, chunkAt(step)), to});
    uint32_t last = chunkAt(2 * n - 2);
    builder.addInstruction(at(builder, 8, Opcode::Recv, last), {from}, {output(r, last)});
  }
  return std::move(builder).take();
}

Plan oneShotAllReduce(uint32_t n) {
  PlanBuilder builder = start("one_shot_allreduce", "allreduce", n, 1);
  std::vector<uint32_t> multicast = connectMulticast(builder, n, 0);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    if (n == 1) {
      copyOnly(builder, 1);
      break;
    }
    builder.addInstruction(at(builder, 3, Opcode::Send, 0), {input(r, 0)},
                           {connection(multicast[r])});
    std::vector<Operand> sources =
        foldInRankOrder(r, n, input(r, 0), [&](uint32_t q) { return multicast[q]; });
    Operand result = output(r, 0);
    builder.addInstruction(at(builder, 4, Opcode::RecvReduceCopy, 0, true), sources, {&result, 1});
  }
  return std::move(builder).take();
}

Plan twoShotAllReduce(uint32_t n) {
  PlanBuilder builder = start("two_shot_allreduce", "allreduce", n, n);
  std::vector<std::vector<uint32_t>> pairs = connectPairs(builder, n);
  std::vector<uint32_t> multicast = connectMulticast(builder, n, 1);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n});
    builder.beginThreadBlock();
    if (n == 1) {
      copyOnly(builder, 1);
      break;
    }
    for (uint32_t q : allBut(r, n))
      builder.addInstruction(at(builder, 3, Opcode::Send, q), {input(r, q)},
                             {connection(pairs[r][q])});
    builder.beginThreadBlock();
    std::vector<Operand> sources =
        foldInRankOrder(r, n, input(r, r), [&](uint32_t q) { return pairs[q][r]; });
    Operand result = output(r, r);
    builder.addInstruction(at(builder, 4, Opcode::RecvReduceCopy, r, true), sources, {&result, 1});
    builder.beginThreadBlock();
    builder.addInstruction(at(builder, 5, Opcode::Send, r), {result}, {connection(multicast[r])},
                           {{1, 0}});
    builder.beginThreadBlock();
    uint32_t sent = 0; // in place, output chunk q is free once it was sent to rank q
    for (uint32_t q : allBut(r, n))
      builder.addInstruction(at(builder, 6, Opcode::Recv, q), {connection(multicast[q])},
                             {output(r, q)}, {{0, sent++}});
  }
  return std::move(builder).take();
}

Plan chainBroadcast(uint32_t n, uint32_t chunks, uint32_t root) {
  std::vector<uint32_t> order;
  for (uint32_t k = 0; k < n; ++k)
    order.push_back((root + k) % n);
  return chainBroadcastAlong(order, chunks);
}

Plan chainBroadcastAlong(const std::vector<uint32_t> &order, uint32_t chunks) {
  const auto n = static_cast<uint32_t>(order.size());
  PlanBuilder builder = start("chain_broadcast", "broadcast", n, chunks);
  builder.header().root = order[0];
  std::vector<uint32_t> next(n), previous(n);
  for (uint32_t k = 0; k < n; ++k) {
    next[order[k]] = order[(k + 1) % n];
    previous[order[(k + 1) % n]] = order[k];
  }
  for (uint32_t r = 0; r < n && n > 1; ++r)
    builder.addConnection(r, 0, {next[r]});
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = chunks, .outputChunks = chunks});
    builder.beginThreadBlock();
    Operand from = connection(previous[r]), to = connection(r);
    for (uint32_t c = 0; c < chunks; ++c) {
      if (r == order[0]) {
        builder.addInstruction(at(builder, 2, Opcode::Copy, c), {input(r, c)}, {output(r, c)});
        if (n > 1)
          builder.addInstruction(at(builder, 4, Opcode::Send, c), {input(r, c)}, {to});
      } else if (r == order[n - 1]) {
        builder.addInstruction(at(builder, 4, Opcode::Recv, c), {from}, {output(r, c)});
      } else {
        builder.addInstruction(at(builder, 4, Opcode::RecvCopySend, c), {from}, {output(r, c), to});
      }
    }
  }
  return std::move(builder).take();
}

Plan chainReduce(uint32_t n, uint32_t chunks, uint32_t root) {
  PlanBuilder builder = start("chain_reduce", "reduce", n, chunks);
  builder.header().root = root;
  connectRing(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = chunks, .outputChunks = chunks});
    builder.beginThreadBlock();
    Operand from = connection((r + n - 1) % n), to = connection(r);
    bool isFirst = r == (root + 1) % n;
    for (uint32_t c = 0; c < chunks; ++c) {
      if (n == 1)
        builder.addInstruction(at(builder, 2, Opcode::Copy, c), {input(r, c)}, {output(r, c)});
      else if (isFirst)
        builder.addInstruction(at(builder, 4, Opcode::Send, c), {input(r, c)}, {to});
      else if (r == root)
        builder.addInstruction(at(builder, 5, Opcode::RecvReduceCopy, c, true), {from, input(r, c)},
                               {output(r, c)});
      else
        builder.addInstruction(at(builder, 5, Opcode::RecvReduceSend, c), {from, input(r, c)},
                               {to});
    }
  }
  return std::move(builder).take();
}

Plan ringAllGather(uint32_t n) {
  PlanBuilder builder = start("ring_allgather", "allgather", n, 1);
  connectRing(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank(
        {.inputChunks = 1, .outputChunks = n, .inPlaceOffset = static_cast<int32_t>(r)});
    builder.beginThreadBlock();
    Operand from = connection((r + n - 1) % n), to = connection(r);
    builder.addInstruction(at(builder, 2, Opcode::Copy, 0), {input(r, 0)}, {output(r, r)});
    if (n > 1)
      builder.addInstruction(at(builder, 4, Opcode::Send, 0), {input(r, 0)}, {to});
    for (uint32_t step = 1; step < n; ++step) {
      Operand place = output(r, (r + n - step) % n);
      if (step + 1 < n)
        builder.addInstruction(at(builder, 5, Opcode::RecvCopySend, 0), {from}, {place, to});
      else
        builder.addInstruction(at(builder, 5, Opcode::Recv, 0), {from}, {place});
    }
  }
  return std::move(builder).take();
}

Plan ringReduceScatter(uint32_t n) {
  PlanBuilder builder = start("ring_reducescatter", "reducescatter", n, 1);
  connectRing(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank(
        {.inputChunks = n, .outputChunks = 1, .inPlaceOffset = -static_cast<int32_t>(r)});
    builder.beginThreadBlock();
    Operand from = connection((r + n - 1) % n), to = connection(r);
    if (n == 1) {
      copyOnly(builder, 1);
      break;
    }
    builder.addInstruction(at(builder, 3, Opcode::Send, 0), {input(r, (r + n - 1) % n)}, {to});
    for (uint32_t step = 1; step < n - 1; ++step)
      builder.addInstruction(at(builder, 4, Opcode::RecvReduceSend, 0),
                             {input(r, (r + 2 * n - 1 - step) % n), from}, {to});
    builder.addInstruction(at(builder, 4, Opcode::RecvReduceCopy, 0, true), {input(r, r), from},
                           {output(r, 0)});
  }
  return std::move(builder).take();
}

Plan allToAll(uint32_t n) {
  PlanBuilder builder = start("direct_alltoall", "alltoall", n, 1);
  std::vector<std::vector<uint32_t>> pairs = connectPairs(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n});
    builder.beginThreadBlock();
    builder.addInstruction(at(builder, 3, Opcode::Copy, 0), {input(r, r)}, {output(r, r)});
    for (uint32_t q : allBut(r, n))
      builder.addInstruction(at(builder, 3, Opcode::Send, 0), {input(r, q)},
                             {connection(pairs[r][q])});
    for (uint32_t q : allBut(r, n))
      builder.addInstruction(at(builder, 3, Opcode::Recv, 0), {connection(pairs[q][r])},
                             {output(r, q)});
  }
  return std::move(builder).take();
}

Plan allToAllInTurn(uint32_t n) {
  PlanBuilder builder = start("alltoall_in_turn", "alltoall", n, 1);
  builder.header().inPlace = false;
  std::vector<std::vector<uint32_t>> pairs = connectPairs(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n});
    builder.beginThreadBlock();
    builder.addInstruction(at(builder, 3, Opcode::Copy, 0), {input(r, r)}, {output(r, r)});
    const auto send = [&](uint32_t q) {
      builder.addInstruction(at(builder, 4, Opcode::Send, 0), {input(r, q)},
                             {connection(pairs[r][q])});
    };
    for (uint32_t q : allBut(r, n)) {
      if (r < q)
        send(q);
      builder.addInstruction(at(builder, 4, Opcode::Recv, 0), {connection(pairs[q][r])},
                             {output(r, q)});
      if (r > q)
        send(q);
    }
  }
  return std::move(builder).take();
}

Plan shift(uint32_t n, uint32_t chunks) {
  PlanBuilder builder = start("shift", "shift", n, chunks);
  for (uint32_t r = 0; r + 1 < n; ++r)
    builder.addConnection(r, 0, {r + 1});
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank(
        {.inputChunks = chunks, .outputChunks = r == 0 ? 0 : chunks, .scratchChunks = chunks});
    builder.beginThreadBlock();
    Instruction all = at(builder, 3, Opcode::Copy, 0);
    all.count = chunks;
    if (r + 1 < n) {
      builder.addInstruction(all, {input(r, 0)}, {scratch(r, 0)});
      all.opcode = Opcode::Send;
      builder.addInstruction(all, {scratch(r, 0)}, {connection(r)});
    }
    if (r > 0) {
      all.opcode = Opcode::Recv;
      builder.addInstruction(all, {connection(r - 1)}, {output(r, 0)});
      Contribution previous = {r - 1, 0};
      builder.addRequirement({.rank = r, .outputChunk = 0, .count = chunks}, {&previous, 1});
    }
  }
  return std::move(builder).take();
}

} // namespace occl::plan::testing
