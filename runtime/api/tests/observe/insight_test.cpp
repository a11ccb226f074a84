// Counters and reports, end to end.
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include "plan/testing/example_plans.h"
#include "runtime/api/occl.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kId = 7;

occlCollectiveStats_t statsOf(occlComm_t comm, uint64_t id = kId) {
  occlCollectiveStats_t stats{};
  stats.size = sizeof stats;
  EXPECT_EQ(occlCollectiveGetStats(comm, id, &stats), occlSuccess) << occlGetLastError();
  return stats;
}

occlBlockStats_t blocksOf(occlComm_t comm, uint32_t block = OCCL_ALL_BLOCKS, uint64_t id = kId) {
  occlBlockStats_t stats{};
  stats.size = sizeof stats;
  EXPECT_EQ(occlCollectiveGetBlockStats(comm, id, block, &stats), occlSuccess)
      << occlGetLastError();
  return stats;
}

/// Reports until one has `text`; the test's own time limit ends the wait.
std::string awaitReport(occlComm_t comm, const std::string &text) {
  for (;;)
    if (std::string report = reportOf(comm); report.find(text) != std::string::npos)
      return report;
}

void reduce(occlComm_t comm, Job &job, uint32_t rank) {
  occlRequest_t request = 0;
  ASSERT_EQ(job.submit(comm, rank, &request), occlSuccess) << occlGetLastError();
  ASSERT_EQ(occlWait(comm, request), occlSuccess) << occlGetLastError();
}

TEST(Busy, IsWhoHasSomethingInFlight) {
  Ranks ranks(2);
  const auto isBusy = [&](uint32_t rank) {
    int busy = -1;
    EXPECT_EQ(occlCommIsBusy(ranks[rank], &busy), occlSuccess) << occlGetLastError();
    return busy;
  };
  EXPECT_EQ(occlCommIsBusy(ranks[0], nullptr), occlInvalidArgument);
  EXPECT_EQ(occlCommIsBusy(nullptr, nullptr), occlInvalidArgument);
  Job job(kId, handleOf(plan::testing::oneShotAllReduce(2)), 100);
  occlRequest_t requests[2];
  EXPECT_EQ(isBusy(0), 0);
  ASSERT_EQ(job.submit(ranks[0], 0, &requests[0]), occlSuccess) << occlGetLastError();
  EXPECT_EQ(isBusy(0), 1);
  EXPECT_EQ(isBusy(1), 0);
  ASSERT_EQ(job.submit(ranks[1], 1, &requests[1]), occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(occlWait(ranks[r], requests[r]), occlSuccess) << occlGetLastError();
  EXPECT_EQ(isBusy(0), 0);
  EXPECT_EQ(isBusy(1), 0);
}

TEST(Counters, ARankOnItsOwn) {
  Ranks ranks(1);
  plan::Plan plan = plan::testing::oneShotAllReduce(1);
  Job job(kId, handleOf(plan), 100);
  constexpr uint64_t kTimes = 5;
  for (uint64_t i = 0; i < kTimes; ++i)
    reduce(ranks[0], job, 0);
  occlCollectiveStats_t stats = statsOf(ranks[0]);
  EXPECT_EQ(stats.size, sizeof stats);
  EXPECT_EQ(stats.numBlocks, 1u);
  EXPECT_EQ(stats.submitted, kTimes);
  EXPECT_EQ(stats.completed, kTimes);
  EXPECT_EQ(stats.failed, 0u);
  EXPECT_EQ(stats.announceNs, 0u) << "it needs nobody";
  EXPECT_EQ(stats.queueLengths, 0u) << "it came into an empty queue each time";
  EXPECT_GT(stats.finishNs, 0u);
  EXPECT_GE(stats.finishNs, stats.startNs);
  EXPECT_LE(stats.longestFinishNs, stats.finishNs);
  occlBlockStats_t block = blocksOf(ranks[0], 0);
  EXPECT_EQ(block.contextLoads, kTimes);
  EXPECT_EQ(block.contextSaves, kTimes);
  EXPECT_EQ(block.slices, kTimes * plan.instructions.size());
  EXPECT_EQ(block.preemptions, 0u);
  EXPECT_EQ(block.queueLengths, kTimes);
  EXPECT_EQ(block.longestQueue, 1u);
  EXPECT_EQ(block.bytesSent + block.bytesReceived, 0u);
  for (uint32_t r = 0; r < occlNumWaitReasons; ++r)
    EXPECT_EQ(block.waits[r], 0u) << r;
}

TEST(Counters, AWaitLastsAsLongAsThePeerIsLate) {
  Ranks ranks(2);
  constexpr uint64_t kCount = 64;
  constexpr auto kDelay = 20ms;
  Job job(kId, handleOf(plan::testing::oneShotAllReduce(2)), kCount);
  std::thread punctual([&] { reduce(ranks[0], job, 0); });
  awaitReport(ranks[1], "rank 0 waits for rank 1 (its submission)");
  std::this_thread::sleep_for(kDelay);
  reduce(ranks[1], job, 1);
  punctual.join();
  occlBlockStats_t waited = blocksOf(ranks[0]);
  constexpr auto kNanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(kDelay).count());
  EXPECT_EQ(waited.waits[occlWaitAnnounce], 1u);
  EXPECT_GE(waited.waitNs[occlWaitAnnounce], kNanoseconds * 99 / 100);
  EXPECT_LE(waited.waits[occlWaitData], 1u);
  EXPECT_EQ(waited.waits[occlWaitCredit] + waited.waits[occlWaitDependency] +
                waited.waits[occlWaitSignal] + waited.waits[occlWaitBegin],
            0u);
  EXPECT_GE(statsOf(ranks[0]).announceNs, kNanoseconds * 99 / 100);
  for (uint32_t r : {0u, 1u}) {
    EXPECT_EQ(blocksOf(ranks[r]).slices, 2u) << "one sent, one received";
    EXPECT_EQ(blocksOf(ranks[r]).bytesSent, kCount * sizeof(float));
    EXPECT_EQ(blocksOf(ranks[r]).bytesReceived, kCount * sizeof(float));
    EXPECT_EQ(statsOf(ranks[r]).completed, 1u);
  }
}

TEST(Counters, AddUpToTheCommunicators) {
  Ranks ranks(4);
  constexpr uint32_t kJobs = 3, kIterations = 10;
  std::vector<Job> jobs;
  for (uint64_t id = 0; id < kJobs; ++id)
    jobs.emplace_back(id, handleOf(plan::testing::ringAllReduce(4)), 1000 + id);
  ranks.run([&](uint32_t r) {
    for (uint32_t iteration = 0; iteration < kIterations; ++iteration) {
      std::vector<occlRequest_t> requests;
      for (uint32_t j : latinOrder(kJobs, r, iteration))
        ASSERT_EQ(jobs[j].submit(ranks[r], r, &requests.emplace_back()), occlSuccess);
      for (occlRequest_t request : requests)
        ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
    }
  });
  for (uint32_t r = 0; r < 4; ++r) {
    occlStats_t all{};
    all.size = sizeof all;
    ASSERT_EQ(occlCommGetStats(ranks[r], &all), occlSuccess);
    occlBlockStats_t sum{};
    for (uint64_t id = 0; id < kJobs; ++id) {
      EXPECT_EQ(statsOf(ranks[r], id).completed, kIterations);
      occlBlockStats_t blocks = blocksOf(ranks[r], OCCL_ALL_BLOCKS, id);
      EXPECT_EQ(blocks.contextLoads, blocksOf(ranks[r], 0, id).contextLoads) << "one block";
      sum.contextLoads += blocks.contextLoads;
      sum.contextSaves += blocks.contextSaves;
      sum.preemptions += blocks.preemptions;
      sum.bytesSent += blocks.bytesSent;
      sum.bytesReceived += blocks.bytesReceived;
      sum.longestQueue = std::max(sum.longestQueue, blocks.longestQueue);
    }
    EXPECT_EQ(sum.contextLoads, all.contextLoads);
    EXPECT_EQ(sum.contextSaves, all.contextSaves);
    EXPECT_EQ(sum.preemptions, all.preemptions);
    EXPECT_EQ(sum.bytesSent, all.bytesSent);
    EXPECT_EQ(sum.bytesReceived, all.bytesReceived);
    EXPECT_EQ(sum.longestQueue, all.maxQueueLength);
  }
}

TEST(Counters, RefuseWhatIsNotThere) {
  Ranks ranks(1);
  Job job(kId, handleOf(plan::testing::oneShotAllReduce(1)), 10);
  reduce(ranks[0], job, 0);
  occlCollectiveStats_t stats{};
  occlBlockStats_t block{};
  EXPECT_EQ(occlCollectiveGetStats(ranks[0], kId, &stats), occlInvalidArgument) << "no size";
  stats.size = sizeof stats;
  block.size = sizeof block;
  EXPECT_EQ(occlCollectiveGetStats(ranks[0], 99, &stats), occlInvalidArgument);
  EXPECT_STREQ(occlGetLastError(), "no collective with id 99 has been started, or none for long");
  EXPECT_EQ(occlCollectiveGetBlockStats(ranks[0], kId, 1, &block), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("has 1 thread blocks on this rank, not 1"),
            std::string::npos)
      << occlGetLastError();
  stats.size = offsetof(occlCollectiveStats_t, completed);
  stats.completed = 4711;
  EXPECT_EQ(occlCollectiveGetStats(ranks[0], kId, &stats), occlSuccess);
  EXPECT_EQ(stats.completed, 4711u) << "not known to that version";
  std::vector<uint64_t> ids(4);
  size_t count = 0;
  EXPECT_EQ(occlCommGetCollectives(ranks[0], ids.data(), ids.size(), &count), occlSuccess);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(ids[0], kId);
}

TEST(Metrics, ofARank_areItsCounters) {
  Ranks ranks(2);
  Job job(kId, handleOf(plan::testing::oneShotAllReduce(2)), 100);
  occlRequest_t requests[2];
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(job.submit(ranks[r], r, &requests[r]), occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(occlWait(ranks[r], requests[r]), occlSuccess) << occlGetLastError();
  size_t length = 0;
  ASSERT_EQ(occlCommGetMetrics(ranks[1], "job=\"a\"", nullptr, 0, &length), occlSuccess);
  std::string text(length + 1, 'x');
  ASSERT_EQ(occlCommGetMetrics(ranks[1], "job=\"a\"", text.data(), text.size(), nullptr),
            occlSuccess);
  const std::string labels = "{rank=\"1\",size=\"2\",job=\"a\"";
  for (const std::string &line :
       {"occl_completed_total" + labels + ",id=\"" + std::to_string(kId) + "\"} 1\n",
        "occl_bytes_sent_total" + labels + ",id=\"" + std::to_string(kId) + "\"} " +
            std::to_string(blocksOf(ranks[1], OCCL_ALL_BLOCKS).bytesSent) + "\n",
        "occl_restarts_total" + labels + "} "})
    EXPECT_NE(text.find("\n" + line), std::string::npos) << line << "is not in\n" << text;
  EXPECT_EQ(text.find("id=\"calls\""), std::string::npos) << "there was no occlCall";

  char part[8];
  ASSERT_EQ(occlCommGetMetrics(ranks[1], nullptr, part, sizeof part, &length), occlSuccess);
  EXPECT_STREQ(part, "# HELP ") << "terminated where it is cut";
  EXPECT_GT(length, sizeof part);
  EXPECT_EQ(occlCommGetMetrics(ranks[1], "rank=\"7\"", nullptr, 0, &length), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("'rank' is no name for a label"),
            std::string::npos);
  EXPECT_EQ(occlCommGetMetrics(ranks[1], nullptr, nullptr, 1, &length), occlInvalidArgument);
  EXPECT_EQ(occlCommGetMetrics(nullptr, nullptr, nullptr, 0, &length), occlInvalidArgument);
}

TEST(Report, NamesInstructionSourceAndWhoHasNotSubmitted) {
  Ranks ranks(3);
  Job job(kId, handleOf(plan::testing::oneShotAllReduce(3)), 10);
  std::vector<std::thread> threads;
  for (uint32_t r : {0u, 2u})
    threads.emplace_back([&, r] { reduce(ranks[r], job, r); });
  awaitReport(ranks[0], "rank 0 waits for rank 1 (its submission)");
  std::string text = awaitReport(ranks[0], "rank 2 waits for rank 1 (its submission)");
  EXPECT_NE(text.find("in collective '" + job.name() +
                      "' (id 7), invocation 0, thread block 0, instruction 1 (recvReduceCopy) at "
                      "one_shot_allreduce.coll:4:"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(":4:5, for "), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 waits for nobody\n"), std::string::npos) << text;
  EXPECT_NE(text.find("invocation 0: not submitted by rank 1\n"), std::string::npos) << text;
  text = awaitReport(ranks[1], "rank 2 waits for rank 1 (its submission)");
  EXPECT_NE(text.find("in collective 'allreduce' (id 7), invocation 0, thread block 0"),
            std::string::npos)
      << "this rank has not called it: " << text;
  reduce(ranks[1], job, 1);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(reportOf(ranks[0]),
            "rank 0 waits for nobody\nrank 1 waits for nobody\nrank 2 waits for nobody\n");
}

TEST(Report, ComesWithASignal) {
  std::string pattern = std::string(std::getenv("TEST_TMPDIR")) + "/report.%r";
  ASSERT_EQ(occlReportOnSignal(SIGUSR1, pattern.c_str()), occlSuccess) << occlGetLastError();
  Ranks ranks(2);
  raise(SIGUSR1);
  for (uint32_t r : {0u, 1u}) {
    std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/report." + std::to_string(r);
    std::string text;
    while (text.find("rank 1 waits for nobody\n") == std::string::npos) {
      std::ostringstream all;
      all << std::ifstream(path).rdbuf();
      text = all.str();
    }
    EXPECT_EQ(text.find("OCCL: rank " + std::to_string(r) + " of 2, process "), 0u) << text;
  }
  EXPECT_EQ(occlReportOnSignal(SIGKILL, nullptr), occlInvalidArgument);
}

TEST(Wrapper, HasTheCountersToo) {
  std::vector<Communicator> ranks = Communicator::all(1);
  PlanHandle plan = handleOf(plan::testing::oneShotAllReduce(1));
  std::vector<float> data(4, 1);
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.id = kId;
  call.plan = plan.get();
  call.sendBuffer = call.recvBuffer = data.data();
  call.count = data.size();
  occlRequest_t request = 0;
  check(occlStart(ranks[0].handle(), &call, nullptr, nullptr, &request));
  check(occlWait(ranks[0].handle(), request));
  EXPECT_EQ(ranks[0].collectives(), std::vector<uint64_t>{kId});
  EXPECT_EQ(ranks[0].stats(kId).completed, 1u);
  EXPECT_EQ(ranks[0].blockStats(kId).contextLoads, 1u);
  EXPECT_EQ(ranks[0].blockStats(kId, 0).contextLoads, 1u);
}

} // namespace
} // namespace occl::communicator::testing
