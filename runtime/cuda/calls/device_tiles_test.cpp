#include "runtime/cuda/calls/device_tiles.h"

#include "plan/model/builder.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

using namespace plan;

constexpr uint64_t kPartBytes = 64 << 20, kOneTile = 4 << 20;

TEST(DeviceTiles, AChainHasManyOfThem) {
  EXPECT_EQ(tilesFor(testing::chainBroadcast(4, 1), 4 << 20).messageBytes, 128u << 10);
  EXPECT_EQ(tilesFor(testing::chainReduce(4, 1), 4 << 20).messageBytes, 128u << 10);
}

TEST(DeviceTiles, OfAChainAreNeitherSmallNorLarge) {
  EXPECT_EQ(tilesFor(testing::chainBroadcast(4, 1), 1 << 10).messageBytes, 64u << 10);
  EXPECT_EQ(tilesFor(testing::chainBroadcast(4, 1), 1ull << 30).messageBytes, 256u << 10);
}

TEST(DeviceTiles, SeveralMessagesAThreadBlockHaveLargeOnes) {
  EXPECT_EQ(tilesFor(testing::oneShotAllReduce(4), kPartBytes).messageBytes, kOneTile);
  EXPECT_EQ(tilesFor(testing::ringAllReduce(4), kPartBytes).messageBytes, kOneTile);
}

/// The root takes the other rank's input where it lies and says that it is done: one signal of the
/// one, one wait of the other, and nothing that could follow anything.
Plan directReduce() {
  PlanBuilder builder;
  builder.header().name = "direct_reduce";
  builder.header().collective = "reduce";
  builder.header().partChunks = 1;
  builder.addCounter(0, {1});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::LoadReduceStore, .final = true, .count = 1},
                         {input(0, 0), input(1, 0)}, {output(0, 0)});
  builder.addInstruction({.opcode = Opcode::Signal}, {}, {connection(0)});
  builder.beginRank({.inputChunks = 1});
  builder.beginThreadBlock();
  builder.addInstruction({.opcode = Opcode::Wait, .value = 1}, {connection(0)}, {});
  return std::move(builder).take();
}

TEST(DeviceTiles, ASignalIsNoMessage) {
  EXPECT_EQ(tilesFor(directReduce(), kPartBytes).messageBytes, kOneTile);
  EXPECT_EQ(tilesFor(testing::directAllReduce(4), kPartBytes).messageBytes, kOneTile);
}

} // namespace
} // namespace occl::cuda
