#include "runtime/cuda/partitioned/part_layout.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

/// Units of a message cover it, are aligned, and are not too many; also without elements.
TEST(PartLayout, UnitsCoverMessages) {
  for (const uint64_t count :
       {0ull, 1ull, 1000ull, 65536ull, 65537ull, 1ull << 25, (1ull << 30) + 1, 1ull << 40})
    for (const uint64_t perMessage : {1, 3}) {
      const partitioned::Shape shape = {7, count, DataType::Float32, perMessage};
      const device::Cut cut = cutOf(shape);
      EXPECT_EQ(cut.bytes, 7 * 4 * count);
      EXPECT_EQ(cut.messages, perMessage == 1 ? 7u : 3u);
      EXPECT_EQ(cut.messageBytes, perMessage * 4 * count);
      EXPECT_GE(cut.unitsOfMessage, 1u);
      EXPECT_LE(cut.unitsOfMessage, 1024u);
      EXPECT_EQ(cut.unitBytes % 128, 0u);
      EXPECT_GE(cut.unitsOfMessage * cut.unitBytes, cut.messageBytes);
      EXPECT_EQ(cut.unitsOfMessage == 1, cut.messageBytes <= 256 << 10);
    }
}

TEST(PartLayout, WordsDoNotOverlap) {
  for (const uint64_t perMessage : {1, 3}) {
    const device::Cut cut = cutOf({7, 1 << 20, DataType::Float32, perMessage});
    const PartLayout send(true, cut, 7), receive(false, cut, 7);
    EXPECT_GE(send.marked, sizeof(device::State));
    EXPECT_EQ(send.counted, send.marked + 7 * 8);
    EXPECT_EQ(send.units, send.counted + (perMessage == 1 ? 0 : 3 * 8));
    EXPECT_EQ(send.bytes, send.units + cut.units() * 8);
    EXPECT_EQ(receive.bytes, send.marked);
  }
}

} // namespace
} // namespace occl::cuda
