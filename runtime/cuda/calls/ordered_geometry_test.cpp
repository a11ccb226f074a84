#include "runtime/cuda/calls/ordered_geometry.h"

#include "plan/testing/example_plans.h"
#include "runtime/cuda/calls/bind_for_device.h"
#include "runtime/cuda/calls/device_tiles.h"
#include "runtime/memory/arena.h"
#include "runtime/plan_library/plan_library.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

using interpreter::Binding;
using plan::Protocol;

constexpr uint64_t kMiB = 1 << 20;

constexpr uint64_t kMemories[] = {0, 1, 3 * kMiB + 12345, 64 * kMiB, 256 * kMiB, uint64_t{1} << 40};

void checkParts(const OrderedGeometry &sizes, bool hasWideLines) {
  const auto lines = sizes.partFor(Protocol::LL);
  const auto wide = sizes.partFor(Protocol::LL128);
  const auto messages = sizes.partFor(Protocol::Simple);
  EXPECT_EQ(lines.offset, sizes.words);
  EXPECT_EQ(lines.bytes, sizes.lines);
  EXPECT_EQ(wide.offset, hasWideLines ? lines.offset + lines.bytes : lines.offset);
  EXPECT_EQ(wide.bytes, hasWideLines ? sizes.wideLines : sizes.lines);
  EXPECT_EQ(wide.offset + wide.bytes, sizes.block());
  EXPECT_EQ(messages.offset, sizes.words);
  EXPECT_EQ(messages.bytes, sizes.messages);
  EXPECT_EQ(sizes.sharedBlock(), kMaxRing * sizes.block() + sizes.scratch);
  EXPECT_EQ(sizes.all(), sizes.sharedBlock() + sizes.words + sizes.messages);
  EXPECT_LT(sizes.progressOffset(), sizes.words);
  EXPECT_EQ(sizes.progressOffset() % interpreter::kControlStride, 0u);
  for (uint64_t bytes : {sizes.words, lines.bytes, wide.bytes, messages.bytes, sizes.scratch})
    EXPECT_EQ(bytes % kBlockAlignment, 0u);
  for (const auto &part : {lines, wide, messages})
    EXPECT_GE(part.bytes, kBlockAlignment);
}

TEST(OrderedGeometry, PartsFollowEachOtherAndAreAligned) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (uint64_t memory : kMemories)
      for (uint64_t arena : {uint64_t{0}, memory / 4, memory})
        for (bool hasWideLines : {true, false}) {
          SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(memory) + " bytes");
          checkParts(OrderedGeometry::forMemory(ranks, {memory, arena}, hasWideLines),
                     hasWideLines);
        }
}

/// Of the memory, with an arena of 1 / `part` of it.
void checkShares(uint32_t ranks, bool hasWideLines, uint64_t part) {
  uint64_t before = 0;
  for (uint64_t memory = kMiB; memory < uint64_t{1} << 36; memory *= 2) {
    const auto sizes = OrderedGeometry::forMemory(ranks, {memory, memory / part}, hasWideLines);
    EXPECT_GE(sizes.all(), before) << "with more memory";
    before = sizes.all();
    const uint64_t most = hasWideLines ? memory / 10 * 3 : memory / 8 * 3;
    const uint64_t ofArena = memory / part < 128 * kMiB ? 0 : (hasWideLines ? 72 : 88) * kMiB;
    EXPECT_LE(sizes.all() - (kMaxRing + 1) * sizes.words, std::max(most, ofArena));
  }
  EXPECT_EQ(before, OrderedGeometry::forMemory(ranks, {512 * kMiB, 0}, hasWideLines).all());
}

TEST(OrderedGeometry, TakesAShareOfTheMemoryAndNoMoreThanPlansNeed) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (bool hasWideLines : {true, false})
      for (uint64_t part : {1, 2, 5})
        checkShares(ranks, hasWideLines, part);
}

/// What a user has of it with allocate() is not taken, nor is what lanes have of a little arena.
TEST(OrderedGeometry, TakesMoreOfAnArenaOf128MiBAlone) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (bool hasWideLines : {true, false}) {
      const auto all = [&](uint64_t memory, uint64_t arena) {
        return OrderedGeometry::forMemory(ranks, {memory * kMiB, arena * kMiB}, hasWideLines).all();
      };
      EXPECT_EQ(all(127, 127), all(127, 0));
      EXPECT_EQ(all(256, 64), all(256, 0));
      EXPECT_GT(all(128, 128), all(128, 0));
      EXPECT_LE(all(128, 128), 96 * kMiB);
    }
}

std::shared_ptr<const Binding> bound(const plan::Plan &plan, const OrderedGeometry &sizes,
                                     uint64_t count) {
  interpreter::BindRequest request;
  request.count = count;
  request.tiles = tilesFor(plan, count * sizeof(float));
  request.placement = interpreter::Placement::AtDestination;
  request.lines = interpreter::kDeviceLines;
  request.slotsOffset = sizes.partFor(plan.protocol).offset;
  auto made = interpreter::bind(plan, request);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

TEST(OrderedGeometry, HasRoomForExamples) {
  for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks) {
    const auto sizes = OrderedGeometry::forMemory(ranks, {256 * kMiB, 256 * kMiB}, true);
    for (Protocol protocol : {Protocol::Simple, Protocol::LL, Protocol::LL128}) {
      plan::Plan plan = plan::testing::ringAllReduce(ranks);
      plan.protocol = protocol;
      auto binding = bound(plan, sizes, 4096);
      const auto part = sizes.partFor(protocol);
      EXPECT_EQ(sizes.misfit(*binding, 4096), "");
      EXPECT_GT(largestBlock(*binding), part.offset);
      EXPECT_LE(largestBlock(*binding), part.offset + part.bytes);
    }
  }
}

/// Of every collective and so many bytes of a part.
void checkRoomForAllPlans(const OrderedGeometry &sizes, uint32_t ranks, bool hasWideLines,
                          uint64_t bytes) {
  using plan_library::PlanClass;
  for (PlanClass where : {PlanClass::DeviceRegistered, PlanClass::DeviceOrdinary})
    for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind) {
      auto chosen = plan_library::PlanLibrary::ofProcess().choose(
          {static_cast<plan_library::Kind>(kind), ranks, bytes, 0, where});
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      auto made = bindForDevice(*chosen->plan, sizes,
                                {.count = bytes / sizeof(float), .hasWideLines = hasWideLines});
      EXPECT_TRUE(made.ok()) << ranks << " ranks, " << bytes
                             << " bytes: " << made.status().message();
    }
}

/// What is said at forMemory(): programs of lines have room for all of a message.
TEST(OrderedGeometry, HasRoomForAllPlansOfTheLibraryFrom128MiBOn) {
  std::vector<uint64_t> numbers = {6 << 20}; // the largest that has lines
  for (uint64_t bytes = 4; bytes < uint64_t{1} << 31; bytes = bytes * 3 / 2 / 4 * 4 + 4)
    numbers.push_back(bytes);
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (uint64_t memory : {128 * kMiB, 256 * kMiB})
      for (bool hasWideLines : {true, false}) {
        SCOPED_TRACE(std::to_string(memory) + (hasWideLines ? " bytes" : " bytes, narrow lines"));
        const auto sizes = OrderedGeometry::forMemory(ranks, {memory, memory}, hasWideLines);
        for (uint64_t bytes : numbers)
          checkRoomForAllPlans(sizes, ranks, hasWideLines, bytes);
      }
}

/// What a communicator of an arena of 128 MiB begins with, between up to four ranks in LL, and that
/// all plans fit into parts that are apart as into others.
TEST(OrderedGeometry, HasRoomForAllPlansInPartsThatAreApart) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (bool hasWideLines : {true, false}) {
      auto sizes = OrderedGeometry::forMemory(ranks, {128 * kMiB, 128 * kMiB}, hasWideLines);
      const uint64_t together = sizes.all();
      sizes.isApart = true;
      EXPECT_LE(sizes.all(), 7 * kMiB);
      EXPECT_LE(sizes.all() + sizes.linesLater() + sizes.messagesLater(),
                together + kMaxRing * sizes.words);
      for (uint64_t bytes = 4; bytes < uint64_t{1} << 31; bytes = bytes * 5 / 2 / 4 * 4 + 4)
        checkRoomForAllPlans(sizes, ranks, hasWideLines, bytes);
    }
}

/// Scratch is taken with what larger calls need.
TEST(OrderedGeometry, PlansOfLLHaveNoScratch) {
  using plan_library::PlanClass;
  for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
    for (uint32_t ranks = 2; ranks <= kMaxRanks; ++ranks)
      for (uint64_t bytes = 4; bytes < 1 << 20; bytes *= 2) {
        auto chosen = plan_library::PlanLibrary::ofProcess().choose(
            {static_cast<plan_library::Kind>(kind), ranks, bytes, 0, PlanClass::DeviceOrdinary});
        ASSERT_TRUE(chosen.ok()) << chosen.status().message();
        for (const plan::RankPlan &rank : chosen->plan->ranks)
          EXPECT_TRUE(chosen->plan->protocol != Protocol::LL || rank.scratchChunks == 0)
              << chosen->plan->name << ", " << bytes << " bytes";
      }
}

TEST(OrderedGeometry, PartsThatAreApartHaveEachItsPlace) {
  auto sizes = OrderedGeometry::forMemory(2, {128 * kMiB, 128 * kMiB}, true);
  sizes.isApart = true;
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128, Protocol::Simple}) {
    const auto blocks = sizes.blocksFor(protocol);
    const auto part = sizes.partFor(protocol);
    const bool isSimple = protocol == Protocol::Simple;
    EXPECT_EQ(blocks.in, protocol == Protocol::LL ? std::nullopt
                         : isSimple               ? std::optional(LaterPart::Messages)
                                                  : std::optional(LaterPart::Lines));
    EXPECT_EQ(blocks.stride, isSimple ? 0 : part.offset + part.bytes) << "blocks must not meet";
    const uint64_t end = blocks.offset + (kMaxRing - 1) * blocks.stride + part.offset + part.bytes;
    EXPECT_EQ(end, protocol == Protocol::LL ? sizes.all()
                   : isSimple               ? sizes.messagesLater()
                                            : sizes.linesLater());
  }
  EXPECT_EQ(sizes.scratchBlock().in, LaterPart::Messages);
  EXPECT_EQ(sizes.scratchBlock().offset + sizes.scratch, sizes.blocksFor(Protocol::Simple).offset);
}

/// In a large lane a plan does what it does in another one, in no more tiles.
void expectRoomInLanes(const plan::Plan &plan, uint64_t bytes) {
  const std::string text = plan.name + " of " + std::to_string(plan.numRanks) + " ranks, " +
                           std::to_string(bytes) + " bytes";
  const bool hasLines = plan.protocol != Protocol::Simple;
  const DeviceBindRequest request = {.count = bytes / sizeof(float), .kernels = Kernels::Resident};
  const auto small =
      bindForDevice(plan, OrderedGeometry::forLane(plan.numRanks, hasLines, hasLines), request);
  ASSERT_TRUE(small.ok()) << text << ": " << small.status().message();
  for (const plan::RankPlan &rank : plan.ranks)
    EXPECT_LE(rank.numThreadBlocks, 64u) << text << ", the most of a resident daemon";
  if (hasLines)
    return;
  const auto sizes = OrderedGeometry::forLargeLane(plan.numRanks, {1280 * kMiB, 256 * kMiB}, true);
  ASSERT_TRUE(sizes.has_value());
  const auto large = bindForDevice(plan, *sizes, request);
  ASSERT_TRUE(large.ok()) << text << ": " << large.status().message();
  EXPECT_LE(large->bound->program().numTiles, small->bound->program().numTiles) << text;
  EXPECT_EQ(large->bound->program().numBlocks, small->bound->program().numBlocks) << text;
}

TEST(OrderedGeometry, LanesHaveRoomForAllPlansOfResidentDaemons) {
  using plan_library::PlanClass;
  for (PlanClass where : {PlanClass::ResidentRegistered, PlanClass::ResidentOrdinary})
    for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
      for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
        for (uint64_t bytes : {4, 3840, 7680, 8192, 19200, 30720, 76800, 131072, 1 << 20, 1 << 28})
          for (uint32_t mostBlocks : {64u, plan_library::kFewestBlocks}) {
            auto chosen = plan_library::PlanLibrary::ofProcess().choose(
                {static_cast<plan_library::Kind>(kind), ranks, bytes, 0, where, 1, mostBlocks});
            ASSERT_TRUE(chosen.ok()) << chosen.status().message();
            expectRoomInLanes(*chosen->plan, bytes);
          }
}

TEST(OrderedGeometry, LanesTakeHalfOfTheMemory) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (uint64_t memory = 64 * kMiB; memory < uint64_t{1} << 36; memory *= 2) {
      const uint64_t pair = OrderedGeometry::forLane(ranks, true, true).all() +
                            OrderedGeometry::forLane(ranks, false, false).all();
      const uint32_t lanes = OrderedGeometry::numLanes(ranks, {memory, memory}, true);
      EXPECT_GE(lanes, 1u);
      EXPECT_LE(lanes, 62u);
      EXPECT_TRUE(lanes == 1 || 2 * lanes * pair <= memory / 2) << ranks << " ranks";
    }
}

/// With all lanes open there is room for calls in streams, 16 MiB for transfers, and 8 for tables.
TEST(OrderedGeometry, LanesLeaveRoomForWhatElseThereIs) {
  for (uint32_t ranks = 1; ranks <= kMaxRanks; ++ranks)
    for (uint64_t memory = 128 * kMiB; memory < uint64_t{1} << 36; memory += memory / 16) {
      const uint64_t pair = OrderedGeometry::forLane(ranks, true, true).all() +
                            OrderedGeometry::forLane(ranks, false, true).all();
      const uint64_t lanes = OrderedGeometry::numLanes(ranks, {memory, memory}, true);
      const uint64_t streams = OrderedGeometry::forMemory(ranks, {memory, memory}, true).all();
      const auto large = OrderedGeometry::forLargeLane(ranks, {memory, memory}, true);
      const uint64_t ofLarge = large ? OrderedGeometry::kLargeLanes * large->all() : 0;
      EXPECT_LE(streams + 2 * lanes * pair + ofLarge + 24 * kMiB, memory)
          << ranks << " ranks, " << memory;
    }
}

/// docs/gpu.md has these numbers.
TEST(OrderedGeometry, LanesByMemory) {
  const auto lanes = [](uint64_t memory) {
    std::vector<uint32_t> numbers;
    for (uint32_t ranks : {2, 4, 8})
      numbers.push_back(OrderedGeometry::numLanes(ranks, {memory, memory}, true));
    return numbers;
  };
  EXPECT_EQ(lanes(128 * kMiB), (std::vector<uint32_t>{7, 3, 1}));
  EXPECT_EQ(lanes(256 * kMiB), (std::vector<uint32_t>{26, 14, 7}));
  EXPECT_EQ(lanes(512 * kMiB), (std::vector<uint32_t>{53, 29, 15}));
  EXPECT_EQ(lanes(1280 * kMiB), (std::vector<uint32_t>{62, 62, 38}));
  EXPECT_EQ(lanes(2304 * kMiB), (std::vector<uint32_t>{62, 62, 62}));
}

/// MiB that a large lane takes, which the arena gives out without loss; 0: there are none.
TEST(OrderedGeometry, LargeLanesByMemory) {
  const auto lanes = [](uint64_t memory, uint64_t arena) {
    std::vector<uint64_t> sizes;
    for (uint32_t ranks : {2, 4, 8}) {
      const auto large = OrderedGeometry::forLargeLane(ranks, {memory, arena}, true);
      sizes.push_back(large ? large->all() / kMiB : 0);
      if (!large)
        continue;
      EXPECT_EQ(large->all(), transport::Arena::roundToClass(large->all()));
      const auto small = OrderedGeometry::forLane(ranks, false, true);
      EXPECT_GE(large->messages, 3 * small.messages);
      EXPECT_EQ(large->words, small.words);
      EXPECT_EQ(large->scratch, small.scratch);
    }
    return sizes;
  };
  EXPECT_EQ(lanes(129 * kMiB, 128 * kMiB), (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_EQ(lanes(257 * kMiB, 256 * kMiB), (std::vector<uint64_t>{4, 0, 0}));
  EXPECT_EQ(lanes(512 * kMiB, 256 * kMiB), (std::vector<uint64_t>{8, 8, 0}));
  EXPECT_EQ(lanes(1280 * kMiB, 256 * kMiB), (std::vector<uint64_t>{16, 16, 16}));
  EXPECT_EQ(lanes(2304 * kMiB, 256 * kMiB), (std::vector<uint64_t>{16, 16, 16}));
  EXPECT_EQ(lanes(4096 * kMiB, 1024 * kMiB), (std::vector<uint64_t>{16, 16, 32}));
}

TEST(OrderedGeometry, SaysWhatDoesNotFit) {
  OrderedGeometry sizes = OrderedGeometry::forMemory(2, {256 * kMiB, 256 * kMiB}, true);
  plan::Plan plan = plan::testing::ringAllReduce(2);
  auto simple = bound(plan, sizes, 100'000'000);
  EXPECT_EQ(sizes.misfit(*simple, 100'000'000), "");
  plan.protocol = Protocol::LL;
  auto lines = bound(plan, sizes, 10'000'000);
  EXPECT_NE(sizes.misfit(*lines, 10'000'000).find("too many messages at a count of 10000000"),
            std::string::npos);
  sizes.words -= sizes.progressOffset();
  EXPECT_NE(sizes.misfit(*simple, 1).find("more connections"), std::string::npos);

  sizes = OrderedGeometry::forMemory(2, {256 * kMiB, 256 * kMiB}, true);
  sizes.scratch = 0;
  plan::Plan scratched = plan::testing::shift(2);
  auto needs = bound(scratched, sizes, 64);
  ASSERT_GT(needs->scratchBytes(), 0u);
  EXPECT_NE(sizes.misfit(*needs, 64).find("bytes of scratch at a count of 64"), std::string::npos);
}

/// As many as flags and words are apart in consecutive calls, and no more.
TEST(OrderedGeometry, LetsProgramsHaveSoManyMessagesAsCallsAreApart) {
  const auto sizes = OrderedGeometry::forMemory(2, {256 * kMiB, 256 * kMiB}, true);
  plan::Plan plan = plan::testing::ringAllReduce(2);
  plan.protocol = Protocol::LL;
  bool hasFit = false, hasNot = false;
  for (uint64_t count = 1 << 10; count <= 1 << 22; count = count * 5 / 4) {
    auto binding = bound(plan, sizes, count);
    const bool fits = binding->program().flagsPerInvocation <= kOrderedFlags;
    EXPECT_EQ(sizes.misfit(*binding, count).empty(), fits) << count;
    (fits ? hasFit : hasNot) = true;
  }
  EXPECT_TRUE(hasFit && hasNot);
}

TEST(CallSignature, DiffersWithWhatDiffers) {
  struct Call {
    uint64_t plan, count;
    DataType type;
    ReduceOp op;
  };
  uint64_t pairs = 0, same = 0;
  for (uint64_t plan : {uint64_t{0}, uint64_t{0x123456789abcdef0}, ~uint64_t{0}})
    for (uint64_t count = 0; count < 3000; ++count) {
      const Call call{plan, count, DataType(count % kNumDataTypes),
                      ReduceOp(count % kNumReduceOps)};
      const uint16_t own = signatureOf(call.plan, call.count, call.type, call.op);
      EXPECT_EQ(own, signatureOf(call.plan, call.count, call.type, call.op));
      std::vector<uint16_t> others;
      for (int bit = 0; bit < 64; ++bit) {
        others.push_back(signatureOf(call.plan ^ uint64_t{1} << bit, count, call.type, call.op));
        others.push_back(signatureOf(call.plan, count ^ uint64_t{1} << bit, call.type, call.op));
      }
      for (unsigned type = 0; type < kNumDataTypes; ++type)
        if (DataType(type) != call.type)
          others.push_back(signatureOf(call.plan, count, DataType(type), call.op));
      for (unsigned op = 0; op < kNumReduceOps; ++op)
        if (ReduceOp(op) != call.op)
          others.push_back(signatureOf(call.plan, count, call.type, ReduceOp(op)));
      pairs += others.size();
      for (uint16_t other : others)
        same += other == own;
    }
  // About as few as of 16 random bits.
  EXPECT_LT(same, 2 * pairs / 65536) << "of " << pairs;
}

/// Those that programs mix up: types and operations at one count, and counts next to each other.
TEST(CallSignature, TellsNeighboursApart) {
  std::set<uint16_t> kinds;
  for (unsigned type = 0; type < kNumDataTypes; ++type)
    for (unsigned op = 0; op < kNumReduceOps; ++op)
      kinds.insert(signatureOf(0x5eed, 1024, DataType(type), ReduceOp(op)));
  EXPECT_EQ(kinds.size(), kNumDataTypes * kNumReduceOps);
  std::set<uint16_t> counts;
  for (uint64_t count = 1000; count < 1032; ++count)
    counts.insert(signatureOf(0x5eed, count, DataType::Float32, ReduceOp::Sum));
  EXPECT_EQ(counts.size(), 32u);
}

} // namespace
} // namespace occl::cuda
