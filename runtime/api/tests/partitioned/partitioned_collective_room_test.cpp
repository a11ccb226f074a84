// Whether there is room for partitioned collectives is the same on all ranks, however little one of
// them needs: none goes on and waits for one that was refused.
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint64_t kCount = 1 << 16; // int32: 256 KiB

occlConfig_t withArena(uint64_t bytes, uint32_t timeoutMs = 20000) {
  occlConfig_t config = withTimeout(timeoutMs);
  config.arenaBytes = bytes;
  return config;
}

/// Broadcasts of rank 0, which alone needs room.
class PartitionedCollectiveRoom : public ::testing::Test {
protected:
  static occlResult_t make(const Ranks &ranks, uint32_t r, uint64_t rounds,
                           std::vector<int32_t> &values, Part &part) {
    const occlPartConfig_t config = {sizeof config, 0, rounds};
    values.assign(kCount, r == 0 ? 5 : -1);
    return occlPbroadcastInit(values.data(), 4, values.data(), 4, kCount, occlInt32, 0, ranks[r],
                              &config, &part);
  }
};

/// A request that is larger than the arena of the root.
TEST_F(PartitionedCollectiveRoom, IsRefusedOnAllRanks) {
  const Ranks ranks(2, withArena(512 << 10));
  std::array<std::vector<int32_t>, 2> values;
  std::array<Part, 2> parts;
  std::array<std::string, 2> texts;
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(make(ranks, r, 16, values[r], parts[r]), occlInvalidArgument);
    texts[r] = lastText();
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[1].find("of the arena of rank 0"), std::string::npos) << texts[1];
  // What was refused has no number: the next ones come together.
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(make(ranks, r, 1, values[r], parts[r]), occlSuccess) << lastText();
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess) << lastText();
  }
  ASSERT_EQ(occlPreadyRange(parts[0], 0, 3), occlSuccess);
  for (Part &part : parts)
    EXPECT_EQ(occlPwait(part), occlSuccess) << lastText();
  EXPECT_EQ(values[1], values[0]);
}

/// As many as have room at a time, which end in whatever orders they are started and marked.
TEST_F(PartitionedCollectiveRoom, IsForAllRequestsThatThereAre) {
  constexpr size_t kMost = 32;
  const Ranks ranks(2, withArena(4 << 20));
  std::array<std::array<std::vector<int32_t>, kMost>, 2> values;
  std::array<std::array<Part, kMost>, 2> parts;
  std::array<size_t, 2> made{};
  for (uint32_t r = 0; r < 2; ++r) {
    occlResult_t result = occlSuccess;
    while (made[r] < kMost &&
           (result = make(ranks, r, 4, values[r][made[r]], parts[r][made[r]])) == occlSuccess)
      ++made[r];
    EXPECT_EQ(result, occlAgain) << lastText();
    EXPECT_TRUE(hasText("of which the requests that there are need")) << lastText();
  }
  ASSERT_EQ(made[0], made[1]);
  ASSERT_GE(made[0], 2u);
  const size_t last = made[0] - 1;
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(parts[r][last].free(), occlSuccess) << lastText();
    EXPECT_EQ(make(ranks, r, 4, values[r][last], parts[r][last]), occlSuccess) << lastText();
  }
  ranks.run([&](uint32_t r) {
    for (size_t i = 0; i <= last; ++i)
      ASSERT_EQ(occlPstart(parts[r][r == 0 ? i : last - i]), occlSuccess) << lastText();
    for (size_t i = last + 1; r == 0 && i-- > 0;)
      ASSERT_EQ(occlPreadyRange(parts[0][i], 0, 3), occlSuccess);
    for (size_t i = 0; i <= last; ++i)
      EXPECT_EQ(occlPwait(parts[r][i]), occlSuccess) << lastText();
  });
  for (size_t i = 0; i <= last; ++i)
    EXPECT_EQ(values[1][i], values[0][i]);
}

} // namespace
} // namespace occl::communicator::testing
