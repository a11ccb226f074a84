#include "test/faults/resuming.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>

namespace occl::communicator::testing {

using namespace std::chrono_literals;

void resumeAndJoin(Processes &processes, uint32_t numRanks, uint32_t victim,
                   const std::function<std::string()> &describe) {
  // It stops a little after it has said so, or when its work is done.
  std::atomic<bool> isJoined{false};
  std::thread resumer([&] {
    for (; !isJoined.load(); std::this_thread::sleep_for(10ms))
      processes.signal(victim, SIGCONT);
  });
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0)
        << "rank " << r << ", " << describe() << ": " << processes.wrong(r);
  isJoined.store(true);
  resumer.join();
}

} // namespace occl::communicator::testing
