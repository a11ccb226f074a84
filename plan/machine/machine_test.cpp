// Small programs on the abstract machine, whose ends are known, in the orders of both drivers.
#include "plan/machine/drivers.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace occl::plan::machine {
namespace {

using Kind = Part::Kind;
using Instruction = std::vector<Part>;
using Order = std::vector<std::pair<uint32_t, uint32_t>>;

struct Connection {
  uint32_t sender;
  std::vector<uint32_t> receivers; // blocks
};

/// Blocks of instructions; the number of a part is what the block has sent or received before it.
struct Blocks {
  std::vector<std::vector<Instruction>> blocks;
  std::vector<Connection> connections;
  std::vector<uint32_t> signalsAwaited; // by connection: a receive is for the last of so many

  uint32_t numBlocks() const { return static_cast<uint32_t>(blocks.size()); }
  uint32_t numConnections() const { return static_cast<uint32_t>(connections.size()); }
  uint32_t numEnds() const { return firstEnd(numConnections()); }
  uint32_t numInstructions(uint32_t block) const {
    return static_cast<uint32_t>(blocks[block].size());
  }
  uint32_t numInstructions() const { return indexOf(numBlocks(), 0); }
  uint32_t indexOf(uint32_t block, uint32_t position) const {
    for (uint32_t b = 0; b < block; ++b)
      position += numInstructions(b);
    return position;
  }
  uint32_t numParts(uint32_t block, uint32_t position) const {
    return static_cast<uint32_t>(blocks[block][position].size());
  }
  Part part(uint32_t block, uint32_t position, uint32_t i) const {
    return blocks[block][position][i];
  }
  uint32_t numberOf(const Counts &, uint32_t block, uint32_t position, uint32_t i) const {
    const Part &wanted = blocks[block][position][i];
    if (wanted.connection < signalsAwaited.size() && wanted.kind == Kind::Receive)
      return signalsAwaited[wanted.connection] - 1;
    uint32_t number = 0;
    for (uint32_t p = 0; p <= position; ++p)
      for (uint32_t j = 0; j < numParts(block, p) && (p < position || j < i); ++j)
        number += blocks[block][p][j].kind == wanted.kind &&
                  blocks[block][p][j].connection == wanted.connection;
    return number;
  }
  uint32_t endOf(uint32_t connection, uint32_t block) const {
    uint32_t end = firstEnd(connection);
    while (receiverOf(end) != block)
      ++end;
    return end;
  }
  uint32_t firstEnd(uint32_t connection) const {
    uint32_t first = 0;
    for (uint32_t c = 0; c < connection; ++c)
      first += numEndsOf(c);
    return first;
  }
  uint32_t numEndsOf(uint32_t connection) const {
    return static_cast<uint32_t>(connections[connection].receivers.size());
  }
  uint32_t senderOf(uint32_t connection) const { return connections[connection].sender; }
  uint32_t receiverOf(uint32_t end) const {
    uint32_t connection = 0;
    for (; end >= numEndsOf(connection); ++connection)
      end -= numEndsOf(connection);
    return connections[connection].receivers[end];
  }
};

const Part kMemory = {};
Part send(uint32_t connection) { return {.kind = Kind::Send, .connection = connection}; }
Part receive(uint32_t connection) { return {.kind = Kind::Receive, .connection = connection}; }
Part signal(uint32_t connection) { return {.kind = Kind::Signal, .connection = connection}; }
Part after(uint32_t block, uint32_t position) {
  return {.kind = Kind::Dependency, .block = block, .position = position};
}

/// The order in which all instructions run; empty if they do not.
Order greedily(const Blocks &program, uint32_t depth) {
  Order order;
  const bool ends = Greedy(program, depth).run([&](uint32_t block, uint32_t position) {
    order.emplace_back(block, position);
  });
  return ends ? order : Order();
}

Order onDemand(const Blocks &program, uint32_t depth) {
  Order order;
  const bool ends = runOnDemand(program, depth, [&](uint32_t block, uint32_t position) {
    order.emplace_back(block, position);
  });
  return ends ? order : Order();
}

/// Block 0 sends three messages, block 1 receives them.
Blocks threeMessages() {
  return {{{{send(0)}, {send(0)}, {kMemory, send(0)}}, {{receive(0)}, {receive(0)}, {receive(0)}}},
          {{0, {1}}},
          {}};
}

TEST(Machine, SendsAsFarAsThereIsRoom) {
  EXPECT_EQ(greedily(threeMessages(), kUnbounded),
            (Order{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
  EXPECT_EQ(greedily(threeMessages(), 1), (Order{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}}));
}

TEST(Machine, OnDemandRunsOfOthersWhatIsWaitedFor) {
  Blocks program = threeMessages();
  std::swap(program.blocks[0], program.blocks[1]); // the receiver comes first
  program.connections = {{1, {0}}};
  EXPECT_EQ(onDemand(program, 2), (Order{{1, 0}, {0, 0}, {1, 1}, {0, 1}, {1, 2}, {0, 2}}));
}

TEST(Machine, TheSlowestReceiverDecides) {
  // The second receiver takes its message after one that the sender sends behind its second.
  const Blocks program = {{{{send(0)}, {send(0)}, {send(1)}},
                           {{receive(0)}, {receive(0)}},
                           {{receive(1)}, {receive(0)}, {receive(0)}}},
                          {{0, {1, 2}}, {0, {2}}},
                          {}};
  EXPECT_TRUE(greedily(program, 1).empty());
  EXPECT_TRUE(onDemand(program, 1).empty());
  EXPECT_EQ(greedily(program, 2).size(), 8u);
  EXPECT_EQ(onDemand(program, 2).size(), 8u);
}

TEST(Machine, AnInstructionMayReceiveTwoMessagesOfAConnection) {
  const Blocks program = {{{{send(0)}, {send(0)}}, {{receive(0), receive(0)}}}, {{0, {1}}}, {}};
  EXPECT_TRUE(greedily(program, 1).empty());
  EXPECT_EQ(greedily(program, 2), (Order{{0, 0}, {0, 1}, {1, 0}}));
}

TEST(Machine, SignalsNeedNoRoomAndOneWaitIsForAll) {
  const Blocks program = {
      {{{signal(0)}, {signal(0)}, {signal(0)}}, {{receive(0)}}}, {{0, {1}}}, {3}};
  EXPECT_EQ(greedily(program, 1), (Order{{0, 0}, {0, 1}, {0, 2}, {1, 0}}));
}

TEST(Machine, DependenciesAreOnInstructionsThatHaveRun) {
  // Both others depend on the same instruction of block 2.
  const Blocks program = {
      {{{after(2, 1)}}, {{after(2, 1)}}, {{kMemory}, {kMemory}, {after(0, 0)}}}, {}, {}};
  EXPECT_EQ(greedily(program, 1).size(), 5u);
  EXPECT_EQ(onDemand(program, 1), (Order{{2, 0}, {2, 1}, {0, 0}, {1, 0}, {2, 2}}));
}

TEST(Machine, CirclesEndInAWaitForEachOther) {
  const Blocks program = {
      {{{receive(1)}, {send(0)}}, {{receive(0)}, {send(1)}}}, {{0, {1}}, {1, {0}}}, {}};
  Greedy greedy(program, 4);
  EXPECT_FALSE(greedy.run([](uint32_t, uint32_t) { FAIL(); }));
  for (uint32_t block : {0u, 1u}) {
    EXPECT_EQ(greedy.waitOf(block).need, Need::Message);
    EXPECT_EQ(greedy.state().blockThatEnds(greedy.waitOf(block)), 1 - block);
  }
  EXPECT_TRUE(onDemand(program, 4).empty());
}

TEST(Machine, CirclesOfRoomNameTheReceiver) {
  const Instruction out = {send(0)}, in = {receive(0)}, back = {send(1)}, taken = {receive(1)};
  const Blocks program = {{{out, out, taken}, {back, back, in}}, {{0, {1}}, {1, {0}}}, {}};
  Greedy greedy(program, 1);
  EXPECT_FALSE(greedy.run([](uint32_t, uint32_t) {}));
  for (uint32_t block : {0u, 1u}) {
    EXPECT_EQ(greedy.waitOf(block).need, Need::Room);
    EXPECT_EQ(greedy.state().blockThatEnds(greedy.waitOf(block)), 1 - block);
  }
}

TEST(Machine, EndsWithoutABlockAreNeitherWokenNorDemanded) {
  const Blocks unheard = {{{{signal(0)}}}, {{0, {kNone}}}, {}};
  EXPECT_EQ(greedily(unheard, 1).size(), 1u);
  const Blocks unsent = {{{{receive(0)}}}, {{kNone, {0}}}, {}};
  EXPECT_TRUE(greedily(unsent, 1).empty());
  EXPECT_TRUE(onDemand(unsent, 1).empty());
}

TEST(Machine, AMessageThatNobodySendsIsNoEndlessLoop) {
  const Blocks program = {{{{kMemory}}, {{receive(0)}}}, {{0, {1}}}, {}};
  EXPECT_TRUE(greedily(program, 1).empty());
  EXPECT_TRUE(onDemand(program, 1).empty());
}

} // namespace
} // namespace occl::plan::machine
