#include "test/faults/at_once.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace occl::faults {

void runAtOnce(uint32_t number, const std::function<void(uint32_t)> &body) {
  std::fflush(nullptr); // else each has it to print
  std::vector<pid_t> processes;
  for (uint32_t i = 0; i < number; ++i) {
    pid_t process = fork();
    if (process == 0) {
      body(i);
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ASSERT_GT(process, 0) << "fork";
    processes.push_back(process);
  }
  for (pid_t process : processes) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "one of them has failed";
  }
}

} // namespace occl::faults
