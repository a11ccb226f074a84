// Tests of ranks that are processes, on as many devices as there are.
#pragma once

#include "runtime/api/testing/processes.h"
#include "test/gpu/harness/device_job.h"

#include <cstdint>
#include <functional>
#include <string>

namespace occl::gpu_test {

using communicator::testing::jobName;
using communicator::testing::Processes;

/// OCCL_TEST_RANKS of the environment, or 2.
uint32_t processRanks();

/// Asks the system, not CUDA: a process must not use CUDA before it has divided.
bool hasDevice();

/// With OCCL_TEST_MACHINES in the environment the processes of tests are as on two machines, in
/// turn: one rank here, one there.
bool areOnMachines();

/// body(comm, rank) in processes that have joined a communicator of so many ranks.
std::function<std::string(uint32_t)>
joined(uint32_t numRanks, const std::string &name,
       const std::function<std::string(occlComm_t, uint32_t)> &body,
       const occlConfig_t &config = smallConfig());

/// The last rank has done its part of a broadcast, which the others call a second later, and then
/// its process ends without having destroyed its communicator. run: makes the call on this rank and
/// waits for it; "" or what is wrong. Of the others: "" if they have the data and no failure, or
/// what is wrong.
std::string broadcastAndEnd(occlComm_t comm, uint32_t rank, RankOnDevice &onDevice,
                            const std::function<std::string(const occlCall_t &)> &run);

/// Waits for the processes, each of which has to end well: a failure of the test says what was
/// wrong.
void expectAllRight(Processes &processes, uint32_t numRanks);

} // namespace occl::gpu_test
