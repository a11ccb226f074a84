// resident_measure: what resident daemons cost, with several ranks on one GPU: from submission to
// completion seen by the host, conflicting orders against equal ones, and where executors spend
// their time meanwhile.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/one_device.h"
#include "runtime/cuda/resident/testing/orders.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::cuda::resident;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLong = std::chrono::seconds(20);

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void require(const Status &status) {
  if (status.ok())
    return;
  std::printf("FAILED: %s\n", status.message().c_str());
  std::fflush(stdout);
  std::_Exit(1); // other threads are still at it
}

DaemonOptions optionsWith(uint32_t numExecutors, plan::Protocol protocol = plan::Protocol::Simple) {
  DaemonOptions options;
  options.kernel = protocol == plan::Protocol::Simple ? &floatSumKernel() : &floatSumLinesKernel();
  options.settings.numExecutors = numExecutors;
  return options;
}

plan::Plan oneShot(uint32_t numRanks, plan::Protocol protocol) {
  plan::Plan plan = plan::testing::oneShotAllReduce(numRanks);
  plan.protocol = protocol;
  return plan;
}

const char *nameOf(plan::Protocol protocol) {
  return protocol == plan::Protocol::Simple ? "Simple" : "LL";
}

/// A one-shot all-reduce of 1 KiB, a host thread for each rank: rank 0's times, sorted.
std::vector<double> latencies(uint32_t numRanks, uint32_t numExecutors, plan::Protocol protocol) {
  constexpr uint32_t kWarmUp = 200, kMeasured = 3000;
  OneDevice group(numRanks, optionsWith(numExecutors, protocol));
  require(group.add(oneShot(numRanks, protocol), 256));
  group.setInputs(0);
  std::vector<double> times;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      for (uint32_t i = 0; i < kWarmUp + kMeasured; ++i) {
        auto begin = Clock::now();
        auto request = group.submit(r, 0);
        require(request.status());
        require(group.daemon(r).wait(*request, kLong));
        if (r == 0 && i >= kWarmUp)
          times.push_back(microsecondsSince(begin));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  require(group.check(0));
  std::ranges::sort(times);
  return times;
}

const char *nameOf(Moment moment) {
  static constexpr const char *kNames[kNumMoments] = {"none",  "taken in", "visit",    "ready",
                                                      "begun", "stepped",  "blocked",  "finished",
                                                      "left",  "visible",  "completed"};
  return kNames[static_cast<uint32_t>(moment)];
}

/// From each mark of an executor to its next: how often, the median and all of it, by the marks'
/// moments. What is between leaving a task and a visit is choosing.
void printSteps(const std::vector<std::vector<MarkView>> &executors) {
  std::map<std::pair<Moment, Moment>, std::vector<double>> steps;
  double cyclesPerNs = 0;
  for (const auto &marks : executors)
    if (marks.size() > 1 && marks.back().time > marks.front().time) {
      uint64_t cycles = 0;
      for (size_t i = 1; i < marks.size(); ++i)
        cycles += marks[i].cycles - marks[i - 1].cycles;
      cyclesPerNs =
          std::max(cyclesPerNs, static_cast<double>(cycles) /
                                    static_cast<double>(marks.back().time - marks.front().time));
    }
  if (cyclesPerNs == 0)
    return;
  for (const auto &marks : executors)
    for (size_t i = 1; i < marks.size(); ++i)
      steps[{marks[i - 1].moment, marks[i].moment}].push_back(
          static_cast<uint32_t>(marks[i].cycles - marks[i - 1].cycles) / cyclesPerNs);
  for (auto &[moments, times] : steps) {
    std::ranges::sort(times);
    double all = 0;
    for (double time : times)
      all += time;
    std::printf("    %9s -> %-9s %6zu times, median %6.0f ns, 90%% %6.0f ns, all %8.0f us\n",
                nameOf(moments.first), nameOf(moments.second), times.size(),
                times[times.size() / 2], times[times.size() * 9 / 10], all / 1e3);
  }
}

void measureLatency(uint32_t numRanks, uint32_t numExecutors, plan::Protocol protocol) {
  auto times = latencies(numRanks, numExecutors, protocol);
  std::printf("1 KiB, %s, host to host, %u ranks, %u executors each: median %.1f us, 99%% %.1f\n",
              nameOf(protocol), numRanks, numExecutors, times[times.size() / 2],
              times[times.size() * 99 / 100]);
  std::fflush(stdout);
}
void measureLatencies() {
  using enum plan::Protocol;
  for (uint32_t numRanks : {1u, 2u, 4u, 8u})
    measureLatency(numRanks, 1, Simple);
  for (uint32_t numExecutors : {1u, 4u, 16u, 64u})
    measureLatency(2, numExecutors, LL);
}

/// Microseconds a collective: eight all-reduces in flight on each of eight ranks.
double timeOrders(uint64_t bytes, bool conflicting, uint32_t numExecutors) {
  constexpr uint32_t kRanks = 8, kCollectives = 8, kIterations = 50;
  OneDevice group(kRanks, optionsWith(numExecutors));
  for (uint32_t c = 0; c < kCollectives; ++c)
    require(group.add(plan::testing::twoShotAllReduce(kRanks), bytes / sizeof(float)));
  group.setInputs(0);
  require(runOrders(group, 5, conflicting, kLong, kNothing));
  auto begin = Clock::now();
  require(runOrders(group, kIterations, conflicting, kLong, kNothing));
  double time = microsecondsSince(begin) / (kIterations * kCollectives);
  require(group.check(0));
  for (uint32_t r = 0; r < kRanks; ++r)
    require(group.daemon(r).waitForQuit(kLong));
  printCounts(group);
  return time;
}

void measureOrders() {
  for (uint64_t bytes : {1ull << 10, 64ull << 10, 1ull << 20, 4ull << 20})
    for (bool conflicting : {false, true, false, true}) {
      double time = timeOrders(bytes, conflicting, 8);
      std::printf("eight all-reduces of %llu bytes, %s orders: %.1f us each\n",
                  static_cast<unsigned long long>(bytes), conflicting ? "conflicting" : "equal",
                  time);
      std::fflush(stdout);
    }
}

/// A one-shot all-reduce of 1 KiB, again and again: with marks, so it is slower than above.
void measureSteps(uint32_t numRanks, plan::Protocol protocol) {
  constexpr uint32_t kRuns = 300;
  OneDevice group(numRanks, optionsWith(1, protocol));
  require(group.add(oneShot(numRanks, protocol), 256));
  group.setInputs(0);
  require(runOrders(group, kRuns, false, kLong, kNothing));
  require(group.daemon(0).startMarks());
  require(runOrders(group, kRuns, false, kLong, kNothing));
  auto marks = group.daemon(0).takeMarks(group.tenant(0));
  require(marks.status());
  require(group.check(0));
  std::printf("1 KiB, %s, %u ranks, rank 0's executor:\n", nameOf(protocol), numRanks);
  printSteps(marks->executors);
}

/// How far it has come, by moment, when the last thread block of a submission has: from taking it
/// in, which is rank 0's alone.
void printTimeline(const std::vector<std::vector<MarkView>> &executors) {
  std::map<uint32_t, std::map<Moment, uint64_t>> last; // by sequence
  std::map<Moment, std::vector<uint64_t>> times;
  for (const auto &marks : executors)
    for (const MarkView &mark : marks)
      if (mark.moment != Moment::Begun) // it names the invocation
        last[mark.sequence][mark.moment] = std::max(last[mark.sequence][mark.moment], mark.time);
  for (auto &[sequence, moments] : last)
    if (moments.contains(Moment::TakenIn) && moments.contains(Moment::Completed))
      for (auto [moment, time] : moments)
        times[moment].push_back(time - moments[Moment::TakenIn]);
  std::printf("    ns from being taken in until the last thread block is so far, medians:");
  for (auto &[moment, all] : times) {
    std::ranges::sort(all);
    std::printf(" %s %llu,", nameOf(moment), static_cast<unsigned long long>(all[all.size() / 2]));
  }
  std::printf(" of %zu\n", times[Moment::Completed].size());
}

/// A two-shot all-reduce of four thread blocks, again and again, with executors that have nothing
/// else to do.
void measureHandOver(uint64_t bytes) {
  constexpr uint32_t kRuns = 300, kRanks = 2;
  OneDevice group(kRanks, optionsWith(16));
  require(group.add(plan::testing::twoShotAllReduce(kRanks), bytes / sizeof(float)));
  group.setInputs(0);
  require(runOrders(group, kRuns, false, kLong, kNothing));
  const auto begin = Clock::now();
  require(runOrders(group, kRuns, false, kLong, kNothing));
  const double time = microsecondsSince(begin) / kRuns;
  require(group.daemon(0).startMarks());
  require(runOrders(group, kRuns, false, kLong, kNothing));
  auto marks = group.daemon(0).takeMarks(group.tenant(0));
  require(marks.status());
  require(group.check(0));
  std::printf("%llu bytes, four thread blocks, %u ranks, 16 executors each: %.1f us\n",
              static_cast<unsigned long long>(bytes), kRanks, time);
  printTimeline(marks->executors);
  for (uint32_t r = 0; r < kRanks; ++r)
    require(group.daemon(r).waitForQuit(kLong));
  printCounts(group);
}

/// Many collectives in flight on two ranks, in conflicting orders.
void measureMany(uint32_t numExecutors) {
  constexpr uint32_t kRanks = 2, kCollectives = 160, kIterations = 8;
  OneDevice group(kRanks, optionsWith(numExecutors));
  for (uint32_t c = 0; c < kCollectives; ++c) {
    plan::Plan plan = plan::testing::twoShotAllReduce(kRanks);
    require(group.add(plan, c % 3 == 0 ? 64 << 10 : 1 << 10));
  }
  group.setInputs(0);
  require(runOrders(group, 5, true, kLong, kNothing));
  auto begin = Clock::now();
  require(runOrders(group, kIterations, true, kLong, kNothing));
  const double time = microsecondsSince(begin) / kIterations;
  require(group.daemon(0).startMarks());
  require(runOrders(group, 2, true, kLong, kNothing));
  auto marks = group.daemon(0).takeMarks(group.tenant(0));
  require(marks.status());
  require(group.check(0));
  std::printf("%u all-reduces of 4 and 256 KiB, conflicting orders, %u executors a rank: %.0f us\n",
              kCollectives, numExecutors, time);
  printSteps(marks->executors);
  for (uint32_t r = 0; r < kRanks; ++r)
    require(group.daemon(r).waitForQuit(kLong));
  printCounts(group);
  std::fflush(stdout);
}

} // namespace

int main() {
  measureSteps(1, plan::Protocol::Simple);
  for (plan::Protocol protocol : {plan::Protocol::Simple, plan::Protocol::LL})
    measureSteps(2, protocol);
  measureLatencies();
  for (uint64_t bytes : {1ull << 10, 64ull << 10})
    measureHandOver(bytes);
  for (uint32_t numExecutors : {4u, 16u, 32u})
    measureMany(numExecutors);
  measureOrders();
}
