// Changes good plans in every way that keeps them readable. What the verifier still accepts must be
// right in every order in which it can be executed; what cannot be right must be rejected.
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/model/names.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "plan/testing/parts.h"
#include "plan/testing/random_execution.h"
#include "plan/testing/replay.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>
#include <random>

namespace occl::plan {
namespace {

using testing::Blocks;
using testing::putTogether;
using testing::Step;
using testing::takeApart;

std::vector<Plan> plans() {
  return {testing::ringAllReduce(4),     testing::oneShotAllReduce(3),
          testing::twoShotAllReduce(3),  testing::chainBroadcast(3, 3, 1),
          testing::chainReduce(3, 2, 1), testing::ringAllGather(4),
          testing::ringReduceScatter(4), testing::allToAll(3),
          testing::directAllReduce(3),   testing::directAllGather(3)};
}

class Mutation : public ::testing::Test {
protected:
  void SetUp() override { std::cout << "seed " << seed << "\n"; }

  /// True if the verifier accepts. Other means must come to the same verdict.
  bool accepts(const Plan &plan, const std::string &what) {
    VerifyResult result = verifyPlan(plan);
    std::string doubt =
        result ? testing::confirm(plan, 20, random) : testing::replay(plan, *result.error, random);
    EXPECT_EQ(doubt, "") << what << ", seed " << seed << "\n"
                         << result.text() << "\n"
                         << encodePlan(plan, Format::Json);
    return result.isOk();
  }

  uint32_t seed = std::random_device()();
  std::mt19937 random{seed};
};

TEST_F(Mutation, GoodPlansAreRightInEveryOrder) {
  for (const Plan &plan : plans())
    EXPECT_TRUE(accepts(plan, plan.name));
}

TEST_F(Mutation, EveryInstructionIsNeeded) {
  for (const Plan &plan : plans()) {
    Blocks blocks = takeApart(plan);
    for (auto &rank : blocks)
      for (auto &block : rank)
        for (size_t i = 0; i < block.size(); ++i) {
          Step removed = block[i];
          block.erase(block.begin() + static_cast<ptrdiff_t>(i));
          EXPECT_FALSE(verifyPlan(putTogether(plan, blocks))) << plan.name;
          block.insert(block.begin() + static_cast<ptrdiff_t>(i), removed);
        }
  }
}

TEST_F(Mutation, EveryInstructionOnceOnly) {
  for (const Plan &plan : plans()) {
    Blocks blocks = takeApart(plan);
    for (auto &rank : blocks)
      for (auto &block : rank)
        for (size_t i = 0; i < block.size(); ++i) {
          auto copy = block.insert(block.begin() + static_cast<ptrdiff_t>(i), block[i]);
          accepts(putTogether(plan, blocks), plan.name + ", repeated instruction");
          block.erase(copy);
        }
  }
}

TEST_F(Mutation, DependenciesAreNeededUnlessMessagesOrder) {
  Plan plan = testing::twoShotAllReduce(4);
  for (Connection &connection : plan.connections)
    connection.isOrdered = true;
  Blocks blocks = takeApart(plan);
  for (auto &rank : blocks)
    for (size_t b = 0; b < rank.size(); ++b)
      for (Step &step : rank[b]) {
        std::vector<Dependency> kept = std::exchange(step.dependencies, {});
        if (kept.empty())
          continue;
        Plan mutant = putTogether(plan, blocks);
        // A received result came from a rank that waited for what this rank sent before: no
        // dependency is needed.
        EXPECT_EQ(accepts(mutant, "without dependency"), b == 3);
        for (Connection &connection : mutant.connections)
          connection.isOrdered = false;
        EXPECT_FALSE(verifyPlan(mutant)) << "a message orders nothing but what it carries";
        step.dependencies = kept;
      }
}

TEST_F(Mutation, NeighboursExchanged) {
  for (const Plan &plan : plans()) {
    Blocks blocks = takeApart(plan);
    for (auto &rank : blocks)
      for (auto &block : rank)
        for (size_t i = 0; i + 1 < block.size(); ++i) {
          std::swap(block[i], block[i + 1]);
          accepts(putTogether(plan, blocks), plan.name + ", exchanged");
          std::swap(block[i], block[i + 1]);
        }
  }
}

TEST_F(Mutation, OneLessDepth) {
  for (Plan plan : plans()) {
    uint32_t needed = verifyPlan(plan).facts.smallestDepth;
    plan.depth = needed;
    EXPECT_TRUE(accepts(plan, plan.name + ", smallest depth"));
    if (needed == 1)
      continue;
    plan.depth = needed - 1;
    VerifyResult result = verifyPlan(plan);
    ASSERT_TRUE(result.error) << plan.name;
    EXPECT_EQ(result.error->proof(), Proof::Deadlock) << plan.name;
    EXPECT_EQ(testing::executeRandomly(plan, false, random), "deadlock") << plan.name;
  }
}

/// Changes one number of a plan; the flat arrays keep their shape.
void changeSomething(Plan &plan, std::mt19937 &random) {
  auto any = [&](auto &items) -> auto & { return items[random() % items.size()]; };
  auto nudge = [&](uint32_t &number) { number += random() % 2 == 0 ? 1 : ~0u; };
  Instruction &instruction = any(plan.instructions);
  switch (random() % 11) {
  case 0:
    return nudge(any(plan.operands).index);
  case 1:
    any(plan.operands).kind = static_cast<OperandKind>(random() % 4);
    return;
  case 2:
    return nudge(instruction.count);
  case 3:
    return nudge(instruction.extent);
  case 4:
    instruction.opcode = static_cast<Opcode>(random() % kNumOpcodes);
    return;
  case 5:
    instruction.final = !instruction.final;
    return;
  case 6:
    return nudge(any(plan.connections).source);
  case 7:
    return nudge(any(plan.destinations));
  case 8:
    return nudge(plan.depth);
  case 9:
    if (!plan.dependencies.empty())
      nudge(random() % 2 == 0 ? any(plan.dependencies).threadBlock
                              : any(plan.dependencies).instruction);
    return;
  default:
    any(plan.operands).index = any(plan.operands).index;
  }
}

TEST_F(Mutation, SomethingElse) {
  std::vector<Plan> originals = plans();
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    Plan plan = originals[static_cast<size_t>(round) % originals.size()];
    for (uint32_t changes = 1 + random() % 2; changes > 0; --changes)
      changeSomething(plan, random);
    accepted += accepts(plan, plan.name);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 3000);
}

TEST_F(Mutation, DamagedFilesThatReadAsPlans) {
  int accepted = 0, read = 0;
  for (const Plan &plan : plans()) {
    std::string good = encodePlan(plan, Format::Cbor);
    for (int round = 0; round < 1000; ++round) {
      std::string bytes = good;
      bytes[random() % bytes.size()] = static_cast<char>(random());
      support::Expected<Plan> damaged = readPlan(bytes);
      if (!damaged)
        continue;
      ++read;
      // Names may change what is promised, and the execution only knows the standard collectives.
      if (damaged->collective == plan.collective)
        accepted += accepts(*damaged, plan.name + ", damaged");
    }
  }
  EXPECT_GT(read, accepted);
  EXPECT_GT(accepted, 0);
}

} // namespace
} // namespace occl::plan
