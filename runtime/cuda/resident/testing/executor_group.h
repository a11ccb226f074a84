// Ranks with executors of the host, and what tests of these do with them.
#pragma once

#include "runtime/cuda/resident/testing/host_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace occl::cuda::resident {

using namespace std::chrono_literals;

inline constexpr auto kLong = 60s;

/// Executors of the host are slow: they share few processors.
inline Settings hostSettings(uint32_t numExecutors) {
  Settings settings;
  settings.numExecutors = numExecutors;
  settings.idleLimit = 2'000'000;
  settings.stuckLimit = 20'000'000;
  return settings;
}

class Group {
public:
  Group(uint32_t numRanks, const Settings &settings) {
    for (uint32_t r = 0; r < numRanks; ++r)
      ranks.push_back(std::make_unique<HostRank>(settings));
  }
  HostCollective &add(const plan::Plan &plan, uint64_t count, uint32_t invocations) {
    collectives.push_back(std::make_unique<HostCollective>(
        plan, count, invocations, static_cast<uint32_t>(collectives.size())));
    return *collectives.back();
  }
  uint32_t numRanks() const { return static_cast<uint32_t>(ranks.size()); }
  HostCollective &collective(uint32_t number) { return *collectives[number]; }
  HostRank &operator[](uint32_t rank) { return *ranks[rank]; }

  /// Every rank submits all collectives, rank r beginning at the r-th, and waits for all of them,
  /// again and again. False: something was not complete in time.
  /// `pause`: between iterations, times 0 to 15.
  bool runInLatinSquareOrder(uint32_t iterations, std::chrono::milliseconds atMost,
                             std::chrono::microseconds pause = {}) {
    std::vector<std::thread> threads;
    std::vector<char> complete(numRanks(), false);
    for (uint32_t r = 0; r < numRanks(); ++r)
      threads.emplace_back([&, r] {
        for (uint32_t i = 0; i < iterations; ++i) {
          std::vector<uint64_t> requests;
          for (uint32_t c = 0; c < collectives.size(); ++c)
            requests.push_back(ranks[r]->submit(*collectives[(r + c) % collectives.size()], r));
          for (uint64_t request : requests)
            if (!ranks[r]->wait(request, atMost))
              return;
          std::this_thread::sleep_for(pause * (i % 16));
        }
        complete[r] = true;
      });
    for (std::thread &thread : threads)
      thread.join();
    return std::ranges::all_of(complete, [](char is) { return is != 0; });
  }
  void expectRight(uint32_t invocations) {
    for (auto &collective : collectives)
      for (uint32_t i = 0; i < invocations; ++i)
        EXPECT_TRUE(collective->isRight(i)) << "invocation " << i;
  }
  uint64_t total(Count what) {
    uint64_t sum = 0;
    for (auto &rank : ranks)
      sum += rank->side().total(what);
    return sum;
  }

  std::vector<std::unique_ptr<HostCollective>> collectives;

private:
  std::vector<std::unique_ptr<HostRank>> ranks; // end before the collectives
};

inline bool waitFor(const std::function<bool()> &holds) {
  for (auto end = std::chrono::steady_clock::now() + kLong; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(1ms))
    if (holds())
      return true;
  return false;
}

/// A request of each rank; executors of all that left are started again.
inline bool waitForBoth(Group &group, uint64_t mine, uint64_t theirs) {
  return waitFor([&] {
    group[0].side().restartIfOpen();
    group[1].side().restartIfOpen();
    return group[0].side().isComplete(mine) && group[1].side().isComplete(theirs);
  });
}

} // namespace occl::cuda::resident
