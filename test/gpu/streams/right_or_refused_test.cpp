// What is easily done wrong with collectives in streams gives right results, or is refused: buffers
// that overlap, a graph instantiated twice, ends beside a replay, calls of which CUDA refuses a
// part. Two ranks that are processes, skipped where there is no device.
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <span>
#include <thread>

// The calls of CUDA that are to fail: the linker sends all of them here (--wrap).
namespace {
std::atomic<int> recordsUntilFailure{-1}, launchesUntilFailure{-1};

bool failsNow(std::atomic<int> &until) { return until >= 0 && until-- == 0; }
} // namespace

extern "C" cudaError_t __real_cudaEventRecord(cudaEvent_t, cudaStream_t);
extern "C" cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return failsNow(recordsUntilFailure) ? cudaErrorMemoryAllocation
                                       : __real_cudaEventRecord(event, stream);
}
extern "C" cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *,
                                                  void **);
extern "C" cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                                  const void *kernel, void **arguments) {
  return failsNow(launchesUntilFailure) ? cudaErrorLaunchOutOfResources
                                        : __real_cudaLaunchKernelExC(config, kernel, arguments);
}

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kRanks = 2;
constexpr uint64_t kCount = 1 << 20, kBytes = kCount * sizeof(uint32_t), kFew = 1000;
constexpr uint32_t kPattern = 0x01010101;

/// A rank with buffers of its own, of which every byte is the same.
class Rank {
public:
  Rank(occlComm_t comm, uint32_t number) : comm(comm), number(number) {
    for (uint32_t i = 0; i < 2; ++i) {
      cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
      cudaMalloc(reinterpret_cast<void **>(&inputs[i]), kBytes);
      cudaMalloc(reinterpret_cast<void **>(&outputs[i]), kBytes);
    }
  }
  ~Rank() {
    for (uint32_t i = 0; i < 2; ++i) {
      cudaFree(inputs[i]);
      cudaFree(outputs[i]);
      cudaStreamDestroy(streams[i]);
    }
  }

  /// What is called: an all-reduce of integers.
  void use(plan::Plan plan, uint64_t count = kCount) {
    what.plan = std::move(plan);
    what.count = count;
    what.type = DataType::Int32;
  }
  /// `value` goes in, by place i's buffers and stream.
  occlResult_t call(uint32_t i, uint8_t value) {
    cudaMemsetAsync(inputs[i], value, kBytes, streams[i]);
    cudaMemsetAsync(outputs[i], 0x5a, kBytes, streams[i]);
    return call(i);
  }
  occlResult_t call(uint32_t i) { return callCase(comm, what, inputs[i], outputs[i], streams[i]); }
  /// Both streams, at most 30 seconds; what has failed meanwhile.
  std::string synchronize() {
    for (auto end = std::chrono::steady_clock::now() + 30s;
         cudaStreamQuery(streams[0]) == cudaErrorNotReady ||
         cudaStreamQuery(streams[1]) == cudaErrorNotReady;)
      if (std::chrono::steady_clock::now() > end)
        return "the streams do not end";
    return occlCommGetLastError(comm);
  }
  /// Whether the sum in place i's output is that.
  std::string check(uint32_t i, uint32_t sum, uint64_t count = kCount) {
    std::vector<uint32_t> got(count);
    cudaMemcpy(got.data(), outputs[i], count * sizeof(uint32_t), cudaMemcpyDefault);
    for (uint64_t e = 0; e < count; ++e)
      if (got[e] != sum * kPattern)
        return "rank " + std::to_string(number) + ", place " + std::to_string(i) + ": element " +
               std::to_string(e) + " is " + std::to_string(got[e]) + ", not " +
               std::to_string(sum * kPattern);
    return "";
  }
  /// The call of place i, captured.
  std::string capture(uint32_t i, cudaGraph_t &graph) {
    std::string wrong;
    cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal);
    if (call(i) != occlSuccess)
      wrong = occlGetLastError();
    return cudaStreamEndCapture(streams[i], &graph) == cudaSuccess || !wrong.empty()
               ? wrong
               : "the end of the capture";
  }
  /// Makes so many executable graphs of one captured call of place 0.
  std::string instantiate(const plan::Plan &plan, std::span<cudaGraphExec_t> instances) {
    cudaGraph_t graph = nullptr;
    use(plan, kFew);
    std::string wrong = capture(0, graph);
    for (cudaGraphExec_t &instance : instances)
      if (wrong.empty() && cudaGraphInstantiate(&instance, graph, 0) != cudaSuccess)
        wrong = "the graph cannot be instantiated";
    return wrong;
  }
  /// Its failure, once it has one.
  std::string failure() {
    for (auto end = std::chrono::steady_clock::now() + 20s;
         *occlCommGetLastError(comm) == 0 && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    return occlCommGetLastError(comm);
  }

  occlComm_t comm;
  const uint32_t number;
  Case what;
  cudaStream_t streams[2] = {};
  char *inputs[2] = {}, *outputs[2] = {};
};

using Body = std::function<std::string(Rank &)>;

void inTwo(const char *name, const Body &body) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  occlConfig_t config = smallConfig();
  config.timeoutMs = 0;
  Processes processes(kRanks, joined(
                                  kRanks, jobName(name),
                                  [&](occlComm_t comm, uint32_t number) {
                                    Rank rank(comm, number);
                                    return body(rank);
                                  },
                                  config));
  expectAllRight(processes, kRanks);
}

std::string expectIn(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? "" : "'" + part + "' is not in '" + text + "'";
}

TEST(RightOrRefused, BuffersThatOverlap) {
  inTwo("overlap", [](Rank &rank) -> std::string {
    plan::Plan plan = plan::testing::twoShotAllReduce(kRanks);
    plan.inPlace = false;
    rank.use(plan, kCount / 2);
    remember(rank.comm, rank.what);
    char *buffer = rank.inputs[0];
    for (uint64_t offset : {4, 4096}) {
      occlRequest_t request = 0;
      const occlResult_t results[] = {
          callCase(rank.comm, rank.what, buffer, buffer + offset, rank.streams[0]),
          startKnown(rank.comm, 1, buffer, buffer + offset, nullptr, nullptr, &request)};
      for (occlResult_t result : results)
        if (result != occlInvalidArgument)
          return "buffers " + std::to_string(offset) + " bytes apart are accepted";
    }
    // Nothing was numbered.
    if (rank.call(0, static_cast<uint8_t>(1 + rank.number)) != occlSuccess)
      return occlGetLastError();
    std::string wrong = rank.synchronize();
    return wrong.empty() ? rank.check(0, 3, kCount / 2) : wrong;
  });
}

/// Straight blocks, and those that are interpreted.
std::vector<plan::Plan> plansToReplay() {
  std::vector<plan::Plan> plans = {plan::testing::oneShotAllReduce(kRanks),
                                   plan::testing::twoShotAllReduce(kRanks),
                                   plan::testing::twoShotAllReduce(kRanks)};
  plans[0].protocol = plans[1].protocol = plan::Protocol::LL;
  return plans;
}

TEST(RightOrRefused, AGraphInstantiatedTwiceAndReplayedInTurns) {
  for (const plan::Plan &plan : plansToReplay())
    inTwo("in-turns", [&](Rank &rank) -> std::string {
      cudaGraphExec_t instances[2];
      std::string wrong = rank.instantiate(plan, instances);
      if (!wrong.empty())
        return wrong;
      for (uint32_t round = 0; round < 20 && wrong.empty(); ++round) {
        cudaMemsetAsync(rank.inputs[0], static_cast<int>(1 + round + rank.number), kBytes,
                        rank.streams[round % 2]);
        cudaGraphLaunch(instances[round % 2], rank.streams[round % 2]);
        wrong = rank.synchronize();
        if (wrong.empty())
          wrong = rank.check(0, 3 + 2 * round, kFew);
      }
      return wrong;
    });
}

TEST(RightOrRefused, AGraphInstantiatedTwiceAndReplayedAtOnce) {
  for (const plan::Plan &plan : plansToReplay())
    inTwo("at-once", [&](Rank &rank) -> std::string {
      cudaGraphExec_t instances[2];
      std::string wrong = rank.instantiate(plan, instances);
      if (!wrong.empty())
        return wrong;
      if (rank.call(1) != occlSuccess)
        return occlGetLastError();
      if (wrong = rank.synchronize(); !wrong.empty()) // both have come so far
        return wrong;
      // Rank 1 comes to nothing more, so that both wait.
      for (uint32_t i = 0; i < 2 && rank.number == 0; ++i)
        cudaGraphLaunch(instances[i], rank.streams[i]);
      const std::string failure = rank.failure();
      rank.synchronize();
      if (rank.call(0) != occlInvalidArgument)
        return "the communicator goes on, or has failed for something else: " + failure;
      return expectIn(failure, "another call of the communicator runs beside it");
    });
}

/// As where a program captures some calls and makes others of any count: the captured one is there
/// when all others have given up their places.
TEST(RightOrRefused, AfterACaptureAnyNumberOfCounts) {
  inTwo("any-number-of-counts", [](Rank &rank) -> std::string {
    constexpr uint64_t kCounts = 2500; // twice as many as are kept
    const plan::Plan plan = plan::testing::oneShotAllReduce(kRanks);
    cudaGraphExec_t instance = nullptr;
    std::string wrong = rank.instantiate(plan, {&instance, 1});
    for (char *input : rank.inputs)
      cudaMemset(input, static_cast<int>(1 + rank.number), kBytes);
    for (uint64_t count = 1; count <= kCounts && wrong.empty(); ++count) {
      rank.use(plan, count);
      occlResult_t result = occlAgain; // while the call before is in flight
      for (const auto end = std::chrono::steady_clock::now() + 20s;
           result == occlAgain && std::chrono::steady_clock::now() < end;)
        result = rank.call(count % 2);
      if (result != occlSuccess)
        wrong = "count " + std::to_string(count) + ": " + occlGetLastError();
      if (wrong.empty() && count % 500 == 0)
        wrong = rank.synchronize();
      if (wrong.empty() && count % 500 == 0)
        wrong = rank.check(count % 2, 3, count);
    }
    if (!wrong.empty())
      return wrong;
    cudaMemset(rank.outputs[0], 0, kBytes);
    cudaGraphLaunch(instance, rank.streams[0]);
    wrong = rank.synchronize();
    return wrong.empty() ? rank.check(0, 3, kFew) : wrong;
  });
}

TEST(RightOrRefused, DestroyingBesideAReplay) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  for (const plan::Plan &plan : plansToReplay()) {
    const std::string job = jobName("destroy");
    auto body = [&](uint32_t number) -> std::string {
      int devices = 0;
      cudaGetDeviceCount(&devices);
      occlConfig_t config = smallConfig();
      config.timeoutMs = 0;
      config.device = number % static_cast<uint32_t>(devices);
      cudaSetDevice(static_cast<int>(config.device));
      occlComm_t comm = nullptr;
      if (occlCommInitRank(&comm, kRanks, number, job.c_str(), &config) != occlSuccess)
        return occlGetLastError();
      Rank rank(comm, number);
      cudaGraphExec_t instance = nullptr;
      std::string wrong = rank.instantiate(plan, {&instance, 1});
      cudaMemset(rank.inputs[0], static_cast<int>(1 + number), kBytes);
      if (number == 1)
        std::this_thread::sleep_for(600ms);
      cudaGraphLaunch(instance, rank.streams[0]);
      if (number == 0)
        std::this_thread::sleep_for(100ms);
      else if (wrong.empty())
        wrong = rank.synchronize();
      if (occlCommDestroy(comm) != occlSuccess)
        wrong = occlGetLastError();
      cudaStreamSynchronize(rank.streams[0]);
      return wrong.empty() ? rank.check(0, 3, kFew) : wrong;
    };
    Processes processes(kRanks, body);
    expectAllRight(processes, kRanks);
  }
}

/// The first thing that a call puts into the stream: nothing has happened.
TEST(RightOrRefused, ALaunchThatFailsMayBeMadeAgain) {
  inTwo("launch-fails", [](Rank &rank) -> std::string {
    rank.use(plan::testing::twoShotAllReduce(kRanks));
    for (uint32_t round = 0; round < 3; ++round) {
      if (rank.number == round % 2) {
        launchesUntilFailure = 0;
        if (rank.call(0, 1) != occlSystemError)
          return "a launch that fails is no error";
      }
      if (rank.call(0, static_cast<uint8_t>(1 + rank.number + round)) != occlSuccess)
        return occlGetLastError();
      std::string wrong = rank.synchronize();
      if (wrong.empty())
        wrong = rank.check(0, 3 + 2 * round);
      if (!wrong.empty())
        return wrong;
    }
    return "";
  });
}

/// A captured call that fails takes no place among the calls.
TEST(RightOrRefused, ACaptureThatFailsTakesNoNumber) {
  inTwo("capture-fails", [](Rank &rank) -> std::string {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    rank.use(plan::testing::twoShotAllReduce(kRanks), kFew);
    if (rank.number == 0) {
      launchesUntilFailure = 0;
      if (rank.capture(1, graph).empty())
        return "a launch that fails is no error";
    }
    if (std::string wrong = rank.capture(0, graph); !wrong.empty())
      return wrong;
    cudaGraphInstantiate(&instance, graph, 0);
    cudaMemset(rank.inputs[0], static_cast<int>(1 + rank.number), kBytes);
    cudaGraphLaunch(instance, rank.streams[0]);
    std::string wrong = rank.synchronize();
    return wrong.empty() ? rank.check(0, 3, kFew) : wrong;
  });
}

/// A call is in the stream, and what orders the next one behind it is not: all ranks learn that
/// they cannot go on.
TEST(RightOrRefused, HalfACallEndsTheCommunicator) {
  inTwo("half", [](Rank &rank) -> std::string {
    rank.use(plan::testing::twoShotAllReduce(kRanks));
    for (uint32_t i = 0; i < 2; ++i) // from the second stream on there are events
      if (rank.call(i, 1) != occlSuccess)
        return occlGetLastError();
    // Both are there. Rank 0 may have gone on, and failed, while rank 1 still asks.
    if (std::string wrong = rank.synchronize(); rank.number == 0 && !wrong.empty())
      return wrong;
    if (rank.number == 0) {
      recordsUntilFailure = 0;
      if (rank.call(0, 1) != occlSystemError)
        return "an event that fails is no error";
    } else {
      rank.call(0, 1);
    }
    std::string failure = rank.failure();
    rank.synchronize();
    if (rank.call(1, 1) != occlSystemError)
      return "the communicator goes on";
    return expectIn(failure, "half of a call is in its stream");
  });
}

} // namespace
} // namespace occl::gpu_test
