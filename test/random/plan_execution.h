// Executes a plan on expressions, thread blocks in random order, with no more messages in flight
// than a depth allows. Written from docs/plan.md alone; shares no code with the verifier.
#pragma once

#include "plan/model/plan.h"
#include "test/random/expressions.h"
#include "test/random/generator.h"

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace occl::random {

class PlanExecution {
public:
  /// A chunk's content: its expression, which chunk of a part it is, and how many reductions marked
  /// final it has passed, at most, on one way.
  struct Content {
    uint32_t expression = 0;
    uint32_t extent = 0;
    uint32_t finals = 0;
  };

  static constexpr const char *kStuck = "thread blocks wait for each other";

  PlanExecution(const plan::Plan &plan, bool inPlace, uint32_t depth, Expressions &expressions,
                Random &random);

  /// Runs all instructions. What went wrong (kStuck if nothing can go on), or an empty string.
  std::string run();

  /// The content of an output chunk; nothing if it was never written.
  std::optional<Content> output(uint32_t rank, uint32_t chunk);

private:
  using Contents = std::vector<Content>;
  using Address = std::tuple<uint32_t, plan::OperandKind, uint32_t>;
  struct Block {
    uint32_t rank;
    uint32_t index; // in Plan::threadBlocks
    uint32_t done;
    uint64_t priority;
  };

  bool isEnabled(const Block &block, const plan::Instruction &instruction) const;
  bool hasRoom(uint32_t connection) const;
  void execute(const Block &block, const plan::Instruction &instruction);
  Contents load(const Block &block, const plan::Operand &operand, uint32_t count);
  void store(const Block &block, const plan::Operand &operand, const Contents &contents);
  Contents reduce(const std::vector<Contents> &operands, const plan::Instruction &instruction);
  Address address(uint32_t rank, plan::OperandKind kind, uint32_t chunk);
  void fail(std::string message) {
    if (error.empty())
      error = std::move(message);
  }

  const plan::Plan &plan;
  bool inPlace;
  uint32_t depth;
  Expressions &expressions;
  Random &random;
  std::vector<Block> blocks;
  std::map<Address, Content> memory;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Contents>> queues; // connection, destination
  std::vector<uint32_t> signals; // given so far, of each connection that is a counter
  std::string error;
};

} // namespace occl::random
