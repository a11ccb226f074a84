// Tests of ranks that are threads: on as many devices as there are, several on one if need be.
#pragma once

#include "test/gpu/harness/device_job.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {

/// OCCL_TEST_RANKS of the environment, or 3.
uint32_t numRanks();

/// Of the first device that are taken, by whomever.
uint64_t bytesTaken();

/// All of the rank's memory that is free, down to the smallest piece.
void takeAllMemory(occlComm_t comm);

/// Memory of the device, freed at the end.
class DeviceBuffer {
public:
  explicit DeviceBuffer(uint64_t bytes) {
    EXPECT_EQ(cudaMalloc(&memory, std::max<uint64_t>(bytes, 1)), cudaSuccess);
  }
  ~DeviceBuffer() { cudaFree(memory); }
  DeviceBuffer(const DeviceBuffer &) = delete;
  DeviceBuffer &operator=(const DeviceBuffer &) = delete;
  char *get() const { return static_cast<char *>(memory); }

private:
  void *memory = nullptr;
};

/// A communicator of numRanks() ranks. Skips its tests visibly where there is no device.
class RanksOnDevices : public testing::Test {
protected:
  /// Streams that share a connection to the device wait for each other. Before CUDA starts.
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;
  /// Anew, also while there are ranks already.
  void start(uint32_t n, const occlConfig_t &config = smallConfig());
  /// numRanks() with 256 MiB of device memory each, and this timeout; 0: none.
  void startWithTimeout(uint32_t timeoutMs);
  /// So many communicators in all, of the same ranks on the same devices: orders may conflict
  /// between them. Each has called each of the cases once, so that everything is in its place.
  void startMany(uint32_t number, uint32_t n, const occlConfig_t &config,
                 const std::vector<Case> &cases);
  /// Communicator 0 is that of `comms`.
  occlComm_t commOf(uint32_t rank, size_t which) const {
    return which == 0 ? comms[rank] : more[which - 1][rank];
  }

  uint32_t n() const { return static_cast<uint32_t>(comms.size()); }
  cudaStream_t streamOf(uint32_t rank) const { return onDevices[rank]->stream(); }

  /// body(rank) on a thread each; what they say is wrong.
  void inThreads(const std::function<std::string(uint32_t)> &body);
  /// All ranks run the cases, one after the other, until one is wrong.
  void runAll(const std::vector<Case> &cases);
  Case one(plan::Plan plan, uint64_t id = 1) const;
  void rememberOnAll(const Case &what, uint32_t timeoutMs = 20000);
  /// A call in the rank's stream. "" or what is wrong.
  std::string call(uint32_t rank, const Case &what, uint32_t timeoutMs = 0);
  /// The same on all ranks, until it has ended.
  void callOnAll(const Case &what);
  /// The communicator's failure, once it has one.
  std::string failureOf(uint32_t rank, size_t which = 0);
  /// The same once the work of the rank's stream is over.
  std::string failureAfter(uint32_t rank);

  uint32_t devices = 0;
  std::vector<occlComm_t> comms;
  std::vector<std::unique_ptr<RankOnDevice>> onDevices;

private:
  std::string makeMore(uint32_t rank, const occlConfig_t &config, const std::vector<Case> &cases);

  std::vector<std::vector<occlComm_t>> more; // but the first, by rank
};

} // namespace occl::gpu_test
