#include "runtime/exec/conformance/programs.h"

#include "plan/model/builder.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"

namespace occl::interpreter::conformance {

using plan::Opcode;
using plan::Operand;

/// Rank r: send input[0, n) to all; fold own input and what the others sent into scratch[0, n) with
/// all n chunks in one instruction; copy scratch to the output in two instructions, the first of
/// several chunks.
plan::Plan aggregatedAllReduce(uint32_t n) {
  plan::PlanBuilder builder;
  builder.header().name = "aggregated_allreduce";
  builder.header().collective = "allreduce";
  builder.header().sourceHash = "0123456789abcdef";
  builder.header().partChunks = n;
  for (uint32_t source = 0; source < n && n > 1; ++source) {
    std::vector<uint32_t> others;
    for (uint32_t r = 0; r < n; ++r)
      if (r != source)
        others.push_back(r);
    builder.addConnection(source, 0, others);
  }
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = n, .outputChunks = n, .scratchChunks = n});
    builder.beginThreadBlock();
    if (n == 1) {
      builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::input(r, 0)},
                             {plan::scratch(r, 0)});
      builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::scratch(r, 0)},
                             {plan::output(r, 0)});
      break;
    }
    builder.addInstruction({.opcode = Opcode::Send, .count = n}, {plan::input(r, 0)},
                           {plan::connection(r)});
    std::vector<Operand> sources;
    for (uint32_t q = 0; q < n; ++q)
      sources.push_back(q == r ? plan::input(r, 0) : plan::connection(q));
    Operand sum = plan::scratch(r, 0);
    builder.addInstruction({.opcode = Opcode::RecvReduceCopy, .final = true, .count = n}, sources,
                           std::span(&sum, 1));
    builder.beginThreadBlock();
    builder.addInstruction({.opcode = Opcode::Copy, .count = n - 1}, {plan::scratch(r, 0)},
                           {plan::output(r, 0)}, {{.threadBlock = 0, .instruction = 1}});
    builder.addInstruction({.opcode = Opcode::Copy, .count = 1, .extent = n - 1},
                           {plan::scratch(r, n - 1)}, {plan::output(r, n - 1)},
                           {{.threadBlock = 0, .instruction = 1}});
  }
  return std::move(builder).take();
}

std::span<const NamedProgram> programs() {
  static const NamedProgram all[] = {
      {"ringAllReduce", plan::testing::ringAllReduce},
      {"oneShotAllReduce", plan::testing::oneShotAllReduce},
      {"twoShotAllReduce", plan::testing::twoShotAllReduce},
      {"aggregatedAllReduce", aggregatedAllReduce},
      {"chainBroadcast", [](uint32_t n) { return plan::testing::chainBroadcast(n); }},
      {"chainBroadcastFromLast",
       [](uint32_t n) { return plan::testing::chainBroadcast(n, 3, n - 1); }},
      {"chainReduce", [](uint32_t n) { return plan::testing::chainReduce(n); }},
      {"chainReduceToLast", [](uint32_t n) { return plan::testing::chainReduce(n, 5, n - 1); }},
      {"ringAllGather", plan::testing::ringAllGather},
      {"ringReduceScatter", plan::testing::ringReduceScatter},
      {"allToAll", plan::testing::allToAll},
      {"directAllReduce", plan::testing::directAllReduce},
      {"directAllGather", plan::testing::directAllGather},
      {"shift", [](uint32_t n) { return plan::testing::shift(n); }},
  };
  return all;
}

} // namespace occl::interpreter::conformance
