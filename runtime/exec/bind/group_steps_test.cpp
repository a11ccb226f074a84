// Which instructions become one step, for random thread blocks. What must not be is worked out here
// from the plan alone, chunk by chunk; what may be, too: a step that ends early is a mistake as
// well.
#include "runtime/exec/bind/bind.h"

#include "plan/model/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace occl::interpreter {
namespace {

using plan::Opcode;
using plan::OperandKind;

constexpr uint32_t kChunks = 3, kLinks = 3;

/// Where the input lies.
enum class Placing { OutOfPlace, InPlace };

/// What an instruction does to memory, with chunks numbered over all buffers.
struct Effects {
  std::set<int64_t> reads, writes;
};

class RandomBlock {
public:
  explicit RandomBlock(uint64_t seed) : random(seed) {
    plan::PlanBuilder builder;
    for (uint32_t channel = 0; channel < kLinks; ++channel)
      toPeer.push_back(builder.addConnection(0, channel, {1}));
    for (uint32_t channel = 0; channel < kLinks; ++channel)
      fromPeer.push_back(builder.addConnection(1, channel, {0}));
    const auto offset = static_cast<int32_t>(pick(3)) - 1;
    const plan::RankPlan rank = {.inputChunks = kChunks,
                                 .outputChunks = kChunks,
                                 .scratchChunks = kChunks,
                                 .inPlaceOffset = offset};
    builder.beginRank(rank);
    builder.beginThreadBlock();
    std::vector<uint32_t> received;
    for (uint32_t i = 2 + pick(10); i > 0; --i)
      addInstruction(builder, received);
    builder.beginRank(rank);
    builder.beginThreadBlock();
    for (uint32_t link : received)
      builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {plan::input(1, 0)},
                             {plan::connection(link)});
    plan = std::move(builder).take();
    plan.depth = 1u << pick(3);
    plan.inPlace = pick(2) == 0;
    plan.outOfPlace = !plan.inPlace || pick(2) == 0;
  }

  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random() % n); }

  plan::Plan plan;

private:
  plan::Operand local(bool isSource) {
    const uint32_t chunk = pick(kChunks);
    switch (pick(isSource ? 3 : 2)) {
    case 0:
      return plan::output(0, chunk);
    case 1:
      return plan::scratch(0, chunk);
    default:
      return plan::input(0, chunk);
    }
  }

  void addInstruction(plan::PlanBuilder &builder, std::vector<uint32_t> &received) {
    const uint32_t link = pick(kLinks);
    switch (pick(3)) {
    case 0:
      builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {local(true)}, {local(false)});
      break;
    case 1:
      builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {local(true)},
                             {plan::connection(toPeer[link])});
      break;
    default:
      builder.addInstruction({.opcode = Opcode::Recv, .count = 1},
                             {plan::connection(fromPeer[link])}, {local(false)});
      received.push_back(fromPeer[link]);
    }
  }

  std::mt19937_64 random;
  std::vector<uint32_t> toPeer, fromPeer;
};

/// What the reference needs to know of an instruction.
class Reference {
public:
  Reference(const plan::Plan &plan, const BindRequest &request, uint64_t numTiles)
      : plan(plan), request(request), numTiles(numTiles),
        instructions(plan.instructionsOf(plan.threadBlocks[0])) {}

  std::vector<uint32_t> steps() const {
    std::vector<uint32_t> sizes;
    for (uint32_t first = 0; first < instructions.size(); first += sizes.back()) {
      uint32_t next = first + 1;
      while (next < instructions.size() && mayJoin(first, next))
        ++next;
      sizes.push_back(next - first);
    }
    return sizes;
  }

  /// Whether the second may be done before the first, wherever the input may lie.
  bool mayBeSwapped(uint32_t a, uint32_t b) const {
    return (!plan.outOfPlace || !conflict(a, b, Placing::OutOfPlace)) &&
           (!plan.inPlace || !conflict(a, b, Placing::InPlace));
  }

private:
  bool hasMessages() const {
    return std::ranges::any_of(plan.instructions, [](const plan::Instruction &instruction) {
      return instruction.opcode == Opcode::Send;
    });
  }
  bool inLines() const { return plan.protocol != plan::Protocol::Simple && hasMessages(); }

  const plan::Operand *link(uint32_t i, bool isSource) const {
    auto operands =
        isSource ? plan.sourcesOf(instructions[i]) : plan.destinationsOf(instructions[i]);
    return operands[0].kind == OperandKind::Connection ? &operands[0] : nullptr;
  }
  bool hasCredit(const plan::Operand &link) const {
    uint64_t messages = 0;
    for (const plan::Instruction &instruction : plan.instructions)
      for (const plan::Operand &operand : plan.destinationsOf(instruction))
        messages += operand.kind == OperandKind::Connection && operand.index == link.index;
    return messages * numTiles > std::bit_ceil(plan.depth);
  }
  bool waits(uint32_t i) const {
    const auto *from = link(i, true), *to = link(i, false);
    return from || (to && hasCredit(*to));
  }
  bool tells(uint32_t i) const {
    const auto *from = link(i, true), *to = link(i, false);
    return to || (from && hasCredit(*from));
  }
  /// Both store the tail, or the head, of one connection.
  bool storeOneWord(uint32_t a, uint32_t b) const {
    for (bool isSource : {false, true}) {
      const auto *x = link(a, isSource), *y = link(b, isSource);
      if (x && y && x->index == y->index && (isSource ? hasCredit(*x) : !inLines()))
        return true;
    }
    return false;
  }

  Effects effectsOf(uint32_t i, Placing placing) const {
    const int64_t offset = plan.ranks[0].inPlaceOffset;
    auto placeOf = [&](const plan::Operand &operand) -> int64_t {
      constexpr int64_t kOutput = 0, kInput = 100, kScratch = 200;
      if (operand.kind == OperandKind::Scratch)
        return kScratch + operand.index;
      if (operand.kind == OperandKind::Output)
        return kOutput + operand.index;
      const int64_t output = operand.index + offset;
      const bool isInOutput = placing == Placing::InPlace && output >= 0 && output < kChunks;
      return isInOutput ? kOutput + output : kInput + operand.index;
    };
    Effects effects;
    const auto &source = plan.sourcesOf(instructions[i])[0];
    const auto &destination = plan.destinationsOf(instructions[i])[0];
    if (source.kind != OperandKind::Connection)
      effects.reads.insert(placeOf(source));
    if (destination.kind == OperandKind::Connection)
      return effects;
    const bool isItself = source.kind == OperandKind::Input &&
                          destination.kind == OperandKind::Output &&
                          source.index + offset == destination.index;
    if (placing == Placing::OutOfPlace || !isItself)
      effects.writes.insert(placeOf(destination));
    return effects;
  }

  bool conflict(uint32_t a, uint32_t b, Placing placing) const {
    const Effects first = effectsOf(a, placing), second = effectsOf(b, placing);
    auto meet = [](const std::set<int64_t> &x, const std::set<int64_t> &y) {
      return std::ranges::any_of(x, [&](int64_t place) { return y.contains(place); });
    };
    return meet(first.writes, second.reads) || meet(first.writes, second.writes) ||
           meet(first.reads, second.writes);
  }

  /// As far as bind() looks: in place it does not tell chunks of input and output apart.
  bool mayConflict(uint32_t a, uint32_t b) const {
    if (conflict(a, b, Placing::OutOfPlace))
      return true;
    if (!plan.inPlace)
      return false;
    auto readsInput = [&](uint32_t i) {
      return plan.sourcesOf(instructions[i])[0].kind == OperandKind::Input;
    };
    auto changesOutput = [&](uint32_t i) {
      const auto writes = effectsOf(i, Placing::InPlace).writes;
      return plan.destinationsOf(instructions[i])[0].kind == OperandKind::Output && !writes.empty();
    };
    return (readsInput(a) && changesOutput(b)) || (readsInput(b) && changesOutput(a));
  }

  /// Where there are messages, a tile is a slice, but for lines.
  bool isOneSlice() const {
    constexpr uint64_t kLineSlice = 896, kElement = 4;
    return request.count * kElement <= (inLines()       ? kLineSlice
                                        : hasMessages() ? ~uint64_t{0}
                                                        : request.tiles.messageBytes);
  }
  bool isPlain() const {
    if (!inLines() || numTiles != 1 || !isOneSlice())
      return false;
    for (uint32_t i = 0; i < instructions.size(); ++i)
      for (bool isSource : {false, true})
        if (const auto *used = link(i, isSource); used && hasCredit(*used))
          return false;
    return true;
  }

  bool mayJoin(uint32_t first, uint32_t next) const {
    if (request.hostSteps ? !isPlain() : inLines() || !isOneSlice())
      return false;
    if (!request.hostSteps && (next - first + 1) * 2 > request.stepOperands)
      return false;
    for (uint32_t i = first; i < next; ++i)
      if ((waits(next) && tells(i)) || storeOneWord(i, next) || mayConflict(i, next))
        return false;
    return true;
  }

  const plan::Plan &plan;
  const BindRequest &request;
  const uint64_t numTiles;
  const std::span<const plan::Instruction> instructions;
};

TEST(GroupSteps, StepsAreGroupedExactlyIfTheyNeedNotWaitApart) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  uint64_t numJoined = 0, numApart = 0;
  for (uint64_t trial = 0; trial < 4000; ++trial) {
    RandomBlock block(seed + trial);
    BindRequest request = {.count = block.pick(2) == 0 ? 200u : 300u};
    if (block.pick(2) == 0)
      request.stepOperands = block.pick(3) == 0 ? 4 : 64;
    else
      request.hostSteps = true;
    if (block.pick(3) == 0)
      request.tiles.messageBytes = 256; // several tiles
    if (request.hostSteps && block.pick(4) != 0)
      block.plan.protocol = plan::Protocol::LL128;
    auto bound = bind(block.plan, request);
    ASSERT_TRUE(bound.ok()) << bound.status().message();
    const Program &program = (*bound)->program();
    Reference reference(block.plan, request, program.numTiles);
    std::vector<uint32_t> steps;
    for (uint32_t i = 0; i < program.blocks[0].numInstructions; i += steps.back()) {
      steps.push_back(program.instructions[i].numInstructions);
      ASSERT_NE(steps.back(), 0u);
      for (uint32_t a = i; a < i + steps.back(); ++a)
        for (uint32_t b = a + 1; b < i + steps.back(); ++b)
          ASSERT_TRUE(reference.mayBeSwapped(a, b))
              << "seed " << seed + trial << ": " << a << " and " << b << " are one step";
      (steps.back() == 1 ? numApart : numJoined) += 1;
    }
    ASSERT_EQ(steps, reference.steps()) << "seed " << seed + trial;
  }
  EXPECT_GT(numJoined, 1000u);
  EXPECT_GT(numApart, 1000u);
}

} // namespace
} // namespace occl::interpreter
