// Processes that end while a stream of theirs waits in a collective: they end at once, whichever
// way, and the rank that needs them hears of it. Ranks share the first CUDA device.
#include "nccl/gpu/device_ranks.h"
#include "nccl/testing/shared_id.h"
#include "runtime/api/testing/processes.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::nccl::testing {
namespace {

using namespace std::chrono_literals;
using communicator::testing::Processes;
using Clock = std::chrono::steady_clock;

/// A rank of a process.
struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int *values = nullptr;

  std::string join(const ncclUniqueId &id, int rank) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    std::string wrong = check("cudaSetDevice", cudaSetDevice(0));
    if (wrong.empty())
      wrong = check("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (wrong.empty())
      wrong = check("cudaMalloc", cudaMalloc(reinterpret_cast<void **>(&values), 1 << 20));
    if (wrong.empty())
      wrong = check("ncclCommInitRank", ncclCommInitRank(&comm, 2, id, rank));
    if (wrong.empty())
      wrong = check("ncclAllReduce", sum());
    return wrong.empty() ? check("cudaStreamSynchronize", cudaStreamSynchronize(stream)) : wrong;
  }
  ncclResult_t sum() const {
    return ncclAllReduce(values, values, 1 << 18, ncclInt32, ncclSum, comm, stream);
  }
};

/// With a call in its stream that the other rank does not join.
std::string endInTheMiddle(Rank &self, void (*end)()) {
  if (std::string wrong = check("ncclAllReduce", self.sum()); !wrong.empty())
    return wrong;
  std::this_thread::sleep_for(100ms);
  if (cudaStreamQuery(self.stream) != cudaErrorNotReady)
    return "the stream does not wait";
  // As a program does whose other thread waits for the stream.
  std::thread([stream = self.stream] { cudaStreamSynchronize(stream); }).detach();
  std::this_thread::sleep_for(20ms);
  end();
  return "it goes on";
}

/// The first call may have all that it needs of the rank that is gone; a later one has not.
std::string missTheOther(Rank &self) {
  ncclResult_t state = ncclSuccess;
  for (const auto until = Clock::now() + 30s; state == ncclSuccess;) {
    const ncclResult_t result = self.sum();
    if (result != ncclSuccess)
      state = result;
    else
      ncclCommGetAsyncError(self.comm, &state);
    if (Clock::now() > until)
      return "nothing is heard of the rank that is gone";
    std::this_thread::sleep_for(50ms);
  }
  const std::string text = lastError();
  if (state != ncclRemoteError || text.find("rank 1") == std::string::npos)
    return "the error is " + std::to_string(state) + ": " + text;
  if (std::string wrong = check("ncclCommAbort", ncclCommAbort(self.comm)); !wrong.empty())
    return wrong;
  return check("cudaStreamSynchronize", cudaStreamSynchronize(self.stream));
}

void expectEnd(void (*end)(), int status) {
  if (access("/dev/nvidiactl", F_OK) != 0) // CUDA may not be asked before the processes are forked
    GTEST_SKIP() << "no CUDA device";
  const SharedId id;
  Processes processes(2, [&](uint32_t r) -> std::string {
    Rank self;
    if (std::string wrong = self.join(id.get(static_cast<int>(r)), static_cast<int>(r));
        !wrong.empty())
      return wrong;
    if (r == 1)
      return endInTheMiddle(self, end);
    std::this_thread::sleep_for(1s);
    return missTheOther(self);
  });
  const auto begin = Clock::now();
  EXPECT_EQ(processes.join(1), status) << processes.wrong(1);
  EXPECT_LT(Clock::now() - begin, 30s);
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(ExitOnDevice, AtOnceWithAStreamThatWaits) {
  expectEnd([] { _exit(0); }, 0); // as os._exit
}

TEST(ExitOnDevice, WithDestructorsAndAStreamThatWaits) {
  expectEnd([] { std::exit(0); }, 0);
}

TEST(ExitOnDevice, ByASignalWithAStreamThatWaits) {
  expectEnd([] { raise(SIGKILL); }, -1);
}

/// Of a process with four ranks, some of which threads of the library have just then.
void expectExit(bool aborts) {
  if (access("/dev/nvidiactl", F_OK) != 0)
    GTEST_SKIP() << "no CUDA device";
  for (int round = 0; round < 8; ++round) {
    Processes processes(1, [&](uint32_t) -> std::string {
      const std::vector<int> devices(4, 0);
      std::vector<ncclComm_t> comms(devices.size());
      std::string wrong =
          check("ncclCommInitAll", ncclCommInitAll(comms.data(), 4, devices.data()));
      std::this_thread::sleep_for(round * 30ms);
      for (size_t i = 0; i < comms.size() && aborts && wrong.empty(); ++i)
        wrong = check("ncclCommAbort", ncclCommAbort(comms[i]));
      if (wrong.empty())
        std::exit(0);
      return wrong;
    });
    EXPECT_EQ(processes.join(0), 0) << processes.wrong(0) << ", round " << round;
  }
}

TEST(ExitOnDevice, WhileRanksComeTogether) { expectExit(false); }

TEST(ExitOnDevice, RightAfterAnAbort) { expectExit(true); }

} // namespace
} // namespace occl::nccl::testing
