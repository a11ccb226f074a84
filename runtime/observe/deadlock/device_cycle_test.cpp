#include "runtime/observe/deadlock/device_cycle.h"

#include <gtest/gtest.h>

#include <array>

namespace occl::daemon {
namespace {

using transport::DeviceId;
using transport::DeviceWait;

DeviceWait waitOf(DeviceId device, std::vector<DeviceId> waitsFor, uint64_t saidAt = 1) {
  return {device, saidAt, 0, 0, std::move(waitsFor), {}};
}

KnownDevices knowing(const std::vector<DeviceWait> &waits) {
  KnownDevices known;
  for (const DeviceWait &wait : waits)
    known.hear(wait);
  return known;
}

std::vector<DeviceId> idsOf(const std::vector<DeviceWait> &waits) {
  std::vector<DeviceId> ids;
  for (const DeviceWait &wait : waits)
    ids.push_back(wait.device);
  return ids;
}

using Ids = std::vector<DeviceId>;

TEST(KnownDevices, StuckAreThoseWhoseWaitsAllLeadToStuckOnes) {
  KnownDevices known = knowing({waitOf(1, {2}), waitOf(2, {1}), waitOf(3, {1}), waitOf(4, {1, 5}),
                                waitOf(5, {}), waitOf(6, {99})});
  EXPECT_EQ(idsOf(known.stuckWith(1)), (Ids{1, 2}));
  EXPECT_EQ(idsOf(known.stuckWith(3)), (Ids{1, 2, 3})) << "behind a cycle";
  EXPECT_TRUE(known.stuckWith(4).empty()) << "one of its waits may end";
  EXPECT_TRUE(known.stuckWith(5).empty());
  EXPECT_TRUE(known.stuckWith(6).empty()) << "for a device that has said nothing";
  EXPECT_TRUE(known.stuckWith(7).empty());
}

TEST(KnownDevices, TheLatestWordCounts) {
  KnownDevices known = knowing({waitOf(1, {2}), waitOf(2, {1}, 5), waitOf(2, {}, 4)});
  EXPECT_EQ(known.stuckWith(1).size(), 2u) << "what is older is no news";
  known.hear(waitOf(2, {}, 6));
  EXPECT_TRUE(known.stuckWith(1).empty()) << "2 moves again";
  known.hear(waitOf(2, {1}, 7));
  EXPECT_EQ(known.stuckWith(1).size(), 2u);
  known.forgetBefore(2);
  EXPECT_TRUE(known.stuckWith(1).empty()) << "1 says nothing any more";
}

TEST(KnownDevices, TellTheirOwnFirstAndOthersThatAreStuck) {
  KnownDevices known =
      knowing({waitOf(1, {2}, 3), waitOf(2, {}, 9), waitOf(3, {1}, 5), waitOf(4, {1}, 7)});
  EXPECT_EQ(idsOf(known.toTell(1)), (Ids{1, 4, 3}));
  EXPECT_EQ(idsOf(known.toTell(2)), (Ids{2, 4, 3, 1})) << "its own, though it moves";
}

TEST(CycleOf, BeginsWithTheLowestAndLeavesOutTheWayToIt) {
  KnownDevices known = knowing({waitOf(5, {3}), waitOf(3, {4}), waitOf(4, {2, 5}), waitOf(2, {3})});
  EXPECT_EQ(idsOf(cycleOf(known.stuckWith(5), 5)), (Ids{2, 3, 4}));
  EXPECT_EQ(idsOf(cycleOf(known.stuckWith(4), 4)), (Ids{2, 3, 4}));
}

/// A ring of devices, each of which hears its two neighbours only.
TEST(KnownDevices, HearOfACycleThatIsLongerThanTheyCanSee) {
  constexpr DeviceId kDevices = 7;
  std::array<KnownDevices, kDevices> each;
  for (DeviceId d = 0; d < kDevices; ++d)
    each[d].hear(waitOf(d + 1, {(d + 1) % kDevices + 1}));
  for (DeviceId round = 0; round < kDevices; ++round)
    for (DeviceId d = 0; d < kDevices; ++d)
      for (DeviceId neighbour : {(d + 1) % kDevices, (d + kDevices - 1) % kDevices})
        for (const DeviceWait &wait : each[neighbour].toTell(neighbour + 1))
          each[d].hear(wait);
  for (DeviceId d = 0; d < kDevices; ++d)
    EXPECT_EQ(idsOf(cycleOf(each[d].stuckWith(d + 1), d + 1)), (Ids{1, 2, 3, 4, 5, 6, 7}));
}

TEST(DeviceCycleDetector, WantsAllToHaveLookedAgainSinceItKnewOfAll) {
  auto stuck = [](uint64_t since2, uint64_t looked1, uint64_t looked2) {
    return std::vector<DeviceWait>{{1, 0, 10, looked1, {2}, {}}, {2, 0, since2, looked2, {1}, {}}};
  };
  constexpr uint64_t kSoon = 1'000'000;
  DeviceCycleDetector detector;
  EXPECT_TRUE(detector.update(stuck(20, 30, 30), 1, 100).empty());
  EXPECT_TRUE(detector.update(stuck(20, kSoon, 50), 1, 2 * kSoon).empty())
      << "2 has looked before it was known of";
  EXPECT_TRUE(detector.update(stuck(40, kSoon, kSoon), 1, 3 * kSoon).empty()) << "2 had moved";
  EXPECT_TRUE(detector.update(stuck(40, 3 * kSoon, 5 * kSoon), 1, 4 * kSoon).empty())
      << "1 has not looked since then";
  EXPECT_TRUE(detector.update({}, 1, 5 * kSoon).empty());
  EXPECT_TRUE(detector.update(stuck(40, 5 * kSoon, 5 * kSoon), 1, 5 * kSoon).empty())
      << "1 was not stuck in between";
  EXPECT_EQ(idsOf(detector.update(stuck(40, 6 * kSoon, 6 * kSoon), 1, 6 * kSoon)), (Ids{1, 2}));
}

} // namespace
} // namespace occl::daemon
