// Builds a Plan in the flat layout that verifyPlan demands: ranks in order, each rank's thread
// blocks in order, each thread block's instructions in order. The builder checks nothing;
// verifyPlan does.
//
//   PlanBuilder builder;
//   builder.header().name = "ring"; ...
//   uint32_t toNext = builder.addConnection(0, 0, {1});
//   builder.beginRank({.inputChunks = 1, .outputChunks = 1});
//   builder.beginThreadBlock();
//   builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {input(0, 0)},
//   {connection(toNext)});
//   ...
//   Plan plan = std::move(builder).take();
//
// Not thread safe.
#pragma once

#include "plan/model/plan.h"

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <tuple>

namespace occl::plan {

// Operands. `rank` is the executing rank except in loadReduceStore.
constexpr Operand input(uint32_t rank, uint32_t chunk) { return {OperandKind::Input, rank, chunk}; }
constexpr Operand output(uint32_t rank, uint32_t chunk) {
  return {OperandKind::Output, rank, chunk};
}
constexpr Operand scratch(uint32_t rank, uint32_t chunk) {
  return {OperandKind::Scratch, rank, chunk};
}
constexpr Operand connection(uint32_t index) { return {OperandKind::Connection, 0, index}; }

class PlanBuilder {
public:
  /// The scalar fields, to be set directly. Ranks are counted by the builder: numRanks needs no
  /// setting.
  Plan &header() { return plan; }

  /// The index of a source file or place; equal ones are stored once. Line and column count from 1.
  uint32_t file(const std::string &path);
  uint32_t location(uint32_t file, uint32_t line, uint32_t column);

  /// Appends a connection, not ordered, and returns its index. Destinations ascend.
  uint32_t addConnection(uint32_t source, uint32_t channel, std::span<const uint32_t> destinations);
  uint32_t addConnection(uint32_t source, uint32_t channel,
                         std::initializer_list<uint32_t> destinations) {
    return addConnection(source, channel, std::span(destinations.begin(), destinations.size()));
  }

  /// Marks a connection as ordered: see Connection::isOrdered.
  void markOrdered(uint32_t connection) { plan.connections[connection].isOrdered = true; }

  /// Makes a connection a counter: see Connection::isCounter.
  void markCounter(uint32_t connection) { plan.connections[connection].isCounter = true; }

  /// Appends a counter and returns its index, which counts with those of connections.
  uint32_t addCounter(uint32_t source, std::span<const uint32_t> destinations);
  uint32_t addCounter(uint32_t source, std::initializer_list<uint32_t> destinations) {
    return addCounter(source, std::span(destinations.begin(), destinations.size()));
  }

  /// The next rank, of the sizes and in-place offset of `rank` (the other fields are the
  /// builder's).
  void beginRank(const RankPlan &rank);
  /// The next thread block of the rank begun last.
  void beginThreadBlock();

  /// Appends to the thread block begun last; returns the instruction's position there, for
  /// dependencies on it. Of `instruction` the fields opcode, final, count, extent, value and
  /// location count.
  uint32_t addInstruction(Instruction instruction, std::span<const Operand> sources,
                          std::span<const Operand> destinations,
                          std::span<const Dependency> dependencies = {});
  uint32_t addInstruction(const Instruction &instruction, std::initializer_list<Operand> sources,
                          std::initializer_list<Operand> destinations,
                          std::initializer_list<Dependency> dependencies = {}) {
    return addInstruction(instruction, std::span(sources.begin(), sources.size()),
                          std::span(destinations.begin(), destinations.size()),
                          std::span(dependencies.begin(), dependencies.size()));
  }

  /// Of `requirement` the fields rank, outputChunk and count count.
  void addRequirement(Requirement requirement, std::span<const Contribution> contributions);

  /// Appends the way of an order through other ranks. The instructions may be added later.
  void addWitness(std::span<const Place> places);

  /// The plan built so far; the builder is empty afterwards.
  Plan take() &&;

private:
  Plan plan;
  std::map<std::string, uint32_t> fileIndex;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> locationIndex;
};

} // namespace occl::plan
