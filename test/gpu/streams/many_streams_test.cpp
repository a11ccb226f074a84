// Many streams, each with a communicator of its own, which every rank comes to in an order of its
// own: all must end with right results, whatever has to wait for whom. Ranks are threads. Skipped
// where there is no device.
//
// OCCL_TEST_STREAMS: another number of streams in all of them. OCCL_TEST_SECONDS: how long the
// longest of them go on, unless they have had all their rounds. Without it several devices have to
// come to the end of them in kSeconds.
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/checked_rank.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace occl::gpu_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kRoundsAtOnce = 8; // between two looks at what was found
constexpr uint64_t kSeconds = 120;
/// Streams of a device that may all wait: fewer than connections.
constexpr uint32_t kMostWaiting = 31;

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

enum class Size { Small, Medium, Large };

uint64_t bytesOf(Size size) {
  return size == Size::Small ? 16 << 10 : size == Size::Medium ? 1 << 20 : 64 << 20;
}

/// As algorithms/device_plans.tsv has them.
plan::Plan planOf(Size size, uint32_t numRanks) {
  return size == Size::Small    ? oneShotInBlocks(numRanks, 4, plan::Protocol::LL)
         : size == Size::Medium ? oneShotInBlocks(numRanks, 64, plan::Protocol::LL128)
                                : directInBlocks(numRanks, 64);
}

class ManyStreams : public RanksOnDevices {
protected:
  /// Each rank has an order of the streams of its own, anew in each round.
  void run(uint32_t numRanks, uint32_t streams, const std::vector<Size> &sizes, uint64_t rounds) {
    const uint32_t ranksEach = (numRanks + devices - 1) / devices;
    const auto numStreams = static_cast<uint32_t>(
        fromEnvironment("OCCL_TEST_STREAMS", std::min(streams, kMostWaiting / ranksEach)));
    const uint64_t seed = fromEnvironment("OCCL_TEST_SEED", std::random_device()());
    std::fprintf(stderr, "OCCL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    const uint64_t largest = bytesOf(*std::ranges::max_element(sizes, {}, bytesOf));
    occlConfig_t config = smallConfig();
    config.arenaBytes = 256 << 20;
    config.heapBytes = 2 * largest + (64 << 20);
    config.streams = numStreams * ranksEach;
    std::vector<Case> cases;
    for (Size size : sizes) {
      cases.push_back(one(planOf(size, numRanks)));
      cases.back().count = bytesOf(size) / sizeof(float);
    }
    startMany(numStreams, numRanks, config, cases);
    std::vector<std::unique_ptr<CheckedRank>> ranks;
    for (uint32_t r = 0; r < numRanks; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      std::vector<occlComm_t> ofStreams;
      for (uint32_t s = 0; s < numStreams; ++s)
        ofStreams.push_back(commOf(r, s));
      ranks.push_back(
          std::make_unique<CheckedRank>(ofStreams, r, numRanks, numStreams, largest, true));
    }
    const auto end =
        Clock::now() + std::chrono::seconds(fromEnvironment("OCCL_TEST_SECONDS", kSeconds));
    bool isLate = false;
    uint64_t done = 0;
    // All ranks have the same rounds.
    std::barrier met(numRanks, [&]() noexcept { isLate = Clock::now() > end; });
    inThreads([&](uint32_t rank) -> std::string {
      std::mt19937_64 random(mixed(seed, rank + 1));
      std::vector<uint32_t> order(numStreams);
      std::iota(order.begin(), order.end(), 0);
      std::string wrong;
      for (uint64_t round = 0; round < rounds && !isLate && wrong.empty();) {
        const uint64_t last = std::min(round + kRoundsAtOnce, rounds);
        for (; round < last && wrong.empty(); ++round) {
          std::ranges::shuffle(order, random);
          for (uint32_t s : order) {
            const uint64_t key = mixed(seed, round, s);
            const Case &what = cases[key % cases.size()];
            if (wrong.empty())
              wrong = ranks[rank]->run(s, what, checkedOf(what, Expected::Sum), key);
          }
        }
        if (wrong.empty())
          wrong = ranks[rank]->finish();
        if (!wrong.empty())
          wrong = "round " + std::to_string(round) + ": " + wrong;
        else if (rank == 0)
          done = round;
        wrong.empty() ? met.arrive_and_wait() : met.arrive_and_drop();
      }
      return wrong;
    });
    std::fprintf(stderr, "%llu rounds of %u streams\n", static_cast<unsigned long long>(done),
                 numStreams);
    if (devices > 1 && !std::getenv("OCCL_TEST_SECONDS")) {
      EXPECT_EQ(done, rounds);
    }
    ranks.clear();
  }
};

TEST_F(ManyStreams, SmallOnesInRandomOrdersEnd) { run(2, 30, {Size::Small}, 1000); }
TEST_F(ManyStreams, LargeOnesInRandomOrdersEnd) { run(2, 24, {Size::Large}, 20); }

/// Of two calls that wait for each other's ranks each makes way for the other.
TEST_F(ManyStreams, AllSizesInRandomOrdersEnd) {
  run(2, 24, {Size::Small, Size::Medium, Size::Large}, 1000);
}
TEST_F(ManyStreams, AllSizesInRandomOrdersEndOnFourRanks) {
  run(4, 24, {Size::Small, Size::Medium, Size::Large}, 50);
}

} // namespace
} // namespace occl::gpu_test
