// Whether there is room for partitioned collectives is the same on all ranks, however little one of
// them needs: none goes on and waits for one that was refused.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
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
                           std::vector<int32_t> &values, occlPart_t *part) {
    const occlPartConfig_t config = {sizeof config, 0, rounds};
    values.assign(kCount, r == 0 ? 5 : -1);
    return occlPbroadcastInit(values.data(), 4, values.data(), 4, kCount, occlInt32, 0, ranks[r],
                              &config, part);
  }
};

/// A request that is larger than the arena of the root.
TEST_F(PartitionedCollectiveRoom, IsRefusedOnAllRanks) {
  const Ranks ranks(2, withArena(512 << 10));
  std::array<std::vector<int32_t>, 2> values;
  std::array<Part, 2> parts;
  std::array<std::string, 2> texts;
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(make(ranks, r, 16, values[r], &parts[r]), occlInvalidArgument);
    texts[r] = lastText();
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[1].find("of the arena of rank 0"), std::string::npos) << texts[1];
  // What was refused has no number: the next ones come together.
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(make(ranks, r, 1, values[r], &parts[r]), occlSuccess) << lastText();
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
           (result = make(ranks, r, 4, values[r][made[r]], &parts[r][made[r]])) == occlSuccess)
      ++made[r];
    EXPECT_EQ(result, occlAgain) << lastText();
    EXPECT_TRUE(hasText("of which the requests that there are need")) << lastText();
  }
  ASSERT_EQ(made[0], made[1]);
  ASSERT_GE(made[0], 2u);
  const size_t last = made[0] - 1;
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(parts[r][last].free(), occlSuccess) << lastText();
    EXPECT_EQ(make(ranks, r, 4, values[r][last], &parts[r][last]), occlSuccess) << lastText();
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

/// A rank whose arena is taken by calls that the other has not begun: all-reduces of ids of their
/// own.
class PartitionedCollectiveLater : public PartitionedCollectiveRoom {
protected:
  void fill(const Ranks &ranks) {
    sums[0].clear();
    requests.clear();
    occlResult_t result = occlSuccess;
    while (result == occlSuccess) {
      occlRequest_t request = 0;
      result = start(ranks, 0, requests.size(), request);
      if (result == occlSuccess)
        requests.push_back(request);
    }
    ASSERT_EQ(result, occlAgain) << lastText();
    ASSERT_FALSE(requests.empty());
  }
  /// The other rank begins them, and both wait.
  void drain(const Ranks &ranks) {
    sums[1].clear();
    ranks.run([&](uint32_t r) {
      for (size_t i = 0; i < requests.size(); ++i) {
        occlRequest_t request = requests[i];
        if (r == 1) {
          ASSERT_EQ(start(ranks, 1, i, request), occlSuccess) << lastText();
        }
        EXPECT_EQ(occlWait(ranks[r], request), occlSuccess) << lastText();
        EXPECT_EQ(std::ranges::count(sums[r][i], 6), kCount);
      }
    });
  }
  occlResult_t start(const Ranks &ranks, uint32_t r, uint64_t id, occlRequest_t &request) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.plan = ring.get();
    call.sendBuffer = terms.data();
    call.recvBuffer = sums[r].emplace_back(kCount).data();
    call.count = kCount;
    call.dataType = occlInt32;
    call.id = id;
    return occlStart(ranks[r], &call, nullptr, nullptr, &request);
  }
  /// Rank 0's epoch has no room, and all is marked.
  void begin(const Ranks &ranks) {
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_EQ(make(ranks, r, 4, values[r], &parts[r]), occlSuccess) << lastText();
    fill(ranks);
    for (occlPart_t part : parts)
      ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
    ASSERT_EQ(occlPreadyRange(parts[0], 0, 3), occlSuccess) << lastText();
    EXPECT_EQ(occlPtest(parts[0]), occlInProgress);
  }

  const PlanHandle ring = handleOf(plan::testing::ringAllReduce(2));
  const std::vector<int32_t> terms = std::vector<int32_t>(kCount, 3);
  std::array<std::vector<std::vector<int32_t>>, 2> sums;
  std::vector<occlRequest_t> requests;
  std::array<std::vector<int32_t>, 2> values;
  std::array<occlPart_t, 2> parts{}; // the communicators' ends free those that are left
};

/// Who has begun waits for its data, and the other one begins once there is room, though its
/// program does something else.
TEST_F(PartitionedCollectiveLater, BeginsByItself) {
  const Ranks ranks(2, withArena(1 << 20));
  begin(ranks);
  const std::string report = reportOf(ranks[0]);
  EXPECT_NE(report.find("partitioned broadcast, request 0, epoch 1"), std::string::npos) << report;
  std::thread waiting([&] { EXPECT_EQ(occlPwait(parts[1]), occlSuccess) << lastText(); });
  drain(ranks);
  waiting.join();
  EXPECT_EQ(values[1], values[0]);
  EXPECT_EQ(occlPwait(parts[0]), occlSuccess) << lastText();
}

TEST_F(PartitionedCollectiveLater, BeginsWhenItsProgramTestsOrWaits) {
  for (bool waits : {false, true}) {
    const Ranks ranks(2, withArena(1 << 20));
    begin(ranks);
    std::thread root([&] {
      occlResult_t result = occlInProgress;
      while (!waits && (result = occlPtest(parts[0])) == occlInProgress)
        std::this_thread::yield();
      EXPECT_EQ(waits ? occlPwait(parts[0]) : result, occlSuccess) << lastText();
    });
    drain(ranks);
    root.join();
    EXPECT_EQ(occlPwait(parts[1]), occlSuccess) << lastText();
    EXPECT_EQ(values[1], values[0]);
    for (occlPart_t part : parts)
      EXPECT_EQ(occlPfree(part), occlSuccess);
  }
}

/// What never begins has not succeeded, though all is marked.
TEST_F(PartitionedCollectiveLater, HasADeadline) {
  for (bool waits : {false, true}) {
    const Ranks ranks(2, withArena(1 << 20, 300));
    begin(ranks);
    occlResult_t result = occlInProgress;
    while (!waits && (result = occlPtest(parts[0])) == occlInProgress)
      std::this_thread::yield();
    EXPECT_EQ(waits ? occlPwait(parts[0]) : result, occlTimeout) << lastText();
    EXPECT_EQ(occlPstart(parts[0]), occlTimeout);
    EXPECT_EQ(occlPwait(parts[1]), occlTimeout);
    for (occlPart_t part : parts)
      EXPECT_EQ(occlPfree(part), occlSuccess) << lastText();
  }
}

TEST_F(PartitionedCollectiveLater, EndsWithItsCommunicator) {
  for (bool aborts : {false, true}) {
    const Ranks ranks(2, withArena(1 << 20, aborts ? 20000 : 300));
    begin(ranks);
    if (!aborts)
      continue;
    ASSERT_EQ(occlCommAbort(ranks[1]), occlSuccess);
    EXPECT_EQ(occlPwait(parts[0]), occlAborted);
    for (occlPart_t part : parts)
      while (occlPfree(part) != occlSuccess)
        std::this_thread::yield();
  }
}

/// As many requests as fill the arena to its last byte.
class PartitionedCollectiveHomes : public PartitionedCollectiveLater {
protected:
  void SetUp() override {
    constexpr uint64_t kRings = 1 << 20, kLeast = 8 << 20; // from which on rings have so much
    const uint64_t each = roomOfOne();
    number = kLeast / each + 1;
    ranks = std::make_unique<Ranks>(2, withArena(number * each + kRings));
    for (uint32_t r = 0; r < 2; ++r) {
      data[r].resize(number + 1);
      all[r] = std::vector<Part>(number + 1);
      for (size_t i = 0; i < number; ++i)
        ASSERT_EQ(make(*ranks, r, 4, data[r][i], &all[r][i]), occlSuccess) << lastText();
      ASSERT_EQ(make(*ranks, r, 4, data[r][number], &all[r][number]), occlAgain);
    }
  }
  void TearDown() override {
    for (size_t i = 0; i < number; ++i)
      EXPECT_EQ(data[1][i], data[0][i]);
    for (std::vector<Part> &each : all)
      each.clear();
  }
  static uint64_t roomOfOne() {
    const Ranks ranks(2, withArena(4 << 20));
    std::vector<Part> parts(64);
    std::vector<std::vector<int32_t>> values(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      if (make(ranks, 0, 4, values[i], &parts[i]) != occlSuccess)
        break;
    const std::string text = lastText(), before = "needs up to ";
    return std::stoull(text.substr(text.find(before) + before.size()));
  }
  void startBut(uint32_t r, size_t one) {
    for (size_t i = 0; i < number; ++i)
      if (i != one) {
        ASSERT_EQ(occlPstart(all[r][i]), occlSuccess) << lastText();
      }
  }
  void markBut(size_t one) {
    for (size_t i = 0; i < number; ++i)
      if (i != one) {
        ASSERT_EQ(occlPreadyRange(all[0][i], 0, 3), occlSuccess) << lastText();
      }
  }
  void waitForBut(uint32_t r, size_t one) {
    for (size_t i = 0; i < number; ++i)
      if (i != one) {
        EXPECT_EQ(occlPwait(all[r][i]), occlSuccess) << lastText();
      }
  }

  size_t number = 0;
  std::unique_ptr<Ranks> ranks;
  std::array<std::vector<std::vector<int32_t>>, 2> data;
  std::array<std::vector<Part>, 2> all;
};

/// A call lies before all epochs but one, and ends: that one begins though no hole is as large.
TEST_F(PartitionedCollectiveHomes, HaveNoHoles) {
  std::array<occlRequest_t, 2> call{};
  ASSERT_EQ(start(*ranks, 0, 0, call[0]), occlSuccess) << lastText();
  startBut(0, 0);
  ASSERT_EQ(start(*ranks, 1, 0, call[1]), occlSuccess) << lastText();
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(occlWait((*ranks)[r], call[r]), occlSuccess) << lastText();
  // The marks of the others come when it has ended.
  ASSERT_EQ(occlPstart(all[0][0]), occlSuccess) << lastText();
  ASSERT_EQ(occlPreadyRange(all[0][0], 0, 3), occlSuccess) << lastText();
  ASSERT_EQ(occlPstart(all[1][0]), occlSuccess) << lastText();
  for (uint32_t r : {1, 0})
    ASSERT_EQ(occlPwait(all[r][0]), occlSuccess) << lastText();
  startBut(1, 0);
  markBut(0);
  for (uint32_t r : {1, 0})
    waitForBut(r, 0);
}

/// One that is an epoch ahead of the other rank takes none of what others need.
TEST_F(PartitionedCollectiveHomes, HoldAnEpochEach) {
  for (int epoch = 1; epoch <= 2; ++epoch) {
    ASSERT_EQ(occlPstart(all[0][0]), occlSuccess) << lastText();
    ASSERT_EQ(occlPreadyRange(all[0][0], 0, 3), occlSuccess) << lastText();
    if (epoch == 1) {
      ASSERT_EQ(occlPwait(all[0][0]), occlSuccess) << lastText();
    }
  }
  startBut(0, 0);
  startBut(1, 0);
  // The marks of the others come when the last one has ended.
  const size_t last = number - 1;
  ASSERT_EQ(occlPreadyRange(all[0][last], 0, 3), occlSuccess) << lastText();
  ASSERT_EQ(occlPwait(all[1][last]), occlSuccess) << lastText();
  for (size_t i = 1; i < last; ++i)
    ASSERT_EQ(occlPreadyRange(all[0][i], 0, 3), occlSuccess) << lastText();
  for (uint32_t r : {1, 0})
    waitForBut(r, 0);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    ASSERT_EQ(occlPstart(all[1][0]), occlSuccess) << lastText();
    EXPECT_EQ(occlPwait(all[1][0]), occlSuccess) << lastText();
  }
  EXPECT_EQ(occlPwait(all[0][0]), occlSuccess) << lastText();
}

/// A call that was in what requests have, when there was nothing else, is beside it the next time:
/// so another rank may make it when it has waited for their epochs.
TEST_F(PartitionedCollectiveLater, CallsLeaveItWhenThereIsOtherRoom) {
  const Ranks ranks(2, withArena(1 << 20));
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(make(ranks, r, 4, values[r], &parts[r]), occlSuccess) << lastText();
  fill(ranks);
  ASSERT_GE(requests.size(), 2u);
  drain(ranks);
  const uint64_t last = requests.size() - 1;
  std::array<occlRequest_t, 2> calls{};
  ASSERT_EQ(start(ranks, 0, last, calls[0]), occlSuccess) << lastText();
  for (occlPart_t part : parts)
    ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
  ASSERT_EQ(occlPreadyRange(parts[0], 0, 3), occlSuccess) << lastText();
  for (uint32_t r : {1, 0})
    ASSERT_EQ(occlPwait(parts[r]), occlSuccess) << lastText();
  ASSERT_EQ(start(ranks, 1, last, calls[1]), occlSuccess) << lastText();
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(occlWait(ranks[r], calls[r]), occlSuccess) << lastText();
}

} // namespace
} // namespace occl::communicator::testing
