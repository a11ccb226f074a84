// For tests: ranks that are threads of this process and share the first CUDA device, with a stream
// and buffers each.
#pragma once

#include "nccl/nccl_abi.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace occl::nccl::testing {

/// Test cases of ranks on one device; skipped where there is none. Buffers are there before
/// anything runs and as long as the fixture, since cudaFree waits for what runs, and launches for
/// it.
class OnDevice : public ::testing::Test {
protected:
  static constexpr size_t kBytes = 24 << 20;

  /// A rank: `send` and `recv` are kBytes each.
  struct Rank {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr, other = nullptr;
    char *send = nullptr, *recv = nullptr;
  };

  static void SetUpTestSuite();
  /// Makes OCCL_TEST_RANKS ranks, or 2, by ncclCommInitAll.
  void SetUp() override;
  /// Destroys what communicators there still are.
  void TearDown() override;

  int size() const { return static_cast<int>(ranks.size()); }
  /// Ranks anew, with communicators.
  void start(int numRanks);
  /// body(rank) on a thread for each rank, whose current device is the rank's; returns "" or what
  /// is wrong, which fails the test. Ends the process after a minute.
  void inThreads(const std::function<std::string(int rank)> &body);

  /// Waits for the stream, at most 30 seconds. "" or what is wrong.
  static std::string synchronize(cudaStream_t stream);
  /// Ints to the rank's `send`, and from its `recv`, before and after what its stream has.
  void give(int rank, const std::vector<int> &values);
  std::vector<int> taken(int rank, size_t count);
  /// An all-reduce of so many ints in the stream, each the rank + 1, from send to recv.
  ncclResult_t sum(int rank, size_t count, ncclComm_t comm, cudaStream_t stream);
  /// All of them, checked, by a thread for each rank: the communicators work.
  void expectSums();
  /// What ncclCommGetAsyncError comes to say, within 20 seconds, if it is not Success.
  static ncclResult_t failureOf(ncclComm_t comm);

  std::vector<Rank> ranks;

private:
  void release();
};

std::string lastError();
/// "" or the function with its error.
std::string check(const char *function, ncclResult_t result);
std::string check(const char *function, cudaError_t result);

} // namespace occl::nccl::testing
