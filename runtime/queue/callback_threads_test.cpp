#include "runtime/queue/callback_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace occl::daemon {
namespace {

using namespace std::chrono_literals;

/// Something that callbacks can block on.
class Gate {
public:
  void open() {
    std::lock_guard lock(mutex);
    isOpen = true;
    changed.notify_all();
  }
  /// False if it stays closed for a minute.
  bool pass() {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [this] { return isOpen; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOpen = false;
};

using Body = std::function<void(uint32_t)>;

/// body(0), body(1) ... as jobs.
void addAll(CallbackThreads &threads, Body &body, uint32_t number) {
  ASSERT_TRUE(threads.ensureThread().ok());
  for (uint32_t entry = 0; entry < number; ++entry)
    threads.add(
        {[](void *owner, uint32_t job) { (*static_cast<Body *>(owner))(job); }, &body, entry});
}

TEST(CallbackThreads, BeginsJobsInOrder) {
  constexpr uint32_t kEntries = 1000;
  std::mutex mutex;
  std::vector<uint32_t> begun;
  Body body = [&](uint32_t entry) {
    std::lock_guard lock(mutex);
    begun.push_back(entry);
  };
  {
    CallbackThreads threads(8);
    addAll(threads, body, kEntries);
  }
  ASSERT_EQ(begun.size(), kEntries) << "all are run before the threads go";
  // Two may begin within the same microsecond when the first seemed to be blocked.
  uint32_t misplaced = 0;
  for (uint32_t entry = 0; entry < kEntries; ++entry)
    misplaced += begun[entry] != entry;
  EXPECT_LT(misplaced, kEntries / 10);
}

TEST(CallbackThreads, ACallbackMayWaitForALaterOne) {
  constexpr uint32_t kChain = 20;
  std::vector<Gate> gates(kChain + 1);
  std::atomic<uint32_t> passed{0};
  Body body = [&](uint32_t entry) {
    if (entry < kChain && gates[entry + 1].pass())
      passed.fetch_add(1);
    gates[entry].open();
  };
  {
    CallbackThreads threads(kChain + 1);
    addAll(threads, body, kChain + 1);
  }
  EXPECT_EQ(passed.load(), kChain);
}

TEST(CallbackThreads, AtTheLimitTheOthersWaitAndAddDoesNot) {
  constexpr uint32_t kMost = 3;
  Gate gate;
  std::atomic<uint32_t> ended{0};
  Body body = [&](uint32_t) {
    EXPECT_TRUE(gate.pass());
    ended.fetch_add(1);
  };
  {
    CallbackThreads threads(kMost);
    addAll(threads, body, 10);
    while (threads.numThreads() < kMost)
      std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(threads.numThreads(), kMost);
    EXPECT_EQ(ended.load(), 0u);
    gate.open();
  }
  EXPECT_EQ(ended.load(), 10u);
}

TEST(CallbackThreads, ThreadsThatAreLeftOverGo) {
  Gate gate;
  Body body = [&](uint32_t) { EXPECT_TRUE(gate.pass()); };
  CallbackThreads threads(8);
  addAll(threads, body, 5);
  while (threads.numThreads() < 5)
    std::this_thread::sleep_for(1ms);
  gate.open();
  for (auto end = std::chrono::steady_clock::now() + 60s;
       threads.numThreads() > 1 && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(threads.numThreads(), 1u) << "one stays";
}

TEST(CallbackThreads, AJobMayAddOthers) {
  std::atomic<uint32_t> run{0};
  Body body;
  CallbackThreads threads(4);
  body = [&](uint32_t) {
    if (run.fetch_add(1) < 100)
      addAll(threads, body, 1);
  };
  addAll(threads, body, 1);
  while (run.load() < 101)
    std::this_thread::yield();
}

} // namespace
} // namespace occl::daemon
