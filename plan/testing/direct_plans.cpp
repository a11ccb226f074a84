#include "plan/testing/direct_plans.h"

#include "plan/model/builder.h"

namespace occl::plan::testing {

namespace {

PlanBuilder start(const char *name, const char *collective, uint32_t partChunks) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = name;
  header.collective = collective;
  header.sourceHash = "0123456789abcdef";
  header.partChunks = partChunks;
  return builder;
}

/// A counter of each rank for all others; none for a single rank.
void addCounters(PlanBuilder &builder, uint32_t n) {
  for (uint32_t source = 0; source < n && n > 1; ++source) {
    std::vector<uint32_t> others;
    for (uint32_t r = 0; r < n; ++r)
      if (r != source)
        others.push_back(r);
    builder.addCounter(source, others);
  }
}

/// For the counters of ranks [begin, end), but `rank`.
void wait(PlanBuilder &builder, uint32_t rank, uint32_t begin, uint32_t end, uint32_t value) {
  std::vector<Operand> counters;
  for (uint32_t q = begin; q < end; ++q)
    if (q != rank)
      counters.push_back(connection(q));
  if (!counters.empty())
    builder.addInstruction({.opcode = Opcode::Wait, .value = value}, counters, {});
}

void signalAndWait(PlanBuilder &builder, uint32_t rank, uint32_t n, uint32_t value) {
  if (n == 1)
    return;
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(rank)});
  wait(builder, rank, 0, n, value);
}

} // namespace

Plan directAllReduce(uint32_t n) {
  PlanBuilder builder = start("direct_allreduce", "allreduce", n);
  addCounters(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n});
    builder.beginThreadBlock();
    std::vector<Operand> sources, destinations;
    for (uint32_t q = 0; q < n; ++q) {
      sources.push_back(input(q, r));
      destinations.push_back(output(q, r));
    }
    builder.addInstruction(
        {.opcode = Opcode::LoadReduceStore, .final = n > 1, .count = 1, .extent = r}, sources,
        destinations);
    signalAndWait(builder, r, n, 1);
  }
  return std::move(builder).take();
}

Plan directAllGather(uint32_t n) {
  PlanBuilder builder = start("direct_allgather", "allgather", 1);
  addCounters(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = 1,
                       .outputChunks = n,
                       .scratchChunks = 1,
                       .inPlaceOffset = static_cast<int32_t>(r)});
    builder.beginThreadBlock();
    builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(r, 0)}, {scratch(r, 0)});
    signalAndWait(builder, r, n, 1);
    for (uint32_t q = 0; q < n; ++q)
      builder.addInstruction({.opcode = Opcode::LoadReduceStore, .count = 1}, {scratch(q, 0)},
                             {output(r, q)});
    signalAndWait(builder, r, n, 2);
  }
  return std::move(builder).take();
}

Plan directInTurn(uint32_t n) {
  PlanBuilder builder = start("direct_in_turn", "allreduce", 1);
  builder.header().inPlace = false;
  addCounters(builder, n);
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    std::vector<Operand> sources;
    for (uint32_t q = 0; q < n; ++q)
      sources.push_back(input(q, 0));
    const Operand sum = output(r, 0);
    wait(builder, r, 0, r, 1);
    builder.addInstruction({.opcode = Opcode::LoadReduceStore, .final = n > 1, .count = 1}, sources,
                           {&sum, 1});
    if (n > 1)
      builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(r)});
    wait(builder, r, r + 1, n, 1);
  }
  return std::move(builder).take();
}

} // namespace occl::plan::testing
