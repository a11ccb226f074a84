#include "plan/transform/remote_orders.h"

#include "plan/model/builder.h"
#include "plan/verify/verifier.h"

#include <gtest/gtest.h>

namespace occl::plan {
namespace {

PlanBuilder start(Protocol protocol) {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = "round_trip";
  header.collective = "custom";
  header.sourceHash = "0123456789abcdef";
  header.protocol = protocol;
  header.inPlace = false;
  return builder;
}

/// Rank 0 keeps its input in scratch and sends it around; when it comes back to thread block 1,
/// that reads the scratch, after `(0, 0)`. The way back is `hops` instructions long on rank 1.
Plan roundTrip(Protocol protocol, bool relaysAtOnce) {
  PlanBuilder builder = start(protocol);
  uint32_t there = builder.addConnection(0, 0, {1}), back = builder.addConnection(1, 0, {0});
  const Dependency first = {0, 0};
  builder.beginRank({.inputChunks = 1, .outputChunks = 2, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(0, 0)}, {scratch(0, 0)});
  builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {input(0, 0)}, {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Recv, .count = 1}, {connection(back)}, {output(0, 0)});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {scratch(0, 0)}, {output(0, 1)},
                         {first});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  if (relaysAtOnce) {
    builder.addInstruction({.opcode = Opcode::RecvCopySend, .count = 1}, {connection(there)},
                           {output(1, 0), connection(back)});
  } else {
    builder.addInstruction({.opcode = Opcode::Recv, .count = 1}, {connection(there)},
                           {output(1, 0)});
    builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {output(1, 0)},
                           {connection(back)});
  }
  const Contribution from[] = {{0, 0}};
  builder.addRequirement({.rank = 0, .outputChunk = 0, .count = 1}, from);
  builder.addRequirement({.rank = 0, .outputChunk = 1, .count = 1}, from);
  builder.addRequirement({.rank = 1, .outputChunk = 0, .count = 1}, from);
  return std::move(builder).take();
}

TEST(RemoteOrders, LeavesOutWhatAWayThroughAnotherRankImplies) {
  Plan plan = roundTrip(Protocol::Simple, false);
  ASSERT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 1u);
  EXPECT_TRUE(plan.dependencies.empty());
  EXPECT_TRUE(plan.connections[0].isOrdered);
  EXPECT_TRUE(plan.connections[1].isOrdered);
  ASSERT_EQ(plan.witnesses.size(), 1u);
  std::span<const Place> way = plan.placesOf(plan.witnesses[0]);
  EXPECT_EQ(std::vector<Place>(way.begin(), way.end()),
            std::vector<Place>({{0, 0, 0}, {0, 0, 1}, {1, 0, 0}, {1, 0, 1}, {0, 1, 0}, {0, 1, 1}}));
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
}

TEST(RemoteOrders, TheConnectionsMustBeOrdered) {
  Plan plan = roundTrip(Protocol::Simple, true);
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 1u);
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
  plan.connections[1].isOrdered = false;
  EXPECT_FALSE(verifyPlan(plan));
}

/// Rank 1 sends what rank 0 sends it back at once. Rank 0's second thread block waits for the send
/// and stores it where it came from; its third one then reads that, after `before`.
Plan storedBack(std::initializer_list<Dependency> before) {
  PlanBuilder builder = start(Protocol::Simple);
  uint32_t there = builder.addConnection(0, 0, {1}), back = builder.addConnection(1, 0, {0});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(0, 0)}, {scratch(0, 0)});
  builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {scratch(0, 0)},
                         {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Recv, .count = 1}, {connection(back)}, {scratch(0, 0)},
                         {{0, 1}});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {scratch(0, 0)}, {output(0, 0)},
                         before);
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::RecvCopySend, .count = 1}, {connection(there)},
                         {connection(back)});
  const Contribution from[] = {{0, 0}};
  builder.addRequirement({.rank = 0, .outputChunk = 0, .count = 1}, from);
  return std::move(builder).take();
}

TEST(RemoteOrders, AWayOfMessagesOnlyCompletesNothing) {
  // The send need not be complete when its message is back, so that its dependency stays. By way of
  // the receive, the last copy comes after the first one.
  Plan plan = storedBack({{0, 0}, {1, 0}});
  ASSERT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 1u);
  EXPECT_EQ(plan.dependencies, (std::vector<Dependency>{{0, 1}, {1, 0}}));
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
}

TEST(RemoteOrders, AWayOfMessagesOnlyIsEnoughSliceBySlice) {
  // What the send has read comes back, so that the receive may write there. No witness leads over
  // the receive's dependency, as it does above.
  Plan plan = storedBack({{1, 0}});
  ASSERT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 1u);
  EXPECT_EQ(plan.dependencies, (std::vector<Dependency>{{1, 0}}));
  EXPECT_TRUE(plan.connections[0].isOrdered);
  EXPECT_TRUE(plan.connections[1].isOrdered);
  ASSERT_EQ(plan.witnesses.size(), 1u);
  std::span<const Place> way = plan.placesOf(plan.witnesses[0]);
  EXPECT_EQ(std::vector<Place>(way.begin(), way.end()),
            std::vector<Place>({{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}));
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
}

/// As roundTrip, but rank 1 fetches what rank 0 keeps when it is told to, and tells it back: of two
/// signals each way the second ones.
Plan signalledBack() {
  PlanBuilder builder = start(Protocol::Simple);
  uint32_t there = builder.addCounter(0, {1}), back = builder.addCounter(1, {0});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1, .scratchChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(there)});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {input(0, 0)}, {scratch(0, 0)});
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(there)});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Wait, .value = 2}, {connection(back)}, {});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {scratch(0, 0)}, {output(0, 0)},
                         {{0, 1}});
  builder.beginRank({.outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(back)});
  builder.addInstruction({.opcode = Opcode::Wait, .value = 2}, {connection(there)}, {});
  builder.addInstruction({.opcode = Opcode::LoadReduceStore, .count = 1}, {scratch(0, 0)},
                         {output(1, 0)});
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(back)});
  const Contribution from[] = {{0, 0}};
  builder.addRequirement({.rank = 0, .outputChunk = 0, .count = 1}, from);
  builder.addRequirement({.rank = 1, .outputChunk = 0, .count = 1}, from);
  return std::move(builder).take();
}

TEST(RemoteOrders, SignalsLeadThroughOtherRanks) {
  Plan plan = signalledBack();
  ASSERT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 1u);
  ASSERT_EQ(plan.witnesses.size(), 1u);
  std::span<const Place> way = plan.placesOf(plan.witnesses[0]);
  EXPECT_EQ(std::vector<Place>(way.begin(), way.end()),
            std::vector<Place>(
                {{0, 0, 1}, {0, 0, 2}, {1, 0, 1}, {1, 0, 2}, {1, 0, 3}, {0, 1, 0}, {0, 1, 1}}));
  EXPECT_TRUE(verifyPlan(plan)) << verifyPlan(plan).text();
}

TEST(RemoteOrders, OtherProtocolsOrderNothing) {
  Plan plan = roundTrip(Protocol::LL, false);
  EXPECT_EQ(leaveOutRemoteDependencies(plan), 0u);
  EXPECT_EQ(plan.dependencies.size(), 1u);
}

TEST(RemoteOrders, LooksNoFurtherThanItsBudget) {
  Plan plan = roundTrip(Protocol::Simple, false);
  EXPECT_EQ(leaveOutRemoteDependencies(plan, 2), 0u);
  EXPECT_EQ(plan.dependencies.size(), 1u);
}

} // namespace
} // namespace occl::plan
