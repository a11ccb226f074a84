// Turning transfers into direct accesses, for unit tests: from hand-made programs to plans.
#pragma once

#include "compiler/analysis/StepGraph.h"
#include "compiler/analysis/Testing.h"
#include "compiler/passes/direct/DirectTransfers.h"
#include "compiler/passes/direct/SignalPlacement.h"
#include "plan/model/builder.h"
#include "plan/verify/verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

namespace occl::passes::testing {

using namespace analysis;
using namespace analysis::testing;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

/// Gives the program connections, and each rank one thread block; sizes are those that it uses.
inline void schedule(Program &program) {
  // The passes before this one would do that: connections, one thread block, sizes.
  Network network(program);
  for (Rank &rank : program.ranks)
    for (Step &step : rank.steps) {
      step.instruction.threadBlock = 0;
      for (inst::Places *places : {&step.instruction.sources, &step.instruction.destinations})
        for (Place &place : *places) {
          if (!place.isLocal())
            place = {PlaceKind::Connection, -1, network.connectionOf(place)};
          uint32_t &size = place.kind == PlaceKind::Input    ? rank.inputChunks
                           : place.kind == PlaceKind::Output ? rank.outputChunks
                                                             : rank.scratchChunks;
          if (place.isLocal())
            size = std::max(size, place.index + step.instruction.count);
        }
    }
  program.connections = std::move(network.connections);
  program.numTransfers = 0;
}

/// False if nothing became direct.
inline bool makeDirect(Program &program, uint32_t groupSize = ~0u, bool reassociate = false) {
  DirectOptions options;
  options.reassociate = reassociate;
  for (uint32_t rank = 0; rank < program.ranks.size(); ++rank)
    options.groups.push_back(rank / groupSize);
  auto order = linearOrder(program);
  EXPECT_TRUE(order);
  if (!order || !useDirectTransfers(program, *order, options))
    return false;
  placeSignals(program, *order);
  return true;
}

inline plan::PlanBuilder planOf(const Program &program) {
  // As PlanExport does for programs with a header; tests write programs without.
  plan::PlanBuilder builder;
  builder.header().name = builder.header().collective = "test";
  builder.header().sourceHash = "0123456789abcdef";
  builder.header().partChunks = program.partChunks;
  builder.header().inPlace = program.inPlace;
  builder.header().depth = program.depth;
  for (const inst::Connection &connection : program.connections) {
    std::span<const uint32_t> ranks(connection.destinations.data(), connection.destinations.size());
    if (connection.isCounter)
      builder.addCounter(connection.source, ranks);
    else
      builder.addConnection(connection.source, connection.channel, ranks);
  }
  for (auto [r, rank] : llvm::enumerate(program.ranks)) {
    builder.beginRank({.inputChunks = rank.inputChunks,
                       .outputChunks = rank.outputChunks,
                       .scratchChunks = rank.scratchChunks});
    builder.beginThreadBlock();
    for (const Step &step : rank.steps) {
      const Instruction &from = step.instruction;
      plan::Instruction to = {.opcode = opcodeOf(from), .final = from.final};
      if (!from.isControl())
        to.count = from.count;
      if (to.opcode == plan::Opcode::Wait)
        to.value = from.count;
      // Places as a plan has them.
      auto operands = [&](const inst::Places &places) {
        std::vector<plan::Operand> result;
        for (Place place : places)
          result.push_back(place.isLocal()
                               ? plan::Operand{static_cast<plan::OperandKind>(place.kind),
                                               place.owner(static_cast<uint32_t>(r)), place.index}
                               : plan::connection(place.index));
        return result;
      };
      std::vector<plan::Operand> sources = operands(from.sources),
                                 destinations = operands(from.destinations);
      builder.addInstruction(to, sources, destinations);
    }
  }
  return builder;
}

/// The opcodes of each rank.
inline std::vector<std::vector<plan::Opcode>> opcodesOf(const Program &program) {
  std::vector<std::vector<plan::Opcode>> opcodes;
  for (const Rank &rank : program.ranks) {
    opcodes.emplace_back();
    for (const Step &step : rank.steps)
      opcodes.back().push_back(opcodeOf(step.instruction));
  }
  return opcodes;
}

constexpr auto kDirect = plan::Opcode::LoadReduceStore, kSignal = plan::Opcode::Signal,
               kWait = plan::Opcode::Wait;

} // namespace occl::passes::testing
