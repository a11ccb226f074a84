// Whatever happens to a communicator: when it has been destroyed, no thread, file or shared memory
// of it is left.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 3;

struct Resources {
  int64_t threads = 0, files = 0;
};

int64_t countEntries(const char *directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

Resources ownResources() {
  return {countEntries("/proc/self/task"), countEntries("/proc/self/fd")};
}

bool isInSharedMemory(const std::string &name) {
  return std::filesystem::exists(meetingPath(name));
}

/// After `scenario` there is what there was before.
void leavesNothing(const std::function<void()> &scenario) {
  scenario(); // what a process makes once: calibration, buffers of the library
  Resources before = ownResources();
  scenario();
  Resources after = ownResources();
  // A thread that has been joined may still be listed for a moment.
  for (auto end = std::chrono::steady_clock::now() + 10s;
       after.threads != before.threads && std::chrono::steady_clock::now() < end;
       after = ownResources())
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.files, before.files);
}

void submitOnAll(Job &job, const Ranks &ranks, occlCallback_t callback, void *user) {
  for (uint32_t r = 0; r < kRanks; ++r)
    ASSERT_EQ(job.submit(ranks[r], r, nullptr, callback, user), occlSuccess);
}

TEST(Leaks, AfterCallbacksThatBlock) {
  leavesNothing([] {
    std::atomic<uint32_t> inside{0};
    Job job(1, handleOf(ringAllReduce(kRanks)), 1000);
    Ranks ranks(kRanks);
    submitOnAll(
        job, ranks,
        [](occlRequest_t, occlResult_t, void *user) {
          static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
          std::this_thread::sleep_for(20ms);
        },
        &inside);
    for (uint32_t r = 0; r < kRanks; ++r)
      ranks.destroy(r);
    EXPECT_EQ(inside.load(), kRanks) << "destruction waits for callbacks";
  });
}

TEST(Leaks, AfterAnAbort) {
  leavesNothing([] {
    Job job(1, handleOf(ringAllReduce(kRanks)), 100000);
    Ranks ranks(kRanks);
    submitOnAll(
        job, ranks, [](occlRequest_t, occlResult_t, void *) {}, nullptr);
    EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
  });
}

TEST(Leaks, AfterADeadline) {
  leavesNothing([] {
    Job job(1, handleOf(ringAllReduce(kRanks)), 1000);
    Ranks ranks(kRanks, withTimeout(100));
    occlRequest_t request = 0;
    ASSERT_EQ(job.submit(ranks[0], 0, &request), occlSuccess);
    EXPECT_EQ(occlWait(ranks[0], request), occlTimeout);
  });
}

TEST(Leaks, AfterShrinkingWithoutWhoDoesNotCome) {
  leavesNothing([] {
    Ranks ranks(kRanks, withTimeout(200));
    ranks.run([&](uint32_t r) {
      occlComm_t smaller = nullptr;
      if (r != 2)
        occlCommShrink(ranks[r], nullptr, 0, nullptr, &smaller);
      EXPECT_EQ(occlCommDestroy(smaller), occlSuccess);
    });
  });
}

TEST(Leaks, OfAProcessWhosePeersNeverCome) {
  std::string name = jobName("leaks-alone");
  leavesNothing([&] {
    occlConfig_t config = withTimeout(50);
    occlComm_t comm = nullptr;
    EXPECT_EQ(occlCommInitRank(&comm, 2, 0, name.c_str(), &config), occlTimeout);
    EXPECT_FALSE(isInSharedMemory(name));
  });
}

TEST(Leaks, RemainsOfKilledRanksAreGoneWithTheNextStartOfThatName) {
  std::string name = jobName("leaks-killed");
  {
    Processes processes(2, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      occlCommInitRank(&comm, 3, rank, name.c_str(), nullptr); // the third never comes
      return "formed without a rank";
    });
    for (auto end = std::chrono::steady_clock::now() + 30s;
         !isInSharedMemory(name) && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    for (uint32_t r = 0; r < 2; ++r) {
      processes.kill(r);
      EXPECT_EQ(processes.join(r), -1);
    }
  }
  Processes processes(3, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, 3, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    return occlCommDestroy(comm) == occlSuccess ? "" : lastError("occlCommDestroy");
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0);
  EXPECT_FALSE(isInSharedMemory(name));
}

} // namespace
} // namespace occl::communicator::testing
