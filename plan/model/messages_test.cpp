#include "plan/model/messages.h"

#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

uint32_t rankOf(const Plan &plan, uint32_t instruction) {
  for (uint32_t rank = 0; rank < plan.ranks.size(); ++rank)
    for (const ThreadBlock &block : plan.threadBlocksOf(plan.ranks[rank]))
      if (instruction - block.firstInstruction < block.numInstructions)
        return rank;
  ADD_FAILURE() << instruction;
  return ~0u;
}

TEST(Messages, OfARingGoToTheNextRank) {
  Plan plan = testing::ringAllReduce(4);
  std::vector<Message> messages = messagesOf(plan);
  EXPECT_EQ(messages.size(), 4u * 6);
  for (const Message &message : messages) {
    EXPECT_EQ(rankOf(plan, message.receiver), (rankOf(plan, message.sender) + 1) % 4);
    EXPECT_EQ(rankOf(plan, message.receiver), message.destination);
    EXPECT_FALSE(message.isSignal);
  }
}

TEST(Messages, OneThatSeveralGetIsOneForEachOfThem) {
  Plan plan = testing::oneShotAllReduce(3);
  std::vector<Message> messages = messagesOf(plan);
  EXPECT_EQ(messages.size(), 3u * 2);
  for (const Message &message : messages)
    EXPECT_NE(rankOf(plan, message.receiver), rankOf(plan, message.sender));
}

TEST(Messages, AWaitIsEndedByTheSignalThatItCounts) {
  // A counter that rank 0 raises three times, and of which rank 1 waits for the third.
  Plan plan;
  plan.numRanks = 2;
  plan.connections = {
      {.source = 0, .firstDestination = 0, .numDestinations = 1, .isCounter = true}};
  plan.destinations = {1};
  plan.operands = {{OperandKind::Connection, 0, 0}};
  Instruction signal, wait;
  signal.opcode = Opcode::Signal;
  signal.numDestinations = 1;
  wait.opcode = Opcode::Wait;
  wait.numSources = 1;
  wait.value = 3;
  plan.instructions = {signal, signal, signal, wait};
  plan.threadBlocks = {{0, 3}, {3, 1}};
  plan.ranks = {{.firstThreadBlock = 0, .numThreadBlocks = 1},
                {.firstThreadBlock = 1, .numThreadBlocks = 1}};
  EXPECT_EQ(messagesOf(plan), (std::vector<Message>{{2, 3, 1, 0, 2, true}}));
  plan.instructions[3].value = 4;
  EXPECT_TRUE(messagesOf(plan).empty()) << "nobody gives the fourth";
}

} // namespace
} // namespace occl::plan
