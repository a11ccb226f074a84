// A rank of two processes with a communicator, streams and buffers of its own, for tests of what
// the user's own kernels do to communicators.
#pragma once

#include "plan/testing/example_plans.h"
#include "test/gpu/harness/processes_on_devices.h"
#include "test/gpu/harness/user_kernels.h"

#include <gtest/gtest.h>

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <thread>

namespace occl::gpu_test {

inline constexpr uint32_t kJoined = 2;

inline Case small() {
  Case what;
  what.plan = plan::testing::twoShotAllReduce(kJoined);
  what.count = 1000;
  return what;
}

/// A communicator that the body destroys itself, if it likes.
class Joined {
public:
  Joined(const std::string &job, uint32_t rank) : job(job), rank(rank) {
    int devices = 0;
    cudaGetDeviceCount(&devices);
    occlConfig_t config = smallConfig();
    config.timeoutMs = 0;
    config.device = rank % static_cast<uint32_t>(devices);
    cudaSetDevice(static_cast<int>(config.device));
    if (occlCommInitRank(&comm, kJoined, rank, job.c_str(), &config) != occlSuccess)
      wrong = occlGetLastError();
    else if (loadUserKernels() != cudaSuccess)
      wrong = "the user's kernels cannot be loaded";
    remember(comm, small(), 0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void **>(&input), 4096);
    cudaMalloc(reinterpret_cast<void **>(&output), 4096);
    cudaMemset(input, 0, 4096);
  }
  ~Joined() { destroy(); }
  void destroy() {
    occlCommDestroy(comm);
    comm = nullptr;
  }
  /// In the stream, until it has ended. "" or what is wrong.
  std::string call() {
    std::string failed = callInStream(comm, small(), input, output, stream);
    while (failed.empty() && cudaStreamQuery(stream) == cudaErrorNotReady)
      std::this_thread::yield();
    return failed.empty() ? occlCommGetLastError(comm) : failed;
  }

  const std::string job;
  const uint32_t rank;
  occlComm_t comm = nullptr;
  cudaStream_t stream = nullptr, beside = nullptr;
  char *input = nullptr, *output = nullptr;
  std::string wrong;
};

inline void inTwo(const char *name, const std::function<std::string(Joined &)> &body) {
  if (!hasDevice())
    GTEST_SKIP() << "no CUDA device";
  const std::string job = jobName(name);
  Processes processes(kJoined, [&](uint32_t rank) {
    Joined joined(job, rank);
    return joined.wrong.empty() ? body(joined) : joined.wrong;
  });
  expectAllRight(processes, kJoined);
}

} // namespace occl::gpu_test
