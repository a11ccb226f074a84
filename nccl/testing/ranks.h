// For tests: ranks that are threads of this process, with streams of their own.
#pragma once

#include "nccl/nccl_abi.h"
#include "nccl/streams/host_streams.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::nccl::testing {

/// Thread sanitizer makes everything some ten times slower.
#ifdef __SANITIZE_THREAD__
inline constexpr int kSlowness = 10;
#else
inline constexpr int kSlowness = 1;
#endif

/// Runs body(rank) on a thread for each rank, and ends the process if that takes kSlowness
/// minutes.
void eachRank(int numRanks, const std::function<void(int rank)> &body);

/// Runs body on this thread, and ends the process if that takes kSlowness
/// minutes.
void bounded(const std::function<void()> &body);

/// Communicators of ncclCommInitAll, each with a stream. What is still there is destroyed with it.
class Ranks {
public:
  explicit Ranks(int numRanks);
  ~Ranks();
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  int size() const { return static_cast<int>(comms.size()); }
  ncclComm_t &operator[](int rank) { return comms[static_cast<size_t>(rank)]; }
  cudaStream_t stream(int rank) { return streams[static_cast<size_t>(rank)]->handle(); }
  void synchronize(int rank) { streams[static_cast<size_t>(rank)]->synchronize(); }

private:
  std::vector<ncclComm_t> comms;
  std::vector<std::shared_ptr<HostStream>> streams;
};

/// An all-reduce of a float; "" if the sum of the ranks + 1 comes out.
std::string allReduceOnce(ncclComm_t comm, cudaStream_t stream = nullptr);

size_t sizeOf(ncclDataType_t type);
/// A value as an element of the type, and back. Small integers are exact in all types.
void store(ncclDataType_t type, void *at, double value);
double load(ncclDataType_t type, const void *at);

} // namespace occl::nccl::testing
