#include "support/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace occl::support {
namespace {

constexpr uint64_t kMuchWork = 1 << 20;

class Threads : public testing::Test {
public:
  ~Threads() override { setNumThreads(1); }
};

TEST_F(Threads, EachRoundRunsOnce) {
  for (unsigned threads : {1u, 2u, 7u}) {
    setNumThreads(threads);
    std::vector<int> times(1000);
    parallelFor(times.size(), kMuchWork, [&](size_t i) { ++times[i]; });
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), 1000);
  }
}

TEST_F(Threads, RoundsRunSideBySide) {
  setNumThreads(3);
  std::barrier all(3);
  parallelFor(3, kMuchWork, [&](size_t) { all.arrive_and_wait(); }); // hangs with fewer threads
}

TEST_F(Threads, LittleWorkStaysOnTheThread) {
  setNumThreads(4);
  std::vector<std::thread::id> ids(100);
  parallelFor(ids.size(), 1, [&](size_t i) { ids[i] = std::this_thread::get_id(); });
  EXPECT_EQ(std::set(ids.begin(), ids.end()), std::set{std::this_thread::get_id()});
}

TEST_F(Threads, UnlessAskedForThereAreNone) {
  std::vector<size_t> order;
  parallelFor(100, kMuchWork, [&](size_t i) { order.push_back(i); });
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  setNumThreads(0);
  parallelFor(100, kMuchWork, [&](size_t i) { order.push_back(i); });
  EXPECT_EQ(order.size(), 200u);
}

TEST_F(Threads, TheLowestRoundsExceptionIsThrown) {
  for (unsigned threads : {1u, 4u}) {
    setNumThreads(threads);
    try {
      parallelFor(64, kMuchWork, [](size_t i) {
        if (i >= 17)
          throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error &failure) {
      EXPECT_STREQ(failure.what(), "17");
    }
  }
}

} // namespace
} // namespace occl::support
