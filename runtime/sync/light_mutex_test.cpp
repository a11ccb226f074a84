#include "runtime/sync/light_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace occl {
namespace {

TEST(LightMutex, OneAtATime) {
  constexpr uint32_t kThreads = 4, kRounds = 20000;
  LightMutex mutex;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (uint32_t i = 0; i < kRounds; ++i) {
        std::lock_guard lock(mutex);
        uint64_t seen = count;
        if (i % 1024 == 0)
          std::this_thread::yield(); // so that others find it taken, and sleep
        count = seen + 1;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(count, uint64_t{kThreads} * kRounds);
}

TEST(LightMutex, TryLockTakesOnlyAFreeOne) {
  LightMutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(LightMutex, ReleaseWakesAllThatSleep) {
  LightMutex mutex;
  std::atomic<uint32_t> through{0};
  mutex.lock();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      std::lock_guard lock(mutex);
      through.fetch_add(1);
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(through.load(), 0u);
  mutex.unlock();
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(through.load(), 3u);
}

} // namespace
} // namespace occl
