// Traces, end to end: they are JSON, nothing in them overlaps that should not, and they agree with
// the counters.
#include "runtime/api/testing/harness.h"

#include "plan/testing/example_plans.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

namespace occl::communicator::testing {
namespace {

using nlohmann::json;

constexpr uint32_t kRanks = 4, kJobs = 5, kIterations = 8;

std::string pathOf(uint32_t rank) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/trace." + std::to_string(rank);
}

/// All ranks may use it.
std::string pattern() { return std::string(std::getenv("TEST_TMPDIR")) + "/trace.%r"; }

json readTrace(uint32_t rank) {
  std::ifstream file(pathOf(rank));
  return json::parse(file);
}

/// Events by category, or by name for the moments.
std::map<std::string, uint64_t> countEvents(const json &trace) {
  std::map<std::string, uint64_t> counts;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] != "M")
      ++counts[event.value(event["ph"] == "i" ? "name" : "cat", "")];
  return counts;
}

/// Spans of a thread follow each other or lie within each other.
void expectNested(const json &trace) {
  std::map<uint64_t, std::vector<std::pair<double, double>>> threads;
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      double begin = event["ts"];
      threads[event["tid"]].emplace_back(begin, begin + event["dur"].get<double>());
    }
  constexpr double kRounding = 0.0015;
  for (auto &[thread, spans] : threads) {
    std::ranges::sort(spans, [](const auto &a, const auto &b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> ends;
    for (auto [begin, end] : spans) {
      while (!ends.empty() && ends.back() <= begin + kRounding)
        ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(end, ends.back() + kRounding) << "thread " << thread;
      }
      ends.push_back(end);
    }
  }
}

void reduceInConflictingOrders(occlComm_t comm, uint32_t r, std::vector<Job> &jobs) {
  std::atomic<uint32_t> called{0};
  occlCallback_t callback = [](occlRequest_t, occlResult_t, void *user) {
    static_cast<std::atomic<uint32_t> *>(user)->fetch_add(1);
  };
  for (uint32_t iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<occlRequest_t> requests;
    for (uint32_t j : latinOrder(kJobs, r, iteration)) {
      occlResult_t submitted = j == 0 ? jobs[0].submit(comm, r, nullptr, callback, &called)
                                      : jobs[j].submit(comm, r, &requests.emplace_back());
      ASSERT_EQ(submitted, occlSuccess) << occlGetLastError();
    }
    for (occlRequest_t request : requests)
      ASSERT_EQ(occlWait(comm, request), occlSuccess);
    while (called.load() != iteration + 1)
      std::this_thread::yield();
  }
}

/// What the counters say there must be.
std::map<std::string, uint64_t> expectedCounts(occlComm_t comm) {
  std::map<std::string, uint64_t> counts;
  for (uint64_t id = 0; id < kJobs; ++id) {
    occlBlockStats_t blocks{};
    blocks.size = sizeof blocks;
    EXPECT_EQ(occlCollectiveGetBlockStats(comm, id, OCCL_ALL_BLOCKS, &blocks), occlSuccess);
    counts["instruction"] += blocks.slices;
    counts["visit"] += blocks.contextLoads;
    counts["preempted"] += blocks.preemptions;
    for (uint64_t waits : blocks.waits)
      counts["wait"] += waits;
  }
  for (const char *moment : {"submitted", "announced by all", "started", "finished", "complete"})
    counts[moment] = kJobs * kIterations;
  return counts;
}

TEST(Trace, IsJsonAndAgreesWithTheCounters) {
  Ranks ranks(kRanks);
  std::vector<Job> jobs;
  for (uint64_t id = 0; id < kJobs; ++id)
    jobs.emplace_back(id, handleOf(plan::testing::ringAllReduce(kRanks)), 100 << (2 * id));
  ranks.run([&](uint32_t r) {
    ASSERT_EQ(occlTraceStart(ranks[r], pattern().c_str()), occlSuccess) << occlGetLastError();
  });
  EXPECT_EQ(occlTraceStart(ranks[0], "other"), occlInvalidArgument);
  ranks.run([&](uint32_t r) { reduceInConflictingOrders(ranks[r], r, jobs); });
  for (uint32_t r = 0; r < kRanks; ++r) {
    ASSERT_EQ(occlTraceStop(ranks[r]), occlSuccess) << occlGetLastError();
    json trace = readTrace(r);
    EXPECT_EQ(trace["otherData"]["dropped"], 0);
    EXPECT_EQ(trace["otherData"]["rank"], r);
    expectNested(trace);
    auto got = countEvents(trace);
    for (const auto &[name, count] : expectedCounts(ranks[r]))
      EXPECT_EQ(got[name], count) << name << " on rank " << r;
    // That the last one has returned may not be recorded yet.
    EXPECT_GE(got["callback"] + 1, kIterations);
    EXPECT_LE(got["callback"], kIterations);
  }
  EXPECT_EQ(occlTraceStop(ranks[0]), occlInvalidArgument);
}

TEST(Trace, ShowsTheWaitsOfAHang) {
  Ranks ranks(2);
  Job job(1, handleOf(plan::testing::oneShotAllReduce(2)), 10);
  ASSERT_EQ(occlTraceStart(ranks[0], pattern().c_str()), occlSuccess);
  std::vector<occlRequest_t> requests(2);
  ASSERT_EQ(job.submit(ranks[0], 0, &requests[0]), occlSuccess);
  std::string text(1 << 14, '\0');
  while (text.find("rank 0 waits for rank 1") == std::string::npos)
    ASSERT_EQ(occlCommReport(ranks[1], text.data(), text.size(), nullptr), occlSuccess);
  ASSERT_EQ(occlTraceStop(ranks[0]), occlSuccess);
  json trace = readTrace(0);
  EXPECT_EQ(countEvents(trace)["wait"], 1u);
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == "wait") {
      EXPECT_EQ(event["name"], "wait: its submission");
      EXPECT_EQ(event["args"]["for"], "rank 1");
    }
  ASSERT_EQ(job.submit(ranks[1], 1, &requests[1]), occlSuccess);
  for (uint32_t r : {0u, 1u})
    ASSERT_EQ(occlWait(ranks[r], requests[r]), occlSuccess);
}

} // namespace
} // namespace occl::communicator::testing
