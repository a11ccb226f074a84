// Tests of ranks that are threads: on as many devices as there are, several on one if need be.
#pragma once

#include "test/gpu/device_job.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::gpu_test {

/// OCCL_TEST_RANKS of the environment, or 3.
uint32_t numRanks();

/// A communicator of numRanks() ranks. Skips its tests visibly where there is no device.
class RanksOnDevices : public testing::Test {
protected:
  /// Streams that share a connection to the device wait for each other. Before CUDA starts.
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;
  /// Anew, also while there are ranks already.
  void start(uint32_t n, const occlConfig_t &config = smallConfig());

  /// body(rank) on a thread each; what they say is wrong.
  void inThreads(const std::function<std::string(uint32_t)> &body);
  /// All ranks run the cases, one after the other, until one is wrong.
  void runAll(const std::vector<Case> &cases);
  Case one(plan::Plan plan, uint64_t id = 1) const;
  void registerOnAll(const Case &what, uint32_t timeoutMs = 20000);
  std::string enqueue(uint32_t rank, uint64_t id, bool isRegistered = false);
  /// The communicator's failure, once it has one.
  std::string failureOf(uint32_t rank);

  uint32_t devices = 0;
  std::vector<occlComm_t> comms;
  std::vector<std::unique_ptr<RankOnDevice>> onDevices;
};

} // namespace occl::gpu_test
