#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <thread>

namespace occl::communicator::testing {

occlConfig_t withTimeout(uint32_t milliseconds) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = milliseconds;
  return config;
}

std::string lastError(const char *call) { return std::string(call) + ": " + occlGetLastError(); }

std::string reportOf(occlComm_t comm) {
  std::string text(1 << 16, '\0');
  size_t length = 0;
  occlResult_t result = occlCommReport(comm, text.data(), text.size(), &length);
  EXPECT_EQ(result, occlSuccess);
  if (result != occlSuccess)
    return lastError("occlCommReport");
  text.resize(length);
  return text;
}

occlResult_t submitOnceFree(Job &job, occlComm_t comm, uint32_t rank, occlRequest_t *request) {
  occlResult_t result = occlAgain;
  while ((result = job.submit(comm, rank, request)) == occlAgain)
    std::this_thread::yield();
  return result;
}

std::string waitForAll(occlComm_t comm, std::span<const occlRequest_t> requests) {
  for (occlRequest_t request : requests)
    if (occlWait(comm, request) != occlSuccess)
      return lastError("occlWait");
  return {};
}

std::string checkAll(std::span<const Job> jobs, uint32_t rank) {
  for (const Job &job : jobs)
    if (std::string wrong = job.check(rank); !wrong.empty())
      return wrong;
  return {};
}

std::string runInOrder(occlComm_t comm, std::span<Job> jobs, uint32_t rank,
                       std::span<const uint32_t> order) {
  std::vector<occlRequest_t> requests;
  for (uint32_t j : order)
    if (submitOnceFree(jobs[j], comm, rank, &requests.emplace_back()) != occlSuccess)
      return lastError("occlStart");
  std::string wrong = waitForAll(comm, requests);
  return wrong.empty() ? checkAll(jobs, rank) : wrong;
}

} // namespace occl::communicator::testing
