// Strict mode: what is in flight leaves the whole device to others until a stream waits for it,
// then all but one thread block, and ends all the same, whatever the program has CUDA do behind
// such a stream. Each test is a process for each of two ranks, which share one device; rank 1 comes
// late.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "test/gpu/harness/processes_on_devices.h"
#include "test/gpu/harness/user_kernels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
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

constexpr uint32_t kConnections = 8;
constexpr uint64_t kCount = 1000, kBytes = kCount * sizeof(float);
constexpr std::chrono::milliseconds kBound = 15s, kLate = 400ms;

/// A rank with streams of its own, and memory for a kernel that needs the whole device.
class StrictRank {
public:
  StrictRank(occlComm_t comm, uint32_t rank, uint32_t numStreams)
      : comm(comm), on(comm, rank), streams(numStreams) {
    for (cudaStream_t &stream : streams)
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void **>(&meeting), sizeof *meeting);
    cudaMemset(meeting, 0, sizeof *meeting);
    cudaHostAlloc(reinterpret_cast<void **>(&done), sizeof *done, cudaHostAllocMapped);
    *done = 0;
    for (uint64_t id = 0; id < numStreams && wrong.empty(); ++id)
      registerOne(id);
    if (loadUserKernels() != cudaSuccess)
      wrong = "the kernel for the whole device cannot be loaded";
  }
  ~StrictRank() {
    for (cudaStream_t stream : streams)
      cudaStreamDestroy(stream);
    cudaStreamDestroy(beside);
    cudaFree(meeting);
    cudaFreeHost(done);
  }
  StrictRank(const StrictRank &) = delete;
  StrictRank &operator=(const StrictRank &) = delete;

  std::string submit(uint64_t id) {
    return startInStream(comm, id, on.input(false), on.output(false) + id * kBytes, streams[id],
                         nullptr, nullptr, nullptr) == occlSuccess
               ? ""
               : std::string("in the stream: ") + occlGetLastError();
  }
  /// A kernel in the stream, to its end.
  std::string call(uint64_t id) {
    if (occlAllReduce(on.input(false), on.output(false) + id * kBytes, kCount, occlFloat32, occlSum,
                      comm, streams[id]) != occlSuccess)
      return std::string("occlAllReduce: ") + occlGetLastError();
    return cudaStreamSynchronize(streams[id]) == cudaSuccess ? "" : "CUDA has failed";
  }
  /// Behind the stream, which does not wait for it.
  std::string start(uint64_t id) {
    return startKnown(comm, id, on.input(false), on.output(false) + id * kBytes, nullptr, nullptr,
                      &request, &streams[id]) == occlSuccess
               ? ""
               : std::string("after the stream: ") + occlGetLastError();
  }
  std::string waitForStarted() {
    return occlWait(comm, request) == occlSuccess ? end()
                                                  : std::string("occlWait: ") + occlGetLastError();
  }
  cudaStream_t stream(uint64_t id) const { return streams[id]; }
  bool isHeld(uint64_t id) const { return cudaStreamQuery(streams[id]) == cudaErrorNotReady; }
  /// Whether a kernel that needs the whole device runs to its end within that time. It is left
  /// where it is if not.
  bool hasDevice(std::chrono::milliseconds within) {
    *done = 0;
    if (launchOnWholeDevice(beside, meeting, done) != cudaSuccess)
      return false;
    return isDone(within);
  }
  bool isDone(std::chrono::milliseconds within) const {
    for (auto end = Clock::now() + within; Clock::now() < end; std::this_thread::sleep_for(1ms))
      if (cudaStreamQuery(beside) == cudaSuccess && *done == 1)
        return true;
    return false;
  }
  /// All streams are empty within the bound, and outputs are right.
  std::string end() {
    for (auto late = Clock::now() + kBound; cudaStream_t stream : streams)
      while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (Clock::now() > late)
          return "a stream does not end";
    if (*occlCommGetLastError(comm) != 0)
      return occlCommGetLastError(comm);
    std::vector<float> output(streams.size() * kCount);
    cudaMemcpy(output.data(), on.output(false), output.size() * sizeof(float), cudaMemcpyDefault);
    for (float value : output)
      if (value != 3)
        return "an output is wrong";
    return "";
  }
  /// The communicator's failure, and that its streams go on.
  std::string failure() {
    for (auto late = Clock::now() + kBound; cudaStream_t stream : streams)
      while (cudaStreamQuery(stream) == cudaErrorNotReady)
        if (Clock::now() > late)
          return "a stream does not end";
    return occlCommGetLastError(comm);
  }

  occlComm_t comm;
  RankOnDevice on;
  std::string wrong;

private:
  occlRequest_t request = 0;

  /// An all-reduce of what is 1 on rank 0 and 2 on rank 1; its tables are on the device afterwards.
  void registerOne(uint64_t id) {
    uint32_t rank = 0;
    occlCommRank(comm, &rank);
    const std::vector<float> input(kCount, static_cast<float>(1 + rank));
    cudaMemcpy(on.input(false), input.data(), kBytes, cudaMemcpyDefault);
    Case what;
    what.id = id;
    what.plan = plan::testing::twoShotAllReduce(2);
    what.count = kCount;
    remember(comm, what, 6000);
    if (runKnown(comm, id, on.input(false), on.output(false)) != occlSuccess)
      wrong = std::string("occlWait: ") + occlGetLastError();
  }

  std::vector<cudaStream_t> streams;
  cudaStream_t beside = nullptr;
  uint32_t *meeting = nullptr, *done = nullptr;
};

using Body = std::function<std::string(StrictRank &, uint32_t rank)>;

/// The same in two processes. Rank 1 may be killed.
void inTwo(const char *name, uint32_t numStreams, bool isStrict, const Body &body,
           bool isOneKilled = false) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  occlConfig_t config = smallConfig();
  config.strict = isStrict ? 1 : 2;
  const std::string job = jobName(name);
  Processes processes(2, [&](uint32_t rank) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kConnections).c_str(), 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    return joined(
        2, job,
        [&](occlComm_t comm, uint32_t r) {
          StrictRank self(comm, r, numStreams);
          return self.wrong.empty() ? body(self, r) : self.wrong;
        },
        config)(rank);
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), isOneKilled && r == 1 ? -1 : 0)
        << "rank " << r << ": " << processes.wrong(r);
}

/// Rank 0 has so many streams held, then asks for the whole device; rank 1 comes to the same
/// collectives in the other order.
std::string conflict(StrictRank &self, uint32_t rank, uint64_t number, bool getsDevice) {
  if (rank == 1)
    std::this_thread::sleep_for(kLate);
  for (uint64_t i = 0; i < number; ++i)
    if (std::string wrong = self.submit(rank == 0 ? i : number - 1 - i); !wrong.empty())
      return wrong;
  if (rank == 0) {
    std::this_thread::sleep_for(50ms);
    const bool hasIt = self.hasDevice(kLate - 150ms);
    if (hasIt != getsDevice)
      return hasIt ? "it had the whole device" : "it did not have the whole device";
    if (!self.isHeld(0))
      return "the stream was not held";
  }
  std::string wrong = self.end();
  if (wrong.empty() && rank == 0 && !self.isDone(kBound))
    wrong = "the kernel for the whole device has not ended";
  return wrong;
}

/// The same for what no stream waits for yet.
std::string besideWhatIsInFlight(StrictRank &self, uint32_t rank, bool getsDevice) {
  if (rank == 1)
    std::this_thread::sleep_for(kLate);
  if (std::string wrong = self.start(0); !wrong.empty())
    return wrong;
  if (rank == 0) {
    std::this_thread::sleep_for(50ms);
    const bool hasIt = self.hasDevice(kLate - 150ms);
    if (hasIt != getsDevice)
      return hasIt ? "it had the whole device" : "it did not have the whole device";
  }
  std::string wrong = self.waitForStarted();
  if (wrong.empty() && rank == 0 && !self.isDone(kBound))
    wrong = "the kernel for the whole device has not ended";
  return wrong;
}
TEST(Strict, AKernelHasTheWholeDeviceBesideWhatIsInFlight) {
  inTwo("strict-one", 1, true,
        [](StrictRank &self, uint32_t rank) { return besideWhatIsInFlight(self, rank, true); });
}

TEST(Strict, WithoutStrictModeItWaitsForTheCollective) {
  inTwo("strict-not", 1, false,
        [](StrictRank &self, uint32_t rank) { return besideWhatIsInFlight(self, rank, false); });
}

TEST(Strict, WhileStreamsWaitOneThreadBlockStays) {
  inTwo("strict-held", 1, true,
        [](StrictRank &self, uint32_t rank) { return conflict(self, rank, 1, false); });
}

TEST(Strict, AllButOneConnectionMayBeHeld) {
  inTwo("strict-seven", kConnections - 1, true, [](StrictRank &self, uint32_t rank) {
    return conflict(self, rank, kConnections - 1, false);
  });
}

/// Rank 0 does something behind a stream that waits, which has CUDA launch nothing until the stream
/// goes on, or begin nothing that is launched.
void besideWhatHoldsLaunchesUp(const char *name, bool isStrict,
                               const std::function<cudaError_t(cudaStream_t)> &behind) {
  inTwo(name, 1, isStrict, [&](StrictRank &self, uint32_t rank) -> std::string {
    if (rank == 1)
      std::this_thread::sleep_for(kLate);
    if (std::string wrong = self.submit(0); !wrong.empty())
      return wrong;
    if (rank == 0) {
      std::this_thread::sleep_for(20ms); // all executors but one have left
      if (behind(self.stream(0)) != cudaSuccess)
        return "CUDA has failed";
    }
    return self.end();
  });
}
cudaError_t copyToPageableMemory(cudaStream_t stream) {
  constexpr uint64_t kWords = 1 << 16;
  uint32_t *memory = nullptr;
  cudaError_t error = cudaMallocAsync(reinterpret_cast<void **>(&memory), kWords * 4, stream);
  std::vector<uint32_t> words(kWords);
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(words.data(), memory, kWords * 4, cudaMemcpyDeviceToHost, stream);
  const cudaError_t freed = cudaFreeAsync(memory, stream);
  return error == cudaSuccess ? freed : error;
}
cudaError_t launchDeep(cudaStream_t stream) {
  return static_cast<cudaError_t>(launchWithDeepStack(stream));
}
TEST(Strict, ACopyToPageableMemoryBehindAStreamThatWaits) {
  besideWhatHoldsLaunchesUp("strict-copy", true, copyToPageableMemory);
}
TEST(Strict, AKernelThatNeedsMoreStackBehindAStreamThatWaits) {
  besideWhatHoldsLaunchesUp("strict-stack", true, launchDeep);
}
TEST(Strict, WithoutStrictModeACopyToPageableMemory) {
  besideWhatHoldsLaunchesUp("strict-not-copy", false, copyToPageableMemory);
}
TEST(Strict, WithoutStrictModeAKernelThatNeedsMoreStack) {
  besideWhatHoldsLaunchesUp("strict-not-stack", false, launchDeep);
}

/// Nothing is launched any more, so one thread block of the daemon is there, and does it all.
TEST(Strict, AllConnectionsMayBeHeld) {
  inTwo("strict-eight", kConnections, true, [](StrictRank &self, uint32_t rank) -> std::string {
    if (rank == 1)
      std::this_thread::sleep_for(kLate);
    for (uint64_t i = 0; i < kConnections; ++i) {
      if (std::string wrong = self.submit(rank == 0 ? i : kConnections - 1 - i); !wrong.empty())
        return wrong;
      if (rank == 0) // all executors leave in between
        std::this_thread::sleep_for(20ms);
    }
    return self.end();
  });
}

/// Again and again, with the device taken in between.
TEST(Strict, ManyKernelsHaveTheWholeDevice) {
  inTwo("strict-many", 1, true, [](StrictRank &self, uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < 20; ++round) {
      if (rank == round % 2)
        std::this_thread::sleep_for(30ms);
      if (std::string wrong = self.start(0); !wrong.empty())
        return wrong;
      if (rank != round % 2 && !self.hasDevice(kBound))
        return "it did not have the whole device";
      if (std::string wrong = self.waitForStarted(); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

TEST(Strict, ADeadlineNamesWhatIsWaitedFor) {
  inTwo("strict-late", 1, true, [](StrictRank &self, uint32_t rank) -> std::string {
    if (rank == 1) { // until the other one has failed
      for (auto late = Clock::now() + kBound;
           *occlCommGetLastError(self.comm) == 0 && Clock::now() < late;)
        std::this_thread::sleep_for(1ms);
      return "";
    }
    if (std::string wrong = self.submit(0); !wrong.empty())
      return wrong;
    const std::string text = self.failure();
    return text.find("before its deadline: rank 0 waits for rank 1") != std::string::npos
               ? ""
               : "another failure: " + text;
  });
}

TEST(Strict, AbortLetsTheStreamGoOn) {
  inTwo("strict-abort", 1, true, [](StrictRank &self, uint32_t rank) -> std::string {
    if (rank == 1) {
      std::this_thread::sleep_for(100ms);
      occlCommAbort(self.comm);
      return "";
    }
    if (std::string wrong = self.submit(0); !wrong.empty())
      return wrong;
    const auto begin = Clock::now();
    const std::string text = self.failure();
    if (text.find("occlCommAbort was called on rank 1") == std::string::npos)
      return "another failure: " + text;
    return Clock::now() - begin < 4s ? "" : "it took more than 4 seconds";
  });
}

TEST(Strict, AKilledRankLetsTheStreamGoOn) {
  inTwo(
      "strict-kill", 1, true,
      [](StrictRank &self, uint32_t rank) -> std::string {
        if (rank == 1) {
          std::this_thread::sleep_for(100ms);
          raise(SIGKILL);
        }
        if (std::string wrong = self.submit(0); !wrong.empty())
          return wrong;
        const std::string text = self.failure();
        return text.find("the process of rank 1 is gone") != std::string::npos
                   ? ""
                   : "another failure: " + text;
      },
      true);
}

/// What is started and not waited for in a stream holds up nothing of the program, neither what
/// waits for the whole device nor what frees memory.
std::string waitForDevice(StrictRank &self, uint32_t rank) {
  char *memory = nullptr;
  cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
  if (rank == 1)
    std::this_thread::sleep_for(5 * kLate);
  if (std::string wrong = self.start(0); !wrong.empty())
    return wrong;
  for (uint32_t i = 0; rank == 0 && i < 3; ++i) {
    std::this_thread::sleep_for(i * 20ms);
    const auto begin = Clock::now();
    if ((i < 2 ? cudaDeviceSynchronize() : cudaFree(memory)) != cudaSuccess)
      return "CUDA has failed";
    if (Clock::now() - begin > kLate)
      return (i < 2 ? "cudaDeviceSynchronize" : "cudaFree") + std::string(" waited for rank 1");
  }
  return self.waitForStarted();
}
TEST(Strict, SynchronizingTheDeviceDoesNotWaitForStartedCalls) {
  inTwo("strict-idle", 1, true, waitForDevice);
}

/// What has been in a stream before, and is over, changes nothing; nor does a kernel that makes the
/// stacks of the device anew, for which CUDA waits until the device is idle.
std::string waitForDeviceBehindACall(StrictRank &self, uint32_t rank) {
  char *memory = nullptr;
  cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
  if (std::string wrong = self.call(0); !wrong.empty())
    return wrong;
  if (rank == 1)
    std::this_thread::sleep_for(5 * kLate);
  if (std::string wrong = self.start(0); !wrong.empty())
    return wrong;
  const auto begin = Clock::now();
  if (rank == 0 && (cudaFree(memory) != cudaSuccess || launchDeep(self.stream(0)) != cudaSuccess ||
                    cudaStreamSynchronize(self.stream(0)) != cudaSuccess))
    return "CUDA has failed";
  if (Clock::now() - begin > kLate)
    return "cudaFree, or a kernel, waited for rank 1";
  return self.waitForStarted();
}
TEST(Strict, NorBehindACallInAStream) { inTwo("strict-call", 1, true, waitForDeviceBehindACall); }

/// It waits for the stream, which goes on when rank 1 has come.
TEST(Strict, CudaFreeWhileAStreamWaits) {
  inTwo("strict-free", 1, true, [](StrictRank &self, uint32_t rank) -> std::string {
    char *memory = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&memory), 1 << 20);
    if (rank == 1)
      std::this_thread::sleep_for(kLate);
    if (std::string wrong = self.submit(0); !wrong.empty())
      return wrong;
    if (rank == 0) {
      std::this_thread::sleep_for(20ms);
      if (cudaFree(memory) != cudaSuccess)
        return "CUDA has failed";
    }
    return self.end();
  });
}

} // namespace
} // namespace occl::gpu_test
