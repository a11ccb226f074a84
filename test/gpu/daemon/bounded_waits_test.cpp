// What takes long on the device because of the user's own kernels ends nothing that is not its own,
// and nobody waits for such a kernel who need not: two ranks that are processes, skipped where
// there is no device.
#include "test/gpu/daemon/joined.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// The user's kernel runs so long, and nothing here takes half of that.
constexpr uint32_t kKernelMs = 10'000;
constexpr auto kMost = 5s;

/// What `action` says is wrong, or that it took too long, or the kernel beside is over.
template <class Action>
std::string inTime(const Joined &joined, const char *what, const Action &action) {
  const auto begin = Clock::now();
  std::string wrong = action();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  if (wrong.empty() && took > kMost)
    wrong = "it took " + std::to_string(took.count()) + " ms";
  if (wrong.empty() && cudaStreamQuery(joined.beside) != cudaErrorNotReady)
    wrong = "the kernel beside is over";
  return wrong.empty() ? "" : std::string(what) + ": " + wrong;
}

std::string startAndWait(const Joined &joined, occlComm_t comm) {
  remember(comm, small(), 0);
  return runKnown(comm, 1, joined.input, joined.output) == occlSuccess ? "" : occlGetLastError();
}

std::string resultOf(occlResult_t result) {
  return result == occlSuccess ? "" : std::string(occlGetLastError());
}

/// The daemon's kernel has run before: its first launch in a process waits for the device.
TEST(BoundedWaits, MakingAndDividingWaitForNoKernelOfTheUser) {
  inTwo("making", [](Joined &joined) -> std::string {
    occlComm_t part = nullptr, another = nullptr;
    std::string wrong = joined.call() + startAndWait(joined, joined.comm);
    if (wrong.empty() && launchDelay(joined.beside, kKernelMs) != cudaSuccess)
      wrong = "the kernel is not launched";
    if (wrong.empty())
      wrong = inTime(joined, "occlCommSplit",
                     [&] { return resultOf(occlCommSplit(joined.comm, 0, 0, nullptr, &part)); });
    if (wrong.empty())
      wrong = inTime(joined, "a call of the part", [&] {
        return callInStream(part, small(), joined.input, joined.output, joined.stream);
      });
    if (wrong.empty())
      wrong = inTime(joined, "occlCommInitRank", [&] {
        occlConfig_t config = smallConfig();
        config.timeoutMs = 0;
        cudaGetDevice(reinterpret_cast<int *>(&config.device));
        return resultOf(occlCommInitRank(&another, kJoined, joined.rank,
                                         (joined.job + "-another").c_str(), &config));
      });
    if (wrong.empty())
      wrong =
          inTime(joined, "its daemon's first call", [&] { return startAndWait(joined, another); });
    for (occlComm_t comm : {part, another})
      occlCommDestroy(comm);
    return wrong;
  });
}

/// The daemon has run: its kernel leaves, and its memory is to be freed.
TEST(BoundedWaits, TheLastOneDestroysWhileAKernelOfTheUserRuns) {
  inTwo("last", [](Joined &joined) -> std::string {
    std::string wrong = startAndWait(joined, joined.comm);
    if (wrong.empty() && launchDelay(joined.beside, kKernelMs) != cudaSuccess)
      wrong = "the kernel is not launched";
    if (!wrong.empty())
      return wrong;
    return inTime(joined, "occlCommDestroy", [&] {
      joined.destroy();
      return std::string();
    });
  });
}

/// A kernel of rank 0 has all multiprocessors, so nothing of the daemon runs there. The deadline
/// ends the communicator whose it is, and says so; no rank is taken for gone. Rank 0's call returns
/// when its device cannot access the buffers any more: after that kernel.
TEST(BoundedWaits, ADeadlineBesideAFullDeviceEndsItsCommunicatorAlone) {
  inTwo("full", [](Joined &joined) -> std::string {
    occlComm_t part = nullptr;
    if (occlCommSplit(joined.comm, 0, 0, nullptr, &part) != occlSuccess)
      return occlGetLastError();
    std::string wrong = startAndWait(joined, part) + startAndWait(joined, joined.comm);
    remember(part, small(), 1500);
    constexpr uint32_t kFullMs = 6000;
    if (wrong.empty() && joined.rank == 0 &&
        launchOccupation(joined.beside, kFullMs) != cudaSuccess)
      wrong = "the kernel is not launched";
    std::this_thread::sleep_for(200ms);
    const auto begin = Clock::now();
    if (wrong.empty() && runKnown(part, 1, joined.input, joined.output) == occlSuccess)
      wrong = "nothing stopped it";
    const std::string text = occlCommGetLastError(part);
    const Clock::duration most = joined.rank == 0 ? kFullMs * 1ms + 2s : Clock::duration(kMost);
    if (wrong.empty() &&
        (Clock::now() - begin > most || text.find("before its deadline") == std::string::npos ||
         text.find("gone") != std::string::npos))
      wrong = "the communicator failed so: " + text;
    if (wrong.empty())
      wrong = occlCommGetLastError(joined.comm); // which has no deadline
    if (wrong.empty())
      wrong = startAndWait(joined, joined.comm);
    occlCommDestroy(part);
    return wrong;
  });
}

/// With time enough it is only late.
TEST(BoundedWaits, ALongerDeadlineBesideAFullDeviceEndsNothing) {
  inTwo("late", [](Joined &joined) -> std::string {
    std::string wrong = startAndWait(joined, joined.comm);
    remember(joined.comm, small(), 20'000);
    if (wrong.empty() && joined.rank == 0 && launchOccupation(joined.beside, 4000) != cudaSuccess)
      wrong = "the kernel is not launched";
    std::this_thread::sleep_for(200ms);
    if (wrong.empty() && runKnown(joined.comm, 1, joined.input, joined.output) != occlSuccess)
      wrong = occlGetLastError();
    return wrong;
  });
}

/// In the mode in which what any thread asks of CUDA may spoil a capture.
TEST(BoundedWaits, ACommunicatorThatComesSpoilsNoCapture) {
  inTwo("capture", [](Joined &joined) -> std::string {
    occlComm_t part = nullptr;
    std::string wrong = startAndWait(joined, joined.comm);
    if (cudaStreamBeginCapture(joined.beside, cudaStreamCaptureModeGlobal) != cudaSuccess)
      return "the capture does not begin";
    if (wrong.empty())
      wrong = resultOf(occlCommSplit(joined.comm, 0, 0, nullptr, &part));
    if (wrong.empty())
      wrong = startAndWait(joined, part);
    cudaGraph_t graph = nullptr;
    const cudaError_t captured = cudaStreamEndCapture(joined.beside, &graph);
    occlCommDestroy(part); // which would spoil it
    if (wrong.empty() && captured != cudaSuccess)
      wrong = cudaGetErrorString(captured);
    cudaGraphDestroy(graph);
    return wrong;
  });
}

} // namespace
} // namespace occl::gpu_test
