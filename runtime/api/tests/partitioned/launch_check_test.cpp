// Which kernels may wait inside for what (occl_device_launch.hpp): the grids that fit, and the
// texts of refusals.
#include "runtime/api/occl_device_launch.hpp"

#include <gtest/gtest.h>

#include <string>

namespace occl::device {
namespace {

occlPartInfo_t transfer() {
  occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
  info.messages = 1;
  return info;
}

occlPartInfo_t collective(uint64_t rounds) {
  occlPartInfo_t info = OCCL_PART_INFO_INITIALIZER;
  info.rounds = rounds;
  info.arrivesEarly = rounds > 1 ? 1 : 0;
  return info;
}

Launch launch(uint64_t blocks, uint32_t blocksPerMultiprocessor = 2,
              uint32_t multiprocessors = 132) {
  return {blocks, blocksPerMultiprocessor, multiprocessors};
}

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(LaunchCheck, MarksNeedNothing) {
  EXPECT_EQ(checkLaunch(transfer(), Waits::Never, launch(1'000'000)), "");
  EXPECT_EQ(checkLaunch(collective(1), Waits::Never, launch(1'000'000)), "");
  EXPECT_EQ(checkLaunch(collective(1), Waits::Never, launch(1, 0)), "");
}

TEST(LaunchCheck, WaitsWithABoundMayBeOfAnyGrid) {
  EXPECT_EQ(checkLaunch(transfer(), Waits::Bounded, launch(1'000'000)), "");
  EXPECT_EQ(checkLaunch(collective(2), Waits::Bounded, launch(1'000'000)), "");
}

TEST(LaunchCheck, TransfersNeedAllBlocksOnTheDevice) {
  EXPECT_EQ(checkLaunch(transfer(), Waits::Unbounded, launch(264)), "");
  const std::string why = checkLaunch(transfer(), Waits::Unbounded, launch(265));
  EXPECT_TRUE(has(why, "has 265 thread blocks, of which 264 are on the device at a time (2 on each "
                       "of 132 multiprocessors)"))
      << why;
  EXPECT_TRUE(has(why, "Launch fewer, or wait with a bound")) << why;
  // A kernel that a multiprocessor has no room for at all.
  EXPECT_TRUE(has(checkLaunch(transfer(), Waits::Unbounded, launch(1, 0)), "of which 0 are"));
}

/// More blocks than multiprocessors would leave none free, however many fit on one.
TEST(LaunchCheck, CollectivesNeedMultiprocessorsThatAreFree) {
  EXPECT_EQ(checkLaunch(collective(4), Waits::Unbounded, launch(128)), "");
  const std::string why = checkLaunch(collective(4), Waits::Unbounded, launch(129));
  EXPECT_TRUE(has(why, "has 129 thread blocks, of which 128 are")) << why;
  EXPECT_TRUE(has(why, "but one each beside a collective, which needs 4")) << why;
  EXPECT_TRUE(has(checkLaunch(collective(4), Waits::Unbounded, launch(1, 2, 4)), "of which 0 are"));
  EXPECT_TRUE(has(checkLaunch(collective(4), Waits::Unbounded, launch(1, 0)), "of which 0 are"));
}

/// Where nothing arrives before all is marked, also a bounded wait is for nothing.
TEST(LaunchCheck, NoWaitIsForACollectiveOfOneRound) {
  for (Waits waits : {Waits::Bounded, Waits::Unbounded}) {
    const std::string why = checkLaunch(collective(1), waits, launch(1));
    EXPECT_TRUE(has(why, "has one round")) << why;
    EXPECT_TRUE(has(why, "occlPwaitOn")) << why;
  }
}

/// One message is no reason: who receives marks nothing.
TEST(LaunchCheck, OneMessageMayBeWaitedFor) {
  EXPECT_EQ(checkLaunch(transfer(), Waits::Unbounded, launch(1)), "");
}

} // namespace
} // namespace occl::device
