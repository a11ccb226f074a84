// resident_check [name...]: tests of resident daemons on one GPU, with several ranks on it. Each is
// bounded; run it under a timeout all the same.
#include "plan/testing/example_plans.h"
#include "runtime/cuda/resident/testing/one_device.h"
#include "runtime/cuda/resident/testing/orders.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

using namespace occl;
using namespace occl::cuda::resident;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = 20s;

Status wrong(const std::string &what) { return {StatusCode::InternalError, what}; }

DaemonOptions optionsWith(uint32_t numExecutors) {
  DaemonOptions options;
  options.kernel = &floatSumKernel();
  options.settings.numExecutors = numExecutors;
  return options;
}

/// Eight all-reduces of 256 bytes to 1 MB.
Status addEight(OneDevice &group) {
  using namespace plan::testing;
  const uint32_t n = group.numRanks();
  const plan::Plan plans[] = {oneShotAllReduce(n), ringAllReduce(n), twoShotAllReduce(n)};
  const uint64_t bytes[] = {256,      1 << 10,   4 << 10,   16 << 10,
                            64 << 10, 256 << 10, 512 << 10, 1 << 20};
  for (uint32_t c = 0; c < 8; ++c) {
    const plan::Plan &plan = c < 4 ? plans[c % 3] : plans[1 + c % 2];
    if (Status status = group.add(plan, bytes[c] / sizeof(float)); !status.ok())
      return status;
  }
  return {};
}

Status waitForQuits(OneDevice &group) {
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    if (Status status = group.daemon(r).waitForQuit(kLong); !status.ok())
      return status;
  return {};
}

Status testPlans() {
  using namespace plan::testing;
  for (uint32_t numRanks : {1u, 2u, 4u, 8u}) {
    OneDevice group(numRanks, optionsWith(2));
    for (uint64_t count : {1, 1003, 100000})
      for (const plan::Plan &plan :
           {oneShotAllReduce(numRanks), ringAllReduce(numRanks), twoShotAllReduce(numRanks)})
        if (Status status = group.add(plan, count); !status.ok())
          return status;
    for (uint32_t phase = 0; phase < 3; ++phase) {
      group.setInputs(phase);
      Status status = runOrders(group, 5, false, kLong, kNothing);
      if (status.ok())
        status = group.check(phase);
      if (!status.ok())
        return status;
    }
  }
  return {};
}

/// Protocols LL and LL128, in conflicting orders.
Status testLines() {
  using namespace plan::testing;
  DaemonOptions options = optionsWith(2);
  options.kernel = &floatSumLinesKernel();
  OneDevice group(4, options);
  for (plan::Protocol protocol : {plan::Protocol::LL, plan::Protocol::LL128})
    for (uint64_t count : {1, 1003, 20000})
      for (plan::Plan plan : {oneShotAllReduce(4), twoShotAllReduce(4)}) {
        plan.protocol = protocol;
        if (Status status = group.add(plan, count); !status.ok())
          return status;
      }
  for (uint32_t phase = 0; phase < 3; ++phase) {
    group.setInputs(phase);
    Status status = runOrders(group, 10, true, kLong, kNothing);
    if (status.ok())
      status = group.check(phase);
    if (!status.ok())
      return status;
  }
  return {};
}

Status testChaos() {
  OneDevice group(8, optionsWith(4));
  Status status = addEight(group);
  for (uint32_t phase = 0; phase < 10 && status.ok(); ++phase) {
    group.setInputs(phase);
    status = runOrders(group, 20, true, kLong, kNothing);
    if (status.ok())
      status = group.check(phase);
  }
  if (status.ok())
    status = waitForQuits(group);
  if (status.ok())
    printCounts(group);
  return status;
}

/// Everybody waits for the whole device, or frees memory, after each submission.
Status testChaosWithSynchronisation() {
  DaemonOptions options = optionsWith(4);
  options.settings.stuckLimit = 300'000;
  OneDevice group(8, options);
  Status status = addEight(group);
  if (!status.ok())
    return status;
  group.setInputs(1);
  std::atomic<int> error{cudaSuccess};
  status = runOrders(group, 10, true, kLong, [&](uint32_t rank) {
    cudaError_t result = cudaSuccess;
    if (rank % 2 == 0) {
      result = cudaDeviceSynchronize();
    } else {
      void *memory = nullptr;
      result = cudaMalloc(&memory, 1 << 20);
      if (result == cudaSuccess)
        result = cudaFree(memory);
    }
    if (result != cudaSuccess)
      error = result;
  });
  if (status.ok() && error != cudaSuccess)
    return wrong(cudaGetErrorString(static_cast<cudaError_t>(error.load())));
  if (status.ok())
    status = group.check(1);
  if (status.ok())
    status = waitForQuits(group);
  if (status.ok())
    printCounts(group);
  return status;
}

Status testChaosWithoutPreemption() {
  DaemonOptions options = optionsWith(1);
  options.settings.preemption = false;
  OneDevice group(8, options);
  Status status = addEight(group);
  if (!status.ok())
    return status;
  group.setInputs(0);
  Deadline deadline(10s);
  status = runOrders(group, 1, true, 500ms, kNothing);
  if (status.code() != StatusCode::Timeout)
    return wrong("conflicting orders were not stuck: " + status.message());
  std::string report = group.daemon(3).describeWaits();
  std::printf("  stuck, as it should be; rank 3:%s\n", report.c_str());
  if (report.find("waits for") == std::string::npos || deadline.passed())
    return wrong("the deadlock was not reported");
  for (uint32_t r = 0; r < 8; ++r)
    group.tenant(r).fail({StatusCode::Aborted, "the test is over"});
  return {};
}

Status testDeadline() {
  OneDevice group(2, optionsWith(1));
  group.setTimeout(200ms);
  Status status = group.add(plan::testing::ringAllReduce(2), 64);
  if (!status.ok())
    return status;
  std::atomic<int> called{-1};
  Deadline deadline(5s);
  auto request = group.submit(
      0, 0, 0, [&](uint64_t, const Status &outcome) { called = static_cast<int>(outcome.code()); });
  if (!request.ok())
    return request.status();
  status = group.daemon(0).wait(*request, kLong);
  if (status.code() != StatusCode::Timeout || deadline.passed())
    return wrong("no Timeout: " + status.message());
  while (called < 0 && !deadline.passed())
    std::this_thread::yield();
  if (called != static_cast<int>(StatusCode::Timeout))
    return wrong("the callback has not been told");
  std::printf("  %s\n", status.message().c_str());
  if (status.message().find("rank 1") == std::string::npos)
    return wrong("the missing rank is not named");
  return {};
}

Status testAbort() {
  DaemonOptions options = optionsWith(2);
  options.settings.stuckLimit = 60'000'000'000; // it is not being stuck that ends it
  OneDevice group(2, options);
  Status status = group.add(plan::testing::ringAllReduce(2), 64);
  if (!status.ok())
    return status;
  auto request = group.submit(0, 0);
  std::thread([&] {
    std::this_thread::sleep_for(20ms);
    group.tenant(0).fail({StatusCode::Aborted, "enough"});
  }).join();
  status = group.daemon(0).wait(*request, kLong);
  if (status.code() != StatusCode::Aborted)
    return wrong("wait returned: " + status.message());
  Deadline deadline(5s);
  while (cudaDeviceSynchronize() != cudaSuccess)
    if (deadline.passed())
      return wrong("the kernel has not left");
  // Others go on.
  auto late = group.submit(1, 0);
  return late.ok() ? Status() : late.status();
}

Status testQuitAndRestart() {
  OneDevice group(2, optionsWith(2));
  Status status = group.add(plan::testing::twoShotAllReduce(2), 1000);
  for (uint32_t phase = 0; phase < 5 && status.ok(); ++phase) {
    group.setInputs(phase);
    status = runOrders(group, 1, false, kLong, kNothing);
    if (status.ok())
      status = group.check(phase);
    if (status.ok())
      status = waitForQuits(group);
    if (status.ok() && group.daemon(0).starts() != phase + 1)
      status = wrong("started " + std::to_string(group.daemon(0).starts()) + " times, not " +
                     std::to_string(phase + 1));
  }
  return status;
}

/// Quits with something open, several times; the peer comes later.
Status testStuckAndLater() {
  OneDevice group(2, optionsWith(1));
  Status status = group.add(plan::testing::ringAllReduce(2), 5000);
  if (!status.ok())
    return status;
  group.setInputs(0);
  auto mine = group.submit(0, 0);
  std::this_thread::sleep_for(30ms);
  if (group.daemon(0).starts() < 3)
    return wrong("a stuck daemon was not restarted");
  auto theirs = group.submit(1, 0);
  status = group.daemon(0).wait(*mine, kLong);
  if (status.ok())
    status = group.daemon(1).wait(*theirs, kLong);
  return status.ok() ? group.check(0) : status;
}

Status testCallbacks() {
  OneDevice group(2, optionsWith(1));
  Status status = group.add(plan::testing::ringAllReduce(2), 100);
  if (!status.ok())
    return status;
  std::atomic<uint32_t> calls{0};
  for (uint32_t i = 0; i < 50; ++i)
    for (uint32_t r = 0; r < 2; ++r) {
      auto request =
          group.submit(r, 0, 0, [&](uint64_t, const Status &outcome) { calls += outcome.ok(); });
      if (!request.ok())
        return request.status();
    }
  Deadline deadline(10s);
  while (calls != 100)
    if (deadline.passed())
      return wrong(std::to_string(calls) + " of 100 callbacks were called");
  return {};
}

struct Named {
  const char *name;
  Status (*run)();
};
constexpr Named kTests[] = {
    {"plans", testPlans},
    {"lines", testLines},
    {"quit", testQuitAndRestart},
    {"callbacks", testCallbacks},
    {"stuck", testStuckAndLater},
    {"deadline", testDeadline},
    {"abort", testAbort},
    {"chaos", testChaos},
    {"synchronise", testChaosWithSynchronisation},
    {"without-preemption", testChaosWithoutPreemption},
};

} // namespace

int main(int argc, char **argv) {
  int failures = 0;
  for (const Named &test : kTests) {
    bool wanted = argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char *name) {
                    return std::strcmp(name, test.name) == 0;
                  });
    if (!wanted)
      continue;
    auto begin = std::chrono::steady_clock::now();
    Status status = test.run();
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%s %s (%.2f s)%s%s\n", status.ok() ? "passed" : "FAILED", test.name, seconds,
                status.ok() ? "" : ": ", status.message().c_str());
    std::fflush(stdout);
    failures += !status.ok();
  }
  return failures == 0 ? 0 : 1;
}
