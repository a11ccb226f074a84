#include "compiler/cost/StepCosts.h"

#include "plan/model/builder.h"

#include <gtest/gtest.h>

namespace occl::cost {
namespace {

using plan::connection, plan::input, plan::output;
using topology::kGigabyte, topology::kNanosecond;

TEST(StepCosts, DurationsAreExact) {
  EXPECT_EQ(durationOf(1000, kGigabyte), 1000 * kNanosecond);
  EXPECT_EQ(durationOf(1, 3), 333'333'333'333u);
  EXPECT_EQ(durationOf(1 << 20, 0), 0u) << "unbounded";
}

TEST(StepCosts, CountsOperandsByWhereTheyAre) {
  plan::PlanBuilder builder;
  builder.beginRank({});
  builder.beginRank({});
  builder.beginThreadBlock();
  uint32_t many = builder.addConnection(1, 0, {0, 2, 3}), other = builder.addConnection(0, 0, {1});
  builder.addInstruction({.opcode = plan::Opcode::RecvReduceCopySend, .count = 1},
                         {connection(other), input(1, 0), input(0, 0)},
                         {output(1, 0), connection(many)});
  plan::Plan plan = std::move(builder).take();
  OperandCounts counts = countOperands(plan, plan.instructions[0], 1);
  EXPECT_EQ(counts.localSources, 1u);
  EXPECT_EQ(counts.messageSources, 1u);
  EXPECT_EQ(counts.peerSources, 1u);
  EXPECT_EQ(counts.localDestinations, 1u);
  EXPECT_EQ(counts.messageDestinations, 1u);
  EXPECT_EQ(counts.receivers, 3u);
}

TEST(StepCosts, TheSenderPushesACopyToEachOrTheReceiversFetchOne) {
  topology::Costs costs;
  costs.instruction = 7;
  costs.read = 4 * kGigabyte;
  costs.write = 2 * kGigabyte;
  costs.push = costs.pull = kGigabyte;
  OperandCounts send{.localSources = 1, .messageDestinations = 1, .receivers = 3};
  OperandCounts receive{.messageSources = 1, .localDestinations = 1};
  StepCosts pushed(costs, plan::Protocol::Simple);
  EXPECT_EQ(pushed.busy(send, 1000), 7 + (250 + 3 * 1000) * kNanosecond);
  EXPECT_EQ(pushed.busy(receive, 1000), 7 + (250 + 500) * kNanosecond);
  costs.fetched = true;
  StepCosts fetched(costs, plan::Protocol::Simple);
  EXPECT_EQ(fetched.busy(send, 1000), 7 + (250 + 500) * kNanosecond);
  EXPECT_EQ(fetched.busy(receive, 1000), 7 + (1000 + 500) * kNanosecond);
}

TEST(StepCosts, AProtocolCostsLatencyAndBytesOnTheWire) {
  topology::Costs costs;
  costs.push = kGigabyte;
  costs.protocols[1] = {5, 2000};
  StepCosts ll(costs, plan::Protocol::LL);
  EXPECT_EQ(ll.messageLatency(10), 15u);
  EXPECT_EQ(ll.wireBytes(100), 200u);
  OperandCounts send{.localSources = 1, .messageDestinations = 1, .receivers = 1};
  EXPECT_EQ(ll.busy(send, 1000), 2000 * kNanosecond);
}

} // namespace
} // namespace occl::cost
