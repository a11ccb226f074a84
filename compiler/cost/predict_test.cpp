#include "compiler/cost/Predict.h"

#include "compiler/topology/Machines.h"
#include "plan/model/builder.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace occl::cost {
namespace {

using plan::connection, plan::input, plan::Opcode, plan::output, plan::PlanBuilder;
using topology::kGigabyte, topology::kNanosecond, topology::Topology;

/// A node of `ranks` ranks at a switch of 1 GB/s (a byte a nanosecond) and 100 ns; thread blocks
/// move 2 bytes a nanosecond and take 10 ns for an instruction.
Topology simpleTopology(uint32_t ranks) {
  Topology result;
  result.name = "simple";
  result.costs.instruction = 10 * kNanosecond;
  result.costs.dependency = 5 * kNanosecond;
  result.costs.push = result.costs.write = 2 * kGigabyte;
  result.costs.tileBytes = 1000;
  result.addNode(ranks);
  topology::Switch entry{"switch", {}, kGigabyte, 100 * kNanosecond};
  for (uint32_t r = 0; r < ranks; ++r)
    entry.ranks.push_back(r);
  result.addSwitch(std::move(entry));
  return result;
}

plan::Instruction chunk(Opcode opcode) { return {.opcode = opcode, .count = 1}; }

/// Rank 0 sends its chunk `messages` times to rank 1.
plan::Plan sends(uint32_t messages, uint32_t depth) {
  PlanBuilder builder;
  builder.header().depth = depth;
  uint32_t forth = builder.addConnection(0, 0, {1});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  for (uint32_t i = 0; i < messages; ++i)
    builder.addInstruction(chunk(Opcode::Send), {input(0, 0)}, {connection(forth)});
  builder.beginRank({.outputChunks = 1});
  builder.beginThreadBlock();
  for (uint32_t i = 0; i < messages; ++i)
    builder.addInstruction(chunk(Opcode::Recv), {connection(forth)}, {output(1, 0)});
  return std::move(builder).take();
}

Prediction mustPredict(const plan::Plan &plan, const Topology &topology, PredictOptions options) {
  support::Expected<Prediction> result = predict(plan, topology, options);
  EXPECT_TRUE(result) << result.message();
  return result ? *result : Prediction();
}

/// In lines that are straight a plan has one tile, and its instructions cost what lines cost; a
/// byte more, or a message that waits for room, and each piece is a step.
TEST(Predict, LinesAreStraightWhereMessagesAreSmallAndHaveRoom) {
  Topology topology = simpleTopology(2);
  topology.costs.protocols[1] = {0, 2000};
  topology.costs.lines = {.bandwidth = kGigabyte / 2,
                          .straightBytes = 2000,
                          .instruction = 1 * kNanosecond,
                          .tileBytes = 100};
  plan::Plan one = sends(1, 2), three = sends(3, 2);
  EXPECT_EQ(mustPredict(one, topology, {.bytes = 1001}).tiles, 2u);
  one.protocol = three.protocol = plan::Protocol::LL;
  Prediction straight = mustPredict(one, topology, {.bytes = 1000});
  EXPECT_EQ(straight.tiles, 1u);
  EXPECT_EQ(straight.steps[0].end, (1 + 4000) * kNanosecond);
  EXPECT_EQ(mustPredict(one, topology, {.bytes = 1001}).tiles, 11u);
  EXPECT_EQ(mustPredict(three, topology, {.bytes = 1000}).tiles, 10u);
  topology.costs.lines = {};
  EXPECT_EQ(mustPredict(one, topology, {.bytes = 1001}).tiles, 2u);
}

TEST(Waits, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (size_t wait = 0; wait < kNumWaits; ++wait)
    names.insert(nameOf(static_cast<Wait>(wait)));
  EXPECT_EQ(names.size(), kNumWaits);
  EXPECT_STREQ(nameOf(Wait::Credit), "room on a connection");
  EXPECT_STREQ(nameOf(Wait::Bandwidth), "bandwidth");
}

TEST(Predict, AMessageTakesItsSenderItsWayAndItsReceiver) {
  Prediction result = mustPredict(sends(1, 2), simpleTopology(2), {.bytes = 1000});
  // The link takes 1000 ns where the sender would take 10 + 500; then 100 on the way; then the
  // receiver writes for 10 + 500.
  EXPECT_EQ(result.steps[0].end, 1000 * kNanosecond);
  EXPECT_EQ(result.steps[0].delay, 490 * kNanosecond);
  EXPECT_EQ(result.steps[1].begin, 1100 * kNanosecond);
  EXPECT_EQ(result.steps[1].wait, Wait::Message);
  EXPECT_EQ(result.steps[1].cause, 0u);
  EXPECT_EQ(result.makespan, 1610 * kNanosecond);
  EXPECT_EQ(result.chainLength, 2u);
  EXPECT_EQ(result.resources[0].bytes, 1000u);
}

TEST(Predict, AFullConnectionHoldsItsSenderUp) {
  Prediction one = mustPredict(sends(2, 1), simpleTopology(2), {.bytes = 1000});
  // Rank 1 has received the first at 1610; rank 0 knows 100 later.
  EXPECT_EQ(one.steps[1].begin, 1710 * kNanosecond);
  EXPECT_EQ(one.steps[1].wait, Wait::Credit);
  EXPECT_EQ(one.steps[1].cause, 2u);
  EXPECT_EQ(one.blocks[0].waits[static_cast<size_t>(Wait::Credit)], 710 * kNanosecond);
  Prediction two = mustPredict(sends(2, 2), simpleTopology(2), {.bytes = 1000});
  EXPECT_EQ(two.steps[1].begin, 1000 * kNanosecond);
  EXPECT_EQ(two.makespan, 2610 * kNanosecond);
}

TEST(Predict, ConnectionsShareAPort) {
  auto fromTo = [](std::initializer_list<uint32_t> first, uint32_t sender, uint32_t receiver) {
    PlanBuilder builder;
    uint32_t a = builder.addConnection(0, 0, first),
             b = builder.addConnection(sender, 1, {receiver});
    std::vector<std::vector<uint32_t>> out(4), in(4);
    out[0].push_back(a), out[sender].push_back(b), in[receiver].push_back(b);
    for (uint32_t r : first)
      in[r].push_back(a);
    for (uint32_t r = 0; r < 4; ++r) {
      builder.beginRank({.inputChunks = 1, .outputChunks = 1});
      for (uint32_t c : out[r]) {
        builder.beginThreadBlock();
        builder.addInstruction(chunk(Opcode::Send), {input(r, 0)}, {connection(c)});
      }
      for (uint32_t c : in[r]) {
        builder.beginThreadBlock();
        builder.addInstruction(chunk(Opcode::Recv), {connection(c)}, {output(r, 0)});
      }
    }
    return std::move(builder).take();
  };
  Topology topology = simpleTopology(4);
  auto makespan = [&](const plan::Plan &plan) {
    return mustPredict(plan, topology, {.bytes = 1000}).makespan / kNanosecond;
  };
  EXPECT_EQ(makespan(fromTo({1}, 2, 3)), 1610u) << "nothing shared";
  EXPECT_EQ(makespan(fromTo({1}, 0, 2)), 2610u) << "one port out";
  EXPECT_EQ(makespan(fromTo({1}, 2, 1)), 2610u) << "one port in";
  EXPECT_EQ(makespan(fromTo({1, 2}, 3, 0)), 2610u) << "a copy to each of two ranks";
}

/// Two thread blocks of one rank, the second after the first.
plan::Plan copies(bool dependent) {
  PlanBuilder builder;
  builder.beginRank({.inputChunks = 1, .outputChunks = 2});
  builder.beginThreadBlock();
  builder.addInstruction(chunk(Opcode::Copy), {input(0, 0)}, {output(0, 0)});
  builder.beginThreadBlock();
  std::vector<plan::Dependency> after(dependent ? 1 : 0);
  std::vector<plan::Operand> from{input(0, 0)}, to{output(0, 1)};
  builder.addInstruction(chunk(Opcode::Copy), from, to, after);
  return std::move(builder).take();
}

TEST(Predict, ThreadBlocksRunSideBySideUnlessTheyDependOnEachOther) {
  Topology topology = simpleTopology(1);
  EXPECT_EQ(mustPredict(copies(false), topology, {.bytes = 1000}).makespan, 510 * kNanosecond);
  Prediction result = mustPredict(copies(true), topology, {.bytes = 1000});
  EXPECT_EQ(result.steps[1].begin, 515 * kNanosecond);
  EXPECT_EQ(result.steps[1].wait, Wait::Dependency);
  EXPECT_EQ(result.steps[1].cause, 0u);
  EXPECT_EQ(result.chainLength, 2u);
}

TEST(Predict, ExecutorsAndCoresAreShared) {
  Topology topology = simpleTopology(1);
  topology.costs.executors = 1;
  Prediction one = mustPredict(copies(false), topology, {.bytes = 1000});
  EXPECT_EQ(one.makespan, 1020 * kNanosecond);
  EXPECT_EQ(one.steps[1].wait, Wait::Executor);
  topology.costs.executors = 0;
  topology.costs.cores = 1;
  topology.costs.handover = 3 * kNanosecond;
  EXPECT_EQ(mustPredict(copies(false), topology, {.bytes = 1000}).makespan, 1023 * kNanosecond);
  topology.costs.cores = 2;
  EXPECT_EQ(mustPredict(copies(false), topology, {.bytes = 1000}).makespan, 510 * kNanosecond);
}

TEST(Predict, MemoryCountsWhereBuffersDoNotFitTheCache) {
  Topology topology = simpleTopology(1);
  topology.costs.memory = kGigabyte;
  topology.costs.cacheBytes = 3000;
  // Two blocks touch two operands of 1000 bytes each.
  EXPECT_EQ(mustPredict(copies(false), topology, {.bytes = 1000}).makespan, 510 * kNanosecond);
  topology.costs.cacheBytes = 2999;
  Prediction result = mustPredict(copies(false), topology, {.bytes = 1000});
  EXPECT_EQ(result.makespan, 4000 * kNanosecond);
  EXPECT_EQ(result.resources.back().name, "memory of node 0");
  EXPECT_EQ(result.resources.back().bytes, 4000u);
}

TEST(Predict, TilesFollowEachOtherAndSlicesOverlap) {
  // Ten tiles of 1000 bytes: the link is busy all the time.
  Topology topology = simpleTopology(2);
  Prediction result = mustPredict(sends(1, 2), topology, {.bytes = 10'000});
  EXPECT_EQ(result.tiles, 10u);
  EXPECT_EQ(result.makespan, (10 * 1000 + 610) * kNanosecond);
  // The receiver begins when a quarter has arrived, and ends a quarter after the last has.
  topology.costs.slices = 4;
  result = mustPredict(sends(1, 2), topology, {.bytes = 1000});
  EXPECT_EQ(result.steps[1].begin, 350 * kNanosecond);
  EXPECT_EQ(result.makespan, (1100 + (40 + 500) / 4) * kNanosecond);
}

TEST(Predict, ManyTilesAreExtrapolated) {
  Topology topology = simpleTopology(2);
  PredictOptions options{.bytes = 1'000'000};
  Prediction all = mustPredict(sends(3, 2), topology, options);
  options.maxSteps = 60;
  Prediction some = mustPredict(sends(3, 2), topology, options);
  EXPECT_EQ(all.simulatedTiles, 1000u);
  EXPECT_EQ(some.simulatedTiles, 10u);
  EXPECT_NEAR(static_cast<double>(some.makespan), static_cast<double>(all.makespan),
              1e-3 * static_cast<double>(all.makespan));
  EXPECT_EQ(some.resources[0].bytes, all.resources[0].bytes);
}

/// Rank 1 stores in rank 0's output and signals, twice; rank 0 waits for either.
plan::Plan directAccess() {
  PlanBuilder builder;
  uint32_t counter = builder.addConnection(1, 0, {0});
  builder.beginRank({.inputChunks = 1, .outputChunks = 2});
  builder.beginThreadBlock();
  for (uint32_t i = 1; i <= 2; ++i)
    builder.addInstruction({.opcode = Opcode::Wait, .value = i}, {connection(counter)}, {});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  for (uint32_t i = 0; i < 2; ++i) {
    builder.addInstruction(chunk(Opcode::LoadReduceStore), {input(1, 0)}, {output(0, i)});
    builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(counter)});
  }
  plan::Plan plan = std::move(builder).take();
  plan.connections[0].isCounter = true;
  return plan;
}

TEST(Predict, DirectAccessUsesTheLinkAndSignalsFollow) {
  Prediction result = mustPredict(directAccess(), simpleTopology(2), {.bytes = 2000});
  // Two tiles. The port takes 1000 ns for each store; a signal takes 10, and 100 on its way.
  EXPECT_EQ(result.tiles, 2u);
  EXPECT_EQ(result.steps[2].end, 1000 * kNanosecond);
  EXPECT_EQ(result.steps[0].begin, 1110 * kNanosecond);
  EXPECT_EQ(result.steps[0].wait, Wait::Signal);
  EXPECT_EQ(result.steps[0].cause, 3u);
  EXPECT_EQ(result.steps[1].begin, 2120 * kNanosecond);
  EXPECT_EQ(result.makespan, (4 * 1010 + 110) * kNanosecond);
  EXPECT_EQ(result.resources[2].bytes, 4000u);
  EXPECT_EQ(result.chainLength, 5u);
}

TEST(Predict, SaysWhatIsMissing) {
  EXPECT_EQ(predict(sends(1, 2), simpleTopology(3), {}).message(),
            "the plan is for 2 ranks, the topology 'simple' has 3");
  Topology apart;
  apart.name = "apart";
  apart.addNode(2);
  EXPECT_EQ(predict(sends(1, 2), apart, {}).message(),
            "the topology 'apart' has no link from rank 0 to rank 1, which the plan needs");
}

TEST(Predict, APlanThatIsStuckIsNoEndlessLoop) {
  PlanBuilder builder;
  uint32_t c = builder.addConnection(0, 0, {1});
  builder.beginRank({});
  builder.beginRank({.outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction(chunk(Opcode::Recv), {connection(c)}, {output(1, 0)});
  EXPECT_EQ(predict(std::move(builder).take(), simpleTopology(2), {}).message(),
            "the plan does not come to its end: 1 of 1 steps never begin");
}

TEST(Predict, BoundsNameWhatLimits) {
  Topology topology = simpleTopology(2);
  Prediction result = mustPredict(sends(1, 2), topology, {.bytes = 10'000});
  Bounds bounds = boundsOf(result);
  EXPECT_EQ(bounds.resource, "port of rank 0 at switch, out");
  EXPECT_EQ(bounds.busiestResource, 10'000 * kNanosecond);
  EXPECT_EQ(bounds.busiestBlock, 10 * 510 * kNanosecond);
  support::Expected<Picoseconds> latency = predictLatency(sends(1, 2), topology);
  ASSERT_TRUE(latency);
  EXPECT_EQ(*latency, 120 * kNanosecond);
}

TEST(Predict, AnyNumberOfStepsIsOneResult) {
  // A pipeline of 64 ranks, 200 messages each: twice, and compare everything that is reported.
  PlanBuilder builder;
  constexpr uint32_t kRanks = 64, kMessages = 200;
  for (uint32_t r = 0; r + 1 < kRanks; ++r)
    builder.addConnection(r, 0, {r + 1});
  for (uint32_t r = 0; r < kRanks; ++r) {
    builder.beginRank({.inputChunks = 1, .outputChunks = 1});
    builder.beginThreadBlock();
    for (uint32_t i = 0; i < kMessages; ++i) {
      std::vector<plan::Operand> from{r == 0 ? input(0, 0) : connection(r - 1)};
      std::vector<plan::Operand> to{r + 1 == kRanks ? output(r, 0) : connection(r)};
      Opcode opcode = r == 0 ? Opcode::Send : r + 1 == kRanks ? Opcode::Recv : Opcode::RecvCopySend;
      builder.addInstruction(chunk(opcode), from, to);
    }
  }
  plan::Plan plan = std::move(builder).take();
  Topology topology = topology::sharedMemory(kRanks, 2);
  Prediction first = mustPredict(plan, topology, {.bytes = 1 << 20});
  Prediction second = mustPredict(plan, topology, {.bytes = 1 << 20});
  EXPECT_EQ(first.makespan, second.makespan);
  EXPECT_EQ(first.chainLength, kRanks + kMessages - 1);
  for (size_t i = 0; i < first.steps.size(); ++i)
    EXPECT_EQ(first.steps[i].end, second.steps[i].end);
}

} // namespace
} // namespace occl::cost
