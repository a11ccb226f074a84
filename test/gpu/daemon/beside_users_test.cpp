// What the user's own kernels and lateness do to communicators: nothing but waiting, and errors
// that say what they are. Two ranks that are processes, skipped where there is no device.
#include "runtime/api/occl_insight.h"
#include "test/gpu/daemon/joined.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Rank 0 comes late, so that rank 1's kernel says that it waits for it; then it leaves at once.
TEST(BesideUsers, ARankThatCameLateAndLeavesHarmsNobody) {
  for (uint32_t round = 0; round < 8; ++round)
    inTwo("leaves", [](Joined &joined) -> std::string {
      if (joined.rank == 0) {
        std::this_thread::sleep_for(60ms);
        std::string wrong = joined.call();
        joined.destroy();
        return wrong;
      }
      std::string wrong = joined.call();
      std::this_thread::sleep_for(150ms);
      return wrong.empty() ? occlCommGetLastError(joined.comm) : wrong;
    });
}

/// A user's kernel has every multiprocessor for longer than executors are given to leave; somebody
/// asks for a report, and starts a trace.
TEST(BesideUsers, AReportBesideAKernelThatFillsTheDevice) {
  inTwo("report", [](Joined &joined) -> std::string {
    if (runKnown(joined.comm, 1, joined.input, joined.output) != occlSuccess)
      return occlGetLastError();
    if (joined.rank == 0 && launchOccupation(joined.beside, 9000) != cudaSuccess)
      return "the kernel is not launched";
    std::this_thread::sleep_for(200ms);
    occlRequest_t request = 0;
    if (startKnown(joined.comm, 1, joined.input, joined.output, nullptr, nullptr, &request) !=
        occlSuccess)
      return occlGetLastError();
    char text[4096];
    for (uint32_t i = 0; i < 30; ++i) {
      if (occlCommReport(joined.comm, text, sizeof text, nullptr) != occlSuccess)
        return occlGetLastError();
      std::this_thread::sleep_for(100ms);
    }
    (void)occlTraceStart(joined.comm, "/dev/null");
    if (occlWait(joined.comm, request) != occlSuccess)
      return std::string("occlWait: ") + occlGetLastError();
    cudaStreamSynchronize(joined.beside);
    // The daemon goes on.
    return runKnown(joined.comm, 1, joined.input, joined.output) == occlSuccess
               ? ""
               : std::string("occlWait: ") + occlGetLastError();
  });
}

TEST(BesideUsers, DestroyDoesNotWaitForTheUsersKernels) {
  inTwo("destroy", [](Joined &joined) -> std::string {
    std::string wrong = joined.call();
    if (wrong.empty() && launchDelay(joined.beside, 10'000) != cudaSuccess)
      wrong = "the kernel is not launched";
    const auto begin = Clock::now();
    joined.destroy();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (wrong.empty() && took > 7s)
      wrong = "occlCommDestroy took " + std::to_string(took.count()) + " ms";
    if (wrong.empty() && cudaStreamQuery(joined.beside) != cudaErrorNotReady)
      wrong = "the kernel was over";
    return wrong;
  });
}

/// One thread's stream is full of what waits for rank 1, which comes to another communicator first.
TEST(BesideUsers, AThreadThatCudaHoldsUpKeepsNobodyFromOtherCommunicators) {
  inTwo("held-up", [](Joined &joined) -> std::string {
    constexpr uint32_t kCalls = 4000;
    occlComm_t other = nullptr;
    if (occlCommSplit(joined.comm, 0, 0, nullptr, &other) != occlSuccess)
      return occlGetLastError();
    const auto one = [&](occlComm_t comm, cudaStream_t stream) {
      return callInStream(comm, small(), joined.input, joined.output, stream);
    };
    // The first calls take memory and copy tables.
    std::string wrong = one(joined.comm, joined.stream) + one(other, joined.beside);
    cudaStreamSynchronize(joined.stream);
    cudaStreamSynchronize(joined.beside);
    std::string ofMany, ofOne;
    auto many = [&] {
      for (uint32_t i = 0; i < kCalls && ofMany.empty(); ++i)
        ofMany = one(joined.comm, joined.stream);
    };
    auto ofOther = [&] {
      ofOne = one(other, joined.beside);
      cudaStreamSynchronize(joined.beside);
    };
    if (joined.rank == 1) {
      std::this_thread::sleep_for(1s);
      ofOther();
      many();
    } else {
      std::thread thread(many);
      std::this_thread::sleep_for(500ms);
      ofOther();
      thread.join();
    }
    cudaStreamSynchronize(joined.stream);
    wrong += ofOne + ofMany + occlCommGetLastError(joined.comm) + occlCommGetLastError(other);
    occlCommDestroy(other);
    return wrong;
  });
}

/// Everybody learns of an error of one process's kernel, by its name.
TEST(BesideUsers, AnIllegalAccessIsNamedOnAllRanks) {
  inTwo("illegal", [](Joined &joined) -> std::string {
    if (std::string wrong = joined.call(); !wrong.empty())
      return wrong;
    if (joined.rank == 0) {
      if (launchIllegalAccess(joined.beside) != cudaSuccess)
        return "the kernel is not launched";
      std::this_thread::sleep_for(1s);
    }
    std::string text = joined.call();
    for (auto end = Clock::now() + 20s; text.empty() && Clock::now() < end;)
      text = occlCommGetLastError(joined.comm);
    const bool isRight = text.find("rank 0") != std::string::npos &&
                         text.find("cudaErrorIllegalAddress") != std::string::npos;
    return isRight ? "" : "rank " + std::to_string(joined.rank) + ": " + text;
  });
}

/// Without a deadline a late rank is waited for, and somebody is told.
TEST(BesideUsers, ALongWaitIsReportedAndGoesOn) {
  setenv("OCCL_LONG_WAIT_MS", "300", 1);
  inTwo("long", [](Joined &joined) -> std::string {
    const std::string path = "/tmp/occl-long-" + std::to_string(getpid());
    if (joined.rank == 0 && std::freopen(path.c_str(), "w", stderr) == nullptr)
      return "standard error cannot be redirected";
    std::this_thread::sleep_for(joined.rank * 2500ms);
    std::string wrong = joined.call();
    std::this_thread::sleep_for(joined.rank * 2500ms);
    occlRequest_t request = 0;
    if (wrong.empty() && (startKnown(joined.comm, 1, joined.input, joined.output, nullptr, nullptr,
                                     &request) != occlSuccess ||
                          occlWait(joined.comm, request) != occlSuccess))
      wrong = occlGetLastError();
    std::fflush(stderr);
    std::ostringstream said;
    said << std::ifstream(path).rdbuf();
    std::remove(path.c_str());
    for (const char *part :
         {"has waited in a stream of rank 0 for 300 ms and goes on; this rank waits for rank 1",
          "has been in flight on rank 0 for 300 ms and goes on"})
      if (wrong.empty() && joined.rank == 0 && said.str().find(part) == std::string::npos)
        wrong = std::string("'") + part + "' is not in '" + said.str() + "'";
    return wrong;
  });
  unsetenv("OCCL_LONG_WAIT_MS");
}

} // namespace
} // namespace occl::gpu_test
