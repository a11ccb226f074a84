// What collectives that wait in streams do to everything else on their device, and how each such
// case ends: rules of the hardware, and of the runtime on top of them. Each test is a process of
// its own, for CUDA reads CUDA_DEVICE_MAX_CONNECTIONS once. Its ranks share one device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kId = 1;
constexpr auto kBound = 15s; // for everything that must end

int numDevices() {
  int number = 0;
  return cudaGetDeviceCount(&number) == cudaSuccess ? number : 0;
}

Case caseOf(plan::Plan plan, uint64_t id = kId) {
  Case what;
  what.id = id;
  what.plan = std::move(plan);
  what.count = 1000;
  return what;
}

/// An all-reduce of two ranks. "" or what is wrong.
std::string registerPlan(occlComm_t comm, plan::Plan plan, uint64_t id = kId,
                         uint32_t timeoutMs = 20000) {
  const Case what = caseOf(std::move(plan), id);
  remember(comm, what, timeoutMs);
  return "";
}

/// Two ranks of this process, on two devices if it sees so many, with some communicators. All have
/// been called once, so that everything is in its place.
class TwoRanks {
public:
  TwoRanks(uint32_t streamsEach, uint32_t numComms) : comms(numComms) {
    occlConfig_t config = smallConfig();
    for (auto &comm : comms)
      if (occlCommInitAll(comm.data(), 2, &config) != occlSuccess) {
        wrong = std::string("occlCommInitAll: ") + occlGetLastError();
        return;
      }
    for (uint32_t r = 0; r < 2; ++r) {
      onDeviceOf(r);
      ranks.push_back(std::make_unique<RankOnDevice>(comms[0][r], r));
      for (uint32_t s = 0; s < streamsEach; ++s) {
        streams[r].emplace_back();
        cudaStreamCreateWithFlags(&streams[r].back(), cudaStreamNonBlocking);
      }
    }
    for (uint32_t c = 0; c < numComms; ++c)
      for (uint32_t r = 0; r < 2 && wrong.empty(); ++r)
        wrong = call(r, c, streams[r][0], 0);
    if (wrong.empty())
      wrong = end();
  }
  ~TwoRanks() {
    abort(); // whatever still waits
    for (uint32_t r = 0; r < 2; ++r)
      for (cudaStream_t stream : streams[r])
        cudaStreamDestroy(stream);
    ranks.clear();
    for (const auto &comm : comms)
      for (occlComm_t ofRank : comm)
        occlCommDestroy(ofRank);
  }

  static void onDeviceOf(uint32_t rank) { cudaSetDevice(static_cast<int>(rank) % numDevices()); }
  /// A ring is one thread block. With work behind it.
  std::string call(uint32_t rank, uint32_t comm, cudaStream_t stream, uint32_t timeoutMs) {
    onDeviceOf(rank);
    char *output = ranks[rank]->output(false) + comm * 8192;
    std::string text = callInStream(comms[comm][rank], caseOf(plan::testing::ringAllReduce(2)),
                                    ranks[rank]->input(false), output, stream, timeoutMs);
    if (text.empty())
      cudaMemsetAsync(ranks[rank]->output(false) + (1 << 19), 1, 4, stream);
    return text;
  }
  /// By the second rank.
  void abort() {
    for (const auto &comm : comms)
      occlCommAbort(comm[1]);
  }
  /// All streams are empty within the bound.
  std::string end() {
    auto late = Clock::now() + kBound;
    for (uint32_t r = 0; r < 2; ++r)
      for (cudaStream_t stream : streams[r])
        while (cudaStreamQuery(stream) == cudaErrorNotReady)
          if (Clock::now() > late)
            return "a stream of rank " + std::to_string(r) + " does not end";
    return "";
  }
  /// Of any communicator.
  std::string failure() {
    for (auto late = Clock::now() + 200ms; Clock::now() < late; std::this_thread::sleep_for(1ms))
      for (const auto &comm : comms)
        if (*occlCommGetLastError(comm[0]) != 0)
          return occlCommGetLastError(comm[0]);
    return "";
  }

  std::vector<std::array<occlComm_t, 2>> comms;
  std::vector<std::unique_ptr<RankOnDevice>> ranks;
  std::vector<cudaStream_t> streams[2];
  std::string wrong;
};

/// body() in a process whose CUDA has so many connections to a device, and sees one, or all.
void inProcess(uint32_t connections, const std::function<std::string()> &body,
               bool seesAll = false) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  Processes process(1, [&](uint32_t) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(connections).c_str(), 1);
    const char *given = std::getenv("CUDA_VISIBLE_DEVICES");
    std::string visible = given ? given : "0";
    if (!seesAll)
      setenv("CUDA_VISIBLE_DEVICES", visible.substr(0, visible.find(',')).c_str(), 1);
    return body();
  });
  EXPECT_EQ(process.join(0), 0) << process.wrong(0);
}

/// Rank 0 has calls in `parked` communicators waiting, each in a stream of its own with work behind
/// it, when rank 1 makes them all in a stream of its own, in the other order.
std::string park(uint32_t parked, uint32_t timeoutMs, std::string &failure) {
  TwoRanks two(parked, parked);
  std::string wrong = two.wrong;
  for (uint32_t c = 0; c < parked && wrong.empty(); ++c)
    wrong = two.call(0, c, two.streams[0][c], timeoutMs);
  if (!wrong.empty())
    return wrong;
  std::this_thread::sleep_for(100ms); // all have begun
  std::thread late([&] {              // its launches may hang
    for (uint32_t c = parked; c-- > 0;)
      if (!two.call(1, c, two.streams[1][0], timeoutMs).empty())
        return;
  });
  wrong = two.end();
  late.join();
  if (wrong.empty())
    wrong = two.end();
  failure = two.failure();
  return wrong;
}

TEST(Parked, FewerStreamsThanConnectionsMayConflict) {
  inProcess(8, [] {
    std::string failure, wrong = park(7, 10000, failure);
    return wrong.empty() ? failure : wrong;
  });
}

TEST(Parked, AtTheLimitTheReportNamesIt) {
  for (uint32_t parked : {4u, 6u})
    inProcess(4, [=]() -> std::string {
      std::string failure, wrong = park(parked, 1500, failure);
      std::fprintf(stderr, "%u streams parked, 4 connections: %s\n", parked,
                   failure.empty() ? "no failure" : failure.c_str());
      if (!wrong.empty() || failure.empty())
        return wrong.empty() ? "" : wrong + "; " + failure;
      return failure.find("CUDA_DEVICE_MAX_CONNECTIONS is 4") != std::string::npos
                 ? ""
                 : "the report does not name the limit: " + failure;
    });
}

/// Ranks are processes that share a device. Rank 0 has as many streams held as it has connections,
/// so nothing can be launched there any more, when rank 1 comes to the same collectives in the
/// other order: the thread block of rank 0's daemon that has stayed does everything.
TEST(Parked, AsManyStreamsAsConnectionsMayBeHeldByTheResidentDaemon) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  constexpr uint32_t kHeld = 4;
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice on(comm, rank);
    std::vector<cudaStream_t> streams(kHeld);
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    auto submit = [&](uint64_t id) {
      return startInStream(comm, id, on.input(false), on.output(false) + id * 8192, streams[id],
                           nullptr, nullptr, nullptr) == occlSuccess
                 ? std::string()
                 : std::string("in the stream: ") + occlGetLastError();
    };
    for (uint64_t id = 0; id < kHeld; ++id) {
      if (std::string wrong = registerPlan(comm, plan::testing::twoShotAllReduce(2), id, 10000);
          !wrong.empty())
        return wrong;
      // Copies its tables to the device, once.
      if (runKnown(comm, id, on.input(false), on.output(false)) != occlSuccess)
        return std::string("occlWait: ") + occlGetLastError();
    }
    std::string wrong;
    if (rank == 1)
      std::this_thread::sleep_for(300ms);
    for (uint64_t i = 0; i < kHeld && wrong.empty(); ++i)
      wrong = submit(rank == 0 ? i : kHeld - 1 - i);
    auto late = Clock::now() + kBound;
    for (cudaStream_t stream : streams)
      while (wrong.empty() && cudaStreamQuery(stream) == cudaErrorNotReady)
        if (Clock::now() > late)
          wrong = "a stream does not end";
    return wrong.empty() ? occlCommGetLastError(comm) : wrong;
  };
  const std::string name = jobName("parked-held");
  Processes processes(2, [&](uint32_t rank) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kHeld).c_str(), 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    return joined(2, name, body)(rank);
  });
  expectAllRight(processes, 2);
}

/// The call waits for the stream that is held, and the daemon goes on meanwhile.
TEST(Parked, CudaFreeWaitsForStreamsThatTheResidentDaemonHolds) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice on(comm, rank);
    if (std::string wrong = registerPlan(comm, plan::testing::twoShotAllReduce(2)); !wrong.empty())
      return wrong;
    char *memory = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
    for (uint32_t i = 0; i < 3; ++i) {
      if (rank == i % 2)
        std::this_thread::sleep_for(300ms);
      if (startInStream(comm, kId, on.input(false), on.output(false), on.stream(), nullptr, nullptr,
                        nullptr) != occlSuccess)
        return std::string("in the stream: ") + occlGetLastError();
      i == 0 ? cudaFree(memory) : cudaDeviceSynchronize();
    }
    std::string wrong = on.synchronize();
    return wrong.empty() ? occlCommGetLastError(comm) : wrong;
  };
  Processes processes(2, joined(2, jobName("parked-held-free"), body));
  expectAllRight(processes, 2);
}

TEST(Parked, AbortEndsAllThatIsParked) {
  inProcess(4, []() -> std::string {
    constexpr uint32_t kParked = 6; // above the limit
    constexpr uint32_t kLong = 3'600'000;
    TwoRanks two(kParked + 1, kParked);
    std::string wrong = two.wrong;
    for (uint32_t c = 0; c < kParked && wrong.empty(); ++c)
      wrong = two.call(0, c, two.streams[0][c], kLong);
    if (!wrong.empty())
      return wrong;
    std::this_thread::sleep_for(100ms);
    std::thread late([&] { two.call(1, kParked - 1, two.streams[1][0], kLong); });
    std::this_thread::sleep_for(100ms);
    auto begin = Clock::now();
    two.abort();
    auto took = Clock::now() - begin;
    wrong = two.end();
    late.join();
    if (wrong.empty())
      wrong = two.end();
    if (wrong.empty() && took > 1s)
      wrong = "occlCommAbort took more than a second";
    if (wrong.empty() && two.failure().find("occlCommAbort was called") == std::string::npos)
      wrong = "another failure: " + two.failure();
    return wrong;
  });
}

/// A collective of rank 0 waits for rank 1, which comes while another thread is inside a call that
/// waits for the device. In one process CUDA may hold up rank 1's launch until that call returns.
std::string lateDuring(const std::function<void(char *)> &call, uint32_t timeoutMs,
                       bool isAborted) {
  TwoRanks two(1, 1);
  char *memory = nullptr;
  two.onDeviceOf(0);
  cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
  std::string wrong = two.wrong;
  if (wrong.empty())
    wrong = two.call(0, 0, two.streams[0][0], timeoutMs);
  if (!wrong.empty())
    return wrong;
  std::atomic<bool> hasReturned{false};
  std::thread caller([&] {
    call(memory);
    hasReturned = true;
  });
  std::this_thread::sleep_for(200ms);
  bool waited = !hasReturned;
  std::thread late([&] { two.call(1, 0, two.streams[1][0], timeoutMs); });
  std::this_thread::sleep_for(200ms);
  if (isAborted)
    two.abort();
  wrong = two.end();
  caller.join();
  late.join();
  if (wrong.empty())
    wrong = two.end();
  std::string failure = two.failure();
  std::fprintf(stderr, "%s; %s\n", waited ? "the call waited" : "the call did not wait",
               failure.empty() ? "the collective went on" : failure.c_str());
  if (wrong.empty() && !failure.empty() &&
      failure.find(isAborted ? "occlCommAbort was called" : "rank 1") == std::string::npos)
    wrong = "the report does not say who is missing: " + failure;
  return wrong;
}

TEST(Parked, CudaFreeInAnotherThreadEndsWithAReportOrGoesOn) {
  inProcess(8, [] { return lateDuring([](char *memory) { cudaFree(memory); }, 2000, false); });
}

TEST(Parked, AbortEndsCudaFreeInAnotherThread) {
  inProcess(8, [] { return lateDuring([](char *memory) { cudaFree(memory); }, 3'600'000, true); });
}

TEST(Parked, CudaDeviceSynchronizeInAnotherThreadEndsWithAReportOrGoesOn) {
  inProcess(8, [] { return lateDuring([](char *) { cudaDeviceSynchronize(); }, 2000, false); });
}

/// The late rank is on another device.
TEST(Parked, CudaFreeOnAnotherDeviceEndsWithAReportOrGoesOn) {
  inProcess(
      8,
      []() -> std::string {
        if (numDevices() < 2) {
          std::fprintf(stderr, "skipped: one device\n");
          return "";
        }
        return lateDuring([](char *memory) { cudaFree(memory); }, 2000, false);
      },
      true);
}

/// Nothing of a rank that is another process is held up.
TEST(Parked, CudaFreeInAnotherProcessGoesOn) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  auto body = [](occlComm_t comm, uint32_t rank) -> std::string {
    RankOnDevice onDevice(comm, rank);
    char *memory = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
    if (rank == 1)
      std::this_thread::sleep_for(700ms);
    std::string wrong =
        callInStream(comm, caseOf(plan::testing::twoShotAllReduce(2)), onDevice.input(false),
                     onDevice.output(false), onDevice.stream());
    if (!wrong.empty())
      return wrong;
    cudaFree(memory); // rank 0's waits for rank 1
    wrong = onDevice.synchronize();
    return wrong.empty() ? occlCommGetLastError(comm) : wrong;
  };
  Processes processes(2, joined(2, jobName("parked-free"), body));
  expectAllRight(processes, 2);
}

} // namespace
} // namespace occl::gpu_test
