// What verifyPlan says of plans whose head, sizes or flat arrays are wrong: one bad plan for each
// rule.
#include "plan/model/limits.h"
#include "plan/testing/example_plans.h"
#include "plan/verify/verifier.h"

#include <functional>
#include <gtest/gtest.h>

namespace occl::plan {
namespace {

/// The verifier's words on a ring all-reduce of two ranks after `damage`.
std::string wordsOn(const std::function<void(Plan &)> &damage,
                    Plan plan = testing::ringAllReduce(2)) {
  damage(plan);
  VerifyResult result = verifyPlan(plan);
  if (!result.error)
    return "accepted";
  EXPECT_EQ(result.error->proof(), Proof::Shape) << result.text();
  return result.text();
}

TEST(Structure, SaysWhichNameIsEmpty) {
  for (auto [name, path] : {std::pair(&Plan::name, "name"), {&Plan::collective, "collective"}}) {
    Plan plan = testing::ringAllReduce(2);
    (plan.*name).clear();
    VerifyResult result = verifyPlan(plan);
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->path, path);
  }
}

TEST(Structure, Head) {
  EXPECT_EQ(wordsOn([](Plan &p) { p.schemaVersion = 2; }),
            "malformed plan: the schema version is 2, expected 1 [E301]");
  for (const char *hash : {"0123456789ABCDEF", "0123456789abcde", "0123456789abcdef0"})
    EXPECT_EQ(wordsOn([&](Plan &p) { p.sourceHash = hash; }),
              "malformed plan: sourceHash is not 16 lower-case hexadecimal digits [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.collective = ""; }),
            "malformed plan: the name of the algorithm or of the collective is empty [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.name = ""; }),
            "malformed plan: the name of the algorithm or of the collective is empty [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.files[0] = std::string(limits::kMaxNameLength, 'x'); }),
            "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.files[0] = std::string(limits::kMaxNameLength + 1, 'x'); }),
            "malformed plan: the length of a name is 1025, allowed are 1 to 1024 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.numRanks = 0; }),
            "malformed plan: numRanks is 0, allowed are 1 to 4096 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.numRanks = 4097; }),
            "malformed plan: numRanks is 4097, allowed are 1 to 4096 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.numRanks = 3; }),
            "malformed plan: numRanks is 3, but there are 2 ranks [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.partChunks = 0; }),
            "malformed plan: partChunks is 0, allowed are 1 to 4194304 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.root = 2; }),
            "malformed plan: root is 2, allowed are 0 to 1 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.depth = 0; }),
            "malformed plan: depth is 0, allowed are 1 to 64 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.depth = limits::kMaxDepth; }), "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.depth = limits::kMaxDepth + 1; }),
            "malformed plan: depth is 65, allowed are 1 to 64 [E302]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.protocol = static_cast<Protocol>(3); }),
            "malformed plan: the protocol is invalid [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.inPlace = p.outOfPlace = false; }),
            "malformed plan: the plan claims neither in place nor out of place: it is valid for "
            "nothing [E301]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.minBytes = 5, p.maxBytes = 4; }),
            "malformed plan: minBytes 5 exceeds maxBytes 4 [E301]");
}

TEST(Structure, Totals) {
  auto parameters = [](size_t number) {
    return wordsOn([=](Plan &p) { p.parameters.resize(number, {"x", 1}); });
  };
  EXPECT_EQ(parameters(limits::kMaxParameters), "accepted");
  EXPECT_EQ(parameters(limits::kMaxParameters + 1),
            "malformed plan: the number of parameters is 1025, allowed are 0 to 1024 [E302]");
  auto files = [](size_t number) {
    return wordsOn([=](Plan &p) { p.files.resize(number, "x.coll"); });
  };
  EXPECT_EQ(files(limits::kMaxFiles), "accepted");
  EXPECT_EQ(files(limits::kMaxFiles + 1),
            "malformed plan: the number of files is 65537, allowed are 0 to 65536 [E302]");
  EXPECT_EQ(
      wordsOn([](Plan &p) { p.threadBlocks.resize(limits::kMaxTotalThreadBlocks + 1); }),
      "malformed plan: the number of thread blocks is 4194305, allowed are 0 to 4194304 [E302]");
  EXPECT_EQ(wordsOn([](Plan &) {}, testing::chainBroadcast(limits::kMaxRanks, 1)), "accepted");
}

TEST(Structure, FlatArrays) {
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].firstThreadBlock = 0; }),
            "malformed plan: the thread blocks of ranks do not follow each other in the plan's "
            "arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].numThreadBlocks = 0; }),
            "malformed plan: the thread blocks of ranks do not cover the plan's arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].numThreadBlocks = ~0u; }),
            "malformed plan: the thread blocks of ranks do not follow each other in the plan's "
            "arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { ++p.threadBlocks[1].firstInstruction; }),
            "malformed plan: the instructions of thread blocks do not follow each other in the "
            "plan's arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { ++p.instructions[1].numSources; }),
            "malformed plan: the operands of instructions do not follow each other in the plan's "
            "arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { ++p.instructions[1].numDependencies; }),
            "malformed plan: the dependencies of instructions do not follow each other in the "
            "plan's arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) {
              p.witnesses = {{1, 0}};
            }),
            "malformed plan: the places of witnesses do not follow each other in the plan's arrays "
            "[E303]");
  EXPECT_EQ(
      wordsOn([](Plan &p) { p.destinations.push_back(0); }),
      "malformed plan: the destinations of connections do not cover the plan's arrays [E303]");
  EXPECT_EQ(wordsOn([](Plan &p) { ++p.requirements[0].numContributions; }, testing::shift(2)),
            "malformed plan: the contributions of requirements do not follow each other in the "
            "plan's arrays [E303]");
}

TEST(Structure, Ranks) {
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].scratchChunks = limits::kMaxChunks; }), "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].scratchChunks = limits::kMaxChunks + 1; }),
            "malformed plan: rank 1: a buffer has 4194305 chunks, allowed are 4194304 [E302]");
  EXPECT_EQ(
      wordsOn([](Plan &p) { p.ranks[1].inputChunks = 3; }),
      "malformed plan: rank 1: input and output do not consist of whole parts of 2 chunks [E304]");
  EXPECT_EQ(
      wordsOn([](Plan &p) { p.ranks[1].outputChunks = 3; }),
      "malformed plan: rank 1: input and output do not consist of whole parts of 2 chunks [E304]");
  EXPECT_EQ(wordsOn([](Plan &p) {
              p.threadBlocks.resize(limits::kMaxThreadBlocks + 2,
                                    {static_cast<uint32_t>(p.instructions.size()), 0});
              p.ranks[1].numThreadBlocks = limits::kMaxThreadBlocks + 1;
            }),
            "malformed plan: rank 1: 1025 thread blocks, allowed are 1024 [E302]");
  EXPECT_EQ(wordsOn(
                [](Plan &p) {
                  for (RankPlan &rank : p.ranks)
                    rank.scratchChunks = limits::kMaxChunks;
                },
                testing::ringAllReduce(16)),
            "malformed plan: the number of chunks of all buffers is 67109376, allowed are 0 to "
            "67108864 [E302]");
}

TEST(Structure, Connections) {
  EXPECT_EQ(wordsOn([](Plan &p) { p.connections[1].source = 2; }),
            "malformed plan: connection 1: there is no source rank 2 [E305]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.connections[1].channel = limits::kMaxChannels - 1; }),
            "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.connections[1].channel = limits::kMaxChannels; }),
            "malformed plan: connection 1: the channel is 4096, allowed are 0 to 4095 [E305]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.destinations[1] = 2; }),
            "malformed plan: connection 1: there is no destination rank 2 [E305]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.destinations[1] = 1; }),
            "malformed plan: connection 1: rank 1 is source and destination [E305]");
  EXPECT_EQ(wordsOn([](Plan &p) {
              p.connections[1].numDestinations = 0;
              p.destinations.pop_back();
            }),
            "malformed plan: connection 1: it has no destination [E305]");
  EXPECT_EQ(wordsOn([](Plan &p) { std::swap(p.destinations[0], p.destinations[1]); },
                    testing::oneShotAllReduce(3)),
            "malformed plan: connection 0: the destinations do not ascend [E305]");
}

TEST(Structure, Collectives) {
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].outputChunks = 0; }),
            "malformed plan: allreduce: rank 1: outputChunks is 0, expected 2 [E308]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[1].inPlaceOffset = 1; }),
            "malformed plan: allreduce: rank 1: inPlaceOffset is 1, expected 0 [E308]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[2].inPlaceOffset = 0; }, testing::ringAllGather(3)),
            "malformed plan: allgather: rank 2: inPlaceOffset is 0, expected 2 [E308]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[2].inPlaceOffset = 0; }, testing::ringReduceScatter(3)),
            "malformed plan: reducescatter: rank 2: inPlaceOffset is 0, expected -2 [E308]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[2].inputChunks = 0; }, testing::chainBroadcast(3)),
            "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[0].inputChunks = 0; }, testing::chainBroadcast(3)),
            "malformed plan: broadcast: rank 0: inputChunks is 0, expected 4 [E308]");
  EXPECT_EQ(wordsOn([](Plan &p) { p.ranks[2].outputChunks = 0; }, testing::chainReduce(3)),
            "accepted");
  EXPECT_EQ(wordsOn([](Plan &p) { p.collective = "allredcue"; }),
            "malformed plan: 'allredcue' is no standard collective, and the plan has no "
            "requirements: there is nothing to verify it against; if none can be known, say "
            "\"postcondition\": false [E307]");
}

TEST(Structure, Requirements) {
  auto onShift = [](const std::function<void(Plan &)> &damage) {
    return wordsOn(damage, testing::shift(3));
  };
  EXPECT_EQ(onShift([](Plan &p) { p.collective = "broadcast"; }),
            "malformed plan: the plan has requirements of its own for the standard collective "
            "broadcast [E307]");
  EXPECT_EQ(onShift([](Plan &p) { p.requirements[1].rank = 3; }),
            "malformed plan: requirement 1: there is no rank 3 [E306]");
  EXPECT_EQ(onShift([](Plan &p) { p.requirements[1].count = 0; }),
            "malformed plan: requirement 1: it has no chunk or no contribution [E306]");
  EXPECT_EQ(onShift([](Plan &p) {
              p.requirements[1].numContributions = 0;
              p.contributions.pop_back();
            }),
            "malformed plan: requirement 1: it has no chunk or no contribution [E306]");
  EXPECT_EQ(onShift([](Plan &p) { p.requirements[1].outputChunk = 1; }),
            "malformed plan: requirement 1: it lies outside of the output [E306]");
  EXPECT_EQ(onShift([](Plan &p) { p.contributions[1].chunk = ~0u; }),
            "malformed plan: requirement 1: a contribution lies outside of rank 1's input [E306]");
  EXPECT_EQ(onShift([](Plan &p) { p.contributions[1].rank = 7; }),
            "malformed plan: requirement 1: a contribution lies outside of rank 7's input [E306]");
}

} // namespace
} // namespace occl::plan
