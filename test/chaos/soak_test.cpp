// Many operations in random orders on one set of communicators: memory stays as it is. Environment:
// OCCL_SOAK_OPERATIONS, all ranks together; `make soak` runs a million.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/resident_memory.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 8, kJobs = 8;
constexpr uint64_t kOperationsInTest = 20000 / kSlowness;

uint64_t operations() {
  const char *given = std::getenv("OCCL_SOAK_OPERATIONS");
  return given ? std::strtoull(given, nullptr, 10) : kOperationsInTest;
}

uint64_t countFiles() {
  auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<uint64_t>(std::distance(begin(entries), end(entries)));
}

/// Lines of /proc/self/maps: other processes use /dev/shm as well.
uint64_t countMappings() {
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("/dev/shm") != std::string::npos || line.find("memfd") != std::string::npos;
  return count;
}

/// Submits all jobs in a random order and waits for them, again and again; the first error.
occlResult_t submitAll(std::vector<Job> &jobs, occlComm_t comm, uint32_t rank, uint64_t iterations,
                       std::mt19937 &random) {
  std::vector<uint32_t> order(kJobs);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t i = 0; i < iterations; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<occlRequest_t> requests;
    for (uint32_t j : order) {
      requests.emplace_back();
      occlResult_t result = submitOnceFree(jobs[j], comm, rank, &requests.back());
      if (result != occlSuccess)
        return result;
    }
    for (occlRequest_t request : requests)
      if (occlResult_t result = occlWait(comm, request); result != occlSuccess)
        return result;
    for (Job &job : jobs)
      EXPECT_EQ(job.check(rank), "");
  }
  return occlSuccess;
}

std::vector<Job> makeJobs() {
  std::vector<Job> jobs;
  PlanHandle plans[] = {handleOf(plan::testing::ringAllReduce(kRanks)),
                        handleOf(plan::testing::oneShotAllReduce(kRanks)),
                        handleOf(plan::testing::twoShotAllReduce(kRanks))};
  for (uint32_t j = 0; j < kJobs; ++j)
    jobs.emplace_back(j, plans[j % 3], uint64_t{64} << (j / 2), DataType::Int32);
  return jobs;
}

TEST(Soak, MemoryStaysAsItIs) {
  std::vector<Job> jobs = makeJobs();
  const uint64_t mappedBefore = countMappings(), filesBefore = countFiles();
  {
    Ranks ranks(kRanks);
    const uint64_t iterations = std::max<uint64_t>(operations() / (kRanks * kJobs), 20);
    std::vector<std::mt19937> random;
    for (uint32_t r = 0; r < kRanks; ++r)
      random.emplace_back(r + 1);
    auto run = [&](uint64_t times) {
      ranks.run(
          [&](uint32_t r) {
            EXPECT_EQ(submitAll(jobs, ranks[r], r, times, random[r]), occlSuccess)
                << occlGetLastError();
          },
          std::chrono::hours(10));
    };
    run(iterations / 2); // until the peak of what is in flight has been reached
    uint64_t before = residentKilobytes();
    run(iterations - iterations / 2);
    uint64_t after = residentKilobytes();
    // A sanitizer keeps some bytes for each byte that is touched, and its test is short.
    constexpr uint64_t kAllowed = (8 << 10) * (kSlowness > 1 ? 8 : 1);
    EXPECT_LT(after, before + kAllowed) << "memory has grown from " << before << " KiB";
    std::printf("%llu operations, %llu KiB in the middle and %llu KiB at the end\n",
                static_cast<unsigned long long>(iterations * kRanks * kJobs),
                static_cast<unsigned long long>(before), static_cast<unsigned long long>(after));
  }
  EXPECT_LE(countMappings(), mappedBefore) << "shared memory is left behind";
  EXPECT_LE(countFiles(), filesBefore) << "files are left open";
}

TEST(Soak, WithoutPreemptionItIsADeadlock) {
  std::vector<Job> jobs = makeJobs();
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.preemption = 2;
  Ranks ranks(kRanks, config);
  ranks.run([&](uint32_t r) {
    std::mt19937 random(r + 1);
    EXPECT_EQ(submitAll(jobs, ranks[r], r, 100, random), occlDeadlock) << occlGetLastError();
  });
}

} // namespace
} // namespace occl::communicator::testing
