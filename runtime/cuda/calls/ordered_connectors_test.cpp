// Connectors whose memory or whose records could not be written at once: nothing is told twice, and
// nobody gets memory that the device may yet write.
#include "runtime/cuda/calls/ordered_connectors.h"

#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/cuda/memory/later_memory.h"
#include "runtime/cuda/testing/group_of_one.h"
#include "runtime/cuda/testing/host_cuda.h"
#include "runtime/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace occl::cuda {
namespace {

using namespace testing;

constexpr uint64_t kFirst = 5;
constexpr uint32_t kSlot = 1;

class OrderedConnectorsTest : public ::testing::Test {
protected:
  void SetUp() override {
    resetHostCuda();
    auto made = DeviceMemory::make(group, group.hosts(), 0, {4 << 20, 4 << 20});
    ASSERT_TRUE(made.ok()) << made.status().message();
    memory = std::move(*made);
    ASSERT_TRUE(memory->connect().ok());
    space.emplace(kRecordBytes, memory->bytes() - kRecordBytes);
  }
  void TearDown() override { resetHostCuda(); }

  StatusOr<std::unique_ptr<OrderedConnectors>> make() {
    return OrderedConnectors::make({*memory, *space, *space, 0, 1, 1}, kSlot, sizes, kFirst,
                                   unfinished);
  }
  const RankRecord &record() const { return *recordIn(memory->arena(0), kSlot, 0); }
  /// Where others store.
  char *blocks() const { return memory->arena(0) + record().where - 1; }

  GroupOfOne group{1, false};
  std::unique_ptr<DeviceMemory> memory;
  std::optional<ArenaSpace> space;
  const OrderedGeometry sizes = OrderedGeometry::forLane(1, true, false);
  std::unique_ptr<OrderedConnectors> unfinished;
};

TEST_F(OrderedConnectorsTest, OthersAreToldOfClearedMemory) {
  ASSERT_TRUE(make().ok());
  EXPECT_FALSE(unfinished);
  ASSERT_NE(record().where, 0u);
  EXPECT_EQ(record().begun, kFirst + 1);
  EXPECT_TRUE(std::all_of(blocks(), blocks() + sizes.all(), [](char byte) { return byte == 0; }));
}

TEST_F(OrderedConnectorsTest, MemoryThatOthersWereToldOfStaysWhereItIs) {
  // The record is there, and the device is late to say so.
  failCall("cudaEventQuery", cudaErrorUnknown, 3);
  ASSERT_FALSE(make().ok());
  const uint64_t where = record().where;
  ASSERT_NE(where, 0u) << "the test means another copy";
  // Another rank has stored a line meanwhile.
  blocks()[0] = 7;
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(record().where, where) << "the line is where nobody looks";
  EXPECT_EQ(blocks()[0], 7) << "and it is not stored again";
}

TEST_F(OrderedConnectorsTest, NobodyGetsMemoryThatTheDeviceMayYetClear) {
  holdDevice();
  failCall("cudaEventQuery", cudaErrorUnknown);
  ASSERT_FALSE(make().ok());
  // Somebody takes the same amount, and uses it.
  const auto others = space->allocate(sizes.all());
  ASSERT_TRUE(others);
  char *const begin = memory->onDevice() + others->offset;
  std::memset(begin, 7, sizes.all());
  letDeviceGo();
  EXPECT_TRUE(std::all_of(begin, begin + sizes.all(), [](char byte) { return byte == 7; }));
  // The next try has the memory of the first one.
  ASSERT_TRUE(make().ok());
  EXPECT_NE(blocks(), begin);
}

TEST_F(OrderedConnectorsTest, WithoutMemoryNothingIsTaken) {
  ArenaSpace one(kRecordBytes, transport::Arena::roundToClass(sizes.all())), none(0, 0);
  const auto made =
      OrderedConnectors::make({*memory, one, none, 0, 1, 1}, kSlot, sizes, kFirst, unfinished);
  EXPECT_EQ(made.status().code(), StatusCode::Again);
  EXPECT_FALSE(unfinished);
  EXPECT_TRUE(one.allocate(sizes.all()));
}

/// What was taken before is theirs, and then they need no other.
TEST_F(OrderedConnectorsTest, LieInWhatIsReserved) {
  ArenaSpace none(0, 0);
  const ShapeContext without = {*memory, none, none, 0, 1, 1};
  const auto pieces = OrderedConnectors::take({*memory, *space, *space, 0, 1, 1}, sizes);
  ASSERT_TRUE(pieces.has_value());
  EXPECT_FALSE(OrderedConnectors::take(without, sizes).has_value());
  const auto made = OrderedConnectors::make(without, kSlot, sizes, kFirst, unfinished, pieces);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(record().where, pieces->messages.offset + 1);
  EXPECT_EQ(reinterpret_cast<char *>((*made)->doneWord()) - memory->onDevice(),
            pieces->numbers.offset + (kOrderedOrdinals + 1) * sizeof(uint64_t));
}

/// Kernels find each part where it is, and lines of LL to be cleared, whatever they execute.
void checkPlaces(const OrderedConnectors &connectors, const DeviceMemory &memory,
                 const LaterMemory &later, const OrderedGeometry &sizes) {
  char *const arena = memory.arena(0);
  char *const begin = arena + recordIn(arena, OrderedConnectors::kOfStreams, 0)->where - 1;
  char *const own = sizes.wideLines != 0 ? begin : later.begin(LaterPart::Lines, 0);
  for (const plan::Protocol protocol :
       {plan::Protocol::LL, plan::Protocol::LL128, plan::Protocol::Simple}) {
    DeviceCollective device;
    connectors.describe(device, protocol);
    const bool isSimple = protocol == plan::Protocol::Simple;
    char *const first = isSimple ? later.begin(LaterPart::Messages, 0) + sizes.scratch
                        : protocol == plan::Protocol::LL ? own
                                                         : later.begin(LaterPart::Lines, 0);
    const auto part = sizes.partFor(protocol);
    for (const uint64_t n : {0, 1, 7})
      EXPECT_EQ(begin + device.blockOffset(n, 0),
                first + (isSimple ? 0 : n % kMaxRing * (part.offset + part.bytes)));
    EXPECT_EQ(begin + device.scratchOffsets[0], later.begin(LaterPart::Messages, 0));
    EXPECT_EQ(begin + device.linesOffset, own + sizes.words);
    EXPECT_EQ(device.linesStride, sizes.words + sizes.lines);
    EXPECT_EQ(device.linesBytes, sizes.lines);
  }
}

TEST(OrderedConnectorsApart, LieWhereTheirPartsAre) {
  resetHostCuda();
  auto fabrics = daemon::testing::makeThreadFabrics(1, sizeof(ControlBlock));
  ASSERT_TRUE(fabrics.ok());
  daemon::Fabric &fabric = *fabrics->fabrics[0];
  auto *block = reinterpret_cast<ControlBlock *>(fabric.own().arena());
  auto memory = DeviceMemory::make(fabric.ranks(), {{block, {}}}, 0, {8 << 20, 128 << 20});
  ASSERT_TRUE(memory.ok() && (*memory)->connect().ok());
  for (const bool hasWideLines : {true, false}) {
    auto sizes = OrderedGeometry::forMemory(1, {128 << 20, 128 << 20}, hasWideLines);
    sizes.isApart = true;
    LaterMemory later(fabric, **memory, {sizes.linesLater(), sizes.messagesLater(), 0},
                      std::chrono::seconds(30));
    ArenaSpace space(kRecordBytes, (8 << 20) - kRecordBytes);
    const ShapeContext context = {**memory, space, space, 0, 1, 1, nullptr, &later};
    std::unique_ptr<OrderedConnectors> unfinished;
    auto made =
        OrderedConnectors::make(context, OrderedConnectors::kOfStreams, sizes, kFirst, unfinished);
    ASSERT_TRUE(made.ok()) << made.status().message();
    ASSERT_TRUE(later.need(LaterPart::Lines, 1).ok() && later.need(LaterPart::Messages, 1).ok());
    checkPlaces(**made, **memory, later, sizes);
    // The card of a rank says once what it has.
    for (LaterCard &card : block->card.later)
      card.state = DeviceCard::Missing;
  }
}

} // namespace
} // namespace occl::cuda
