// For tests of the C++ headers: ranks that are threads, and what is thrown.
#pragma once

#include "runtime/api/occl.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {

/// Runs body(communicator, rank) on a thread for each rank. Calls end after 20 s.
template <class Body> void onRanks(uint32_t numRanks, const Body &body) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 20000;
  std::vector<Communicator> ranks = Communicator::all(numRanks, config);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < numRanks; ++r)
    threads.emplace_back([&, r] {
      EXPECT_NO_THROW(body(ranks[r], r)) << "rank " << r << ": " << ranks[r].failure();
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// The text of the Error that call() throws, which is occlInvalidArgument.
template <class Call> std::string whatOf(const Call &call) {
  try {
    call();
  } catch (const Error &error) {
    EXPECT_EQ(error.result(), occlInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

} // namespace occl::communicator::testing
