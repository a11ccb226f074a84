// What traces and counters say of the resident daemons of CUDA devices, ranks being threads: with
// the host's times, in the order of things. Skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_insight.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Microseconds by which device and host may differ once their clocks have been compared.
constexpr double kClockError = 5;

double microseconds(Clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch()).count();
}

std::string folder() {
  const char *given = std::getenv("TEST_TMPDIR");
  return given ? given : "/tmp";
}

class Trace : public RanksOnDevices {
protected:
  static constexpr uint32_t kIterations = 25;

  void startTraces() {
    for (occlComm_t comm : comms)
      ASSERT_EQ(occlTraceStart(comm, (folder() + "/gpu_trace.%r").c_str()), occlSuccess)
          << occlGetLastError();
  }
  std::vector<json> stopTraces() {
    std::vector<json> traces;
    for (uint32_t r = 0; r < comms.size(); ++r) {
      EXPECT_EQ(occlTraceStop(comms[r]), occlSuccess) << occlGetLastError();
      std::ifstream file(folder() + "/gpu_trace." + std::to_string(r));
      traces.push_back(json::parse(file));
    }
    return traces;
  }
  std::string run(uint32_t rank, uint64_t id) {
    RankOnDevice &on = *onDevices[rank];
    return runKnown(comms[rank], id, on.input(false), on.output(false)) == occlSuccess
               ? ""
               : occlGetLastError();
  }
  /// All ranks, several collectives in flight, in orders that conflict.
  void runMany(uint32_t collectives) {
    inThreads([&](uint32_t rank) -> std::string {
      RankOnDevice &on = *onDevices[rank];
      for (uint32_t i = 0; i < kIterations; ++i) {
        std::vector<occlRequest_t> requests(collectives);
        for (uint32_t c = 0; c < collectives; ++c)
          if (startKnown(comms[rank], 1 + (c + rank) % collectives, on.input(false),
                         on.output(false), nullptr, nullptr, &requests[c]) != occlSuccess)
            return occlGetLastError();
        for (occlRequest_t request : requests)
          if (occlWait(comms[rank], request) != occlSuccess)
            return occlGetLastError();
      }
      return "";
    });
  }
};

std::string threadName(const json &trace, const json &of) {
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "M" && event["name"] == "thread_name" && event["tid"] == of["tid"])
      return event["args"]["name"];
  return "";
}

std::vector<json> eventsOf(const json &trace, const std::string &category) {
  std::vector<json> found;
  for (const json &event : trace["traceEvents"])
    if (event.value("cat", "") == category)
      found.push_back(event);
  return found;
}

/// When what happened to each invocation: moments by collective and invocation.
using Moments = std::map<std::pair<std::string, uint64_t>, std::map<std::string, double>>;
Moments momentsOf(const json &trace) {
  Moments moments;
  for (const json &event : eventsOf(trace, "request"))
    moments[{event["args"]["collective"], event["args"]["invocation"]}][event["name"]] =
        event["ts"];
  return moments;
}

TEST_F(Trace, HasWhatExecutorsDidAtTheHostsTimes) {
  constexpr uint32_t kCollectives = 4;
  for (uint64_t id = 1; id <= kCollectives; ++id)
    rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), id));
  runMany(kCollectives);
  startTraces();
  const double begin = microseconds(Clock::now());
  runMany(kCollectives);
  const double end = microseconds(Clock::now());
  for (const json &trace : stopTraces()) {
    EXPECT_EQ(trace["otherData"]["dropped"], 0);
    const Moments moments = momentsOf(trace);
    EXPECT_EQ(moments.size(), kCollectives * kIterations);
    for (const auto &[invocation, times] : moments) {
      SCOPED_TRACE(invocation.first + ", invocation " + std::to_string(invocation.second));
      ASSERT_EQ(times.count("submitted") + times.count("started") + times.count("finished") +
                    times.count("complete"),
                4u);
      EXPECT_GE(times.at("submitted"), begin);
      EXPECT_GE(times.at("started"), times.at("submitted") - kClockError);
      EXPECT_GE(times.at("finished"), times.at("started"));
      EXPECT_GE(times.at("complete"), times.at("finished") - kClockError);
      EXPECT_LE(times.at("complete"), end);
    }
    const auto visits = eventsOf(trace, "visit");
    EXPECT_GE(visits.size(), kCollectives * kIterations);
    for (const json &visit : visits) {
      EXPECT_GE(visit["ts"].get<double>(), begin - kClockError);
      EXPECT_LE(visit["ts"].get<double>() + visit["dur"].get<double>(), end + kClockError);
    }
    EXPECT_EQ(threadName(trace, visits.front()).rfind("executor ", 0), 0u);
    EXPECT_GE(eventsOf(trace, "instruction").size(), kCollectives * kIterations);
  }
}

TEST_F(Trace, ShowsForWhomALateRankIsWaitedFor) {
  if (numRanks() < 2)
    GTEST_SKIP() << "nobody waits for anybody";
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 1));
  inThreads([&](uint32_t rank) { return run(rank, 1); });
  startTraces();
  constexpr auto kLate = 30ms;
  inThreads([&](uint32_t rank) {
    if (rank == 0)
      std::this_thread::sleep_for(kLate);
    return run(rank, 1);
  });
  const std::vector<json> traces = stopTraces();
  constexpr double kLong = 20'000;
  for (uint32_t r = 1; r < traces.size(); ++r) {
    double longest = 0;
    for (const json &wait : eventsOf(traces[r], "wait"))
      longest = std::max(longest, wait["dur"].get<double>());
    EXPECT_GE(longest, kLong) << "rank " << r;
  }
  double longest = 0;
  for (const json &wait : eventsOf(traces[0], "wait"))
    longest = std::max(longest, wait["dur"].get<double>());
  EXPECT_LT(longest, kLong) << "everybody was there when rank 0 came";
}

TEST_F(Trace, IsStartedAndStoppedOnceEachAndAgain) {
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 1));
  EXPECT_EQ(occlTraceStop(comms[0]), occlInvalidArgument);
  startTraces();
  EXPECT_EQ(occlTraceStart(comms[0], "/nowhere/at/all"), occlInvalidArgument);
  // The first submission is what attaches to the daemon.
  inThreads([&](uint32_t rank) { return run(rank, 1); });
  for (const json &trace : stopTraces())
    EXPECT_EQ(momentsOf(trace).size(), 1u);
  inThreads([&](uint32_t rank) { return run(rank, 1); });
  startTraces();
  for (uint32_t i = 0; i < 2; ++i)
    inThreads([&](uint32_t rank) { return run(rank, 1); });
  for (const json &trace : stopTraces())
    EXPECT_EQ(momentsOf(trace).size(), 2u) << "none from before";
}

TEST_F(Trace, CountersSayWhenInvocationsWereBegunAndAnnounced) {
  if (numRanks() < 2)
    GTEST_SKIP() << "nobody waits for anybody";
  rememberOnAll(one(plan::testing::ringAllReduce(numRanks()), 1));
  inThreads([&](uint32_t rank) { return run(rank, 1); });
  auto stats = [&](uint32_t rank) {
    occlCollectiveStats_t known{};
    known.size = sizeof known;
    EXPECT_EQ(occlCollectiveGetStats(comms[rank], 1, &known), occlSuccess) << occlGetLastError();
    return known;
  };
  const occlCollectiveStats_t before = stats(1), lateBefore = stats(0);
  constexpr uint64_t kLong = 20'000'000;
  inThreads([&](uint32_t rank) {
    if (rank == 0)
      std::this_thread::sleep_for(30ms);
    return run(rank, 1);
  });
  const occlCollectiveStats_t after = stats(1), lateAfter = stats(0);
  EXPECT_GE(after.announceNs - before.announceNs, kLong);
  EXPECT_LE(after.announceNs, after.finishNs);
  EXPECT_LT(after.startNs - before.startNs, kLong) << "it was not in anybody's way";
  EXPECT_LT(lateAfter.announceNs - lateBefore.announceNs, kLong);
}

} // namespace
} // namespace occl::gpu_test
