// For tests of processes that are stopped and go on.
#pragma once

#include "runtime/api/testing/processes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace occl::communicator::testing {

/// False if the condition does not come true in time. The thread sleeps between looks.
inline bool waitFor(std::chrono::milliseconds atMost, const auto &condition) {
  for (auto end = std::chrono::steady_clock::now() + atMost; !condition();) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Joins all; from now on the victim goes on whenever it has stopped. The calling test fails where
/// something is wrong, with what describe() says.
void resumeAndJoin(Processes &processes, uint32_t numRanks, uint32_t victim,
                   const std::function<std::string()> &describe);

} // namespace occl::communicator::testing
