#include "nccl/gpu/device_ranks.h"

#include "nccl/testing/ranks.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace occl::nccl::testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string lastError() { return ncclGetLastError(nullptr); }

std::string check(const char *function, ncclResult_t result) {
  return result == ncclSuccess ? "" : std::string(function) + ": " + lastError();
}

std::string check(const char *function, cudaError_t result) {
  return result == cudaSuccess ? "" : std::string(function) + ": " + cudaGetErrorString(result);
}

/// Before CUDA starts: streams that share a connection to the device wait for each other.
void OnDevice::SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }

void OnDevice::SetUp() {
  int number = 0;
  if (cudaGetDeviceCount(&number) != cudaSuccess || number == 0)
    GTEST_SKIP() << "no CUDA device";
  const char *given = std::getenv("OCCL_TEST_RANKS");
  start(given ? std::atoi(given) : 2);
}

void OnDevice::TearDown() { release(); }

void OnDevice::release() {
  // Communicators before streams and buffers: destroying one waits for what it has begun there.
  for (Rank &rank : ranks)
    if (rank.comm) {
      EXPECT_EQ(ncclCommDestroy(rank.comm), ncclSuccess) << lastError();
    }
  for (Rank &rank : ranks) {
    EXPECT_EQ(cudaStreamDestroy(rank.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(rank.other), cudaSuccess);
    EXPECT_EQ(cudaFree(rank.send), cudaSuccess);
    EXPECT_EQ(cudaFree(rank.recv), cudaSuccess);
  }
  ranks.clear();
}

void OnDevice::start(int numRanks) {
  // A test may start ranks several times, with other numbers.
  release();
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ranks.resize(static_cast<size_t>(numRanks));
  std::vector<ncclComm_t> comms(ranks.size());
  // Two streams for each rank, for tests about order between streams; buffers of one size for all.
  for (Rank &rank : ranks) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&rank.other, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&rank.send), kBytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&rank.recv), kBytes), cudaSuccess);
  }
  // All on the first device: NCCL refuses that, OCCL does not, and machines for tests have one.
  const std::vector<int> devices(ranks.size(), 0);
  ASSERT_EQ(ncclCommInitAll(comms.data(), numRanks, devices.data()), ncclSuccess) << lastError();
  for (size_t r = 0; r < ranks.size(); ++r)
    ranks[r].comm = comms[r];
}

void OnDevice::inThreads(const std::function<std::string(int)> &body) {
  // A text for each rank, so that failures name it and come in the order of ranks.
  std::vector<std::string> wrong(ranks.size());
  eachRank(size(), [&](int rank) {
    wrong[static_cast<size_t>(rank)] = check("cudaSetDevice", cudaSetDevice(0));
    if (wrong[static_cast<size_t>(rank)].empty())
      wrong[static_cast<size_t>(rank)] = body(rank);
  });
  for (size_t r = 0; r < wrong.size(); ++r)
    EXPECT_EQ(wrong[r], "") << "rank " << r;
}

std::string OnDevice::synchronize(cudaStream_t stream) {
  // Not cudaStreamSynchronize, which would never return if a collective hangs: a test must fail,
  // not stop.
  for (const auto end = Clock::now() + 30s;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state != cudaErrorNotReady)
      return check("cudaStreamQuery", state);
    if (Clock::now() > end)
      return "the stream does not end";
    std::this_thread::yield();
  }
}

void OnDevice::give(int rank, const std::vector<int> &values) {
  const Rank &on = ranks[static_cast<size_t>(rank)];
  EXPECT_EQ(cudaMemcpyAsync(on.send, values.data(), values.size() * sizeof(int),
                            cudaMemcpyHostToDevice, on.stream),
            cudaSuccess);
  EXPECT_EQ(synchronize(on.stream), "");
}

std::vector<int> OnDevice::taken(int rank, size_t count) {
  const Rank &on = ranks[static_cast<size_t>(rank)];
  std::vector<int> values(count);
  EXPECT_EQ(synchronize(on.stream), "");
  EXPECT_EQ(cudaMemcpyAsync(values.data(), on.recv, count * sizeof(int), cudaMemcpyDeviceToHost,
                            on.stream),
            cudaSuccess);
  EXPECT_EQ(synchronize(on.stream), "");
  return values;
}

ncclResult_t OnDevice::sum(int rank, size_t count, ncclComm_t comm, cudaStream_t stream) {
  const Rank &on = ranks[static_cast<size_t>(rank)];
  give(rank, std::vector<int>(count, rank + 1));
  return ncclAllReduce(on.send, on.recv, count, ncclInt32, ncclSum, comm, stream);
}

void OnDevice::expectSums() {
  constexpr size_t kCount = 1001;
  inThreads([&](int rank) -> std::string {
    // Rank r contributes r + 1 in each element, so the sum is n (n + 1) / 2.
    const Rank &on = ranks[static_cast<size_t>(rank)];
    std::string wrong = check("ncclAllReduce", sum(rank, kCount, on.comm, on.stream));
    const int right = size() * (size() + 1) / 2;
    if (wrong.empty() && taken(rank, kCount) != std::vector<int>(kCount, right))
      wrong = "the sum is wrong";
    return wrong;
  });
}

ncclResult_t OnDevice::failureOf(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  for (const auto end = Clock::now() + 20s; state == ncclSuccess && Clock::now() < end;) {
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess) << lastError();
    std::this_thread::sleep_for(1ms);
  }
  return state;
}

} // namespace occl::nccl::testing
