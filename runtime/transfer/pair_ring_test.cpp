#include "runtime/transfer/pair_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace occl::transfer {
namespace {

struct SmallRing {
  transport::RingPosition tail, head;
  alignas(64) std::array<std::byte, 512> data{};

  transport::PairRing ring() { return {&tail, &head, data.data(), data.size()}; }
};

/// Of all lengths, from all places in the ring.
TEST(PairRing, KeepsOrderAndBytes) {
  SmallRing memory;
  RingSource source(memory.ring());
  RingSink sink(memory.ring());
  uint8_t next = 0;
  for (uint64_t bytes = 0; bytes <= memory.data.size(); bytes += 7) {
    std::vector<uint8_t> sent(bytes), got(bytes);
    std::iota(sent.begin(), sent.end(), next++);
    ASSERT_EQ(source.room(), memory.data.size());
    source.write(sent.data(), bytes);
    EXPECT_EQ(source.unpublished(), wholeLines(bytes));
    EXPECT_EQ(sink.available(), 0u) << "not published";
    source.publish();
    EXPECT_EQ(sink.available(), wholeLines(bytes));
    EXPECT_EQ(source.isConsumed(source.position()), bytes == 0);
    sink.look(got.data(), bytes);
    sink.skip(bytes);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(source.room(), memory.data.size() - wholeLines(bytes)) << "not released";
    sink.release();
    EXPECT_TRUE(source.isConsumed(source.position()));
  }
}

/// Any position of the other side is an error, or room within the ring.
TEST(PairRing, DamagedPositions) {
  for (uint64_t damage : {uint64_t{1}, uint64_t{63}, uint64_t{513}, uint64_t{576}, ~uint64_t{0},
                          ~uint64_t{63}, uint64_t{1} << 63}) {
    SmallRing memory;
    RingSource source(memory.ring());
    RingSink sink(memory.ring());
    memory.head.bytes = damage;
    // Before the first byte may be where the ring has been: then there is less room.
    EXPECT_EQ(source.room().value_or(0), damage == ~uint64_t{63} ? 448u : 0u) << damage;
    memory.tail.bytes = damage;
    EXPECT_EQ(sink.available(), std::nullopt) << damage;
  }
}

/// Also when all has been written: a head beyond that is no end.
TEST(PairRing, ADamagedHeadBeyondWhatIsWritten) {
  SmallRing memory;
  RingSource source(memory.ring());
  const std::vector<uint8_t> sent(128);
  source.write(sent.data(), sent.size());
  source.publish();
  for (uint64_t head : {uint64_t{192}, uint64_t{1} << 40, ~uint64_t{63} - 64 * 64}) {
    memory.head.bytes = head;
    EXPECT_EQ(source.room(), std::nullopt) << head;
  }
  memory.head.bytes = 128;
  EXPECT_TRUE(source.room() && source.isConsumed(source.position()));
}

} // namespace
} // namespace occl::transfer
