// The steps that most end-to-end tests consist of, for a rank that is a thread or a process. Those
// that return text return "" or what is wrong.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/api/testing/harness.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// The default configuration with this deadline.
occlConfig_t withTimeout(uint32_t milliseconds);

/// "call: text of the last error".
std::string lastError(const char *call);

/// What occlCommReport says.
std::string reportOf(occlComm_t comm);

/// Submits without callback, and again while there is no room.
occlResult_t submitOnceFree(Job &job, occlComm_t comm, uint32_t rank, occlRequest_t *request);

std::string waitForAll(occlComm_t comm, std::span<const occlRequest_t> requests);

/// Whether the outputs are right.
std::string checkAll(std::span<const Job> jobs, uint32_t rank);

/// Submits jobs[i] for each i of `order`, once there is room, waits for all, and checks all jobs.
std::string runInOrder(occlComm_t comm, std::span<Job> jobs, uint32_t rank,
                       std::span<const uint32_t> order);

} // namespace occl::communicator::testing
