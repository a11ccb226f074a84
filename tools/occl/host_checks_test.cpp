// What `occl doctor` says where no process can be started: fork() fails from some call on.
#include "tools/occl/host_checks.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int callsThatWork = 0;

} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
pid_t __real_fork(void);

pid_t __wrap_fork(void) {
  if (callsThatWork-- > 0)
    return __real_fork();
  errno = EAGAIN;
  return -1;
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

TEST(HostChecks, SayThatNoProcessCanBeStarted) {
  for (int number : {0, 1}) {
    callsThatWork = number;
    testing::internal::CaptureStdout();
    occl::driver::Report report;
    occl::driver::checkHost(report);
    const std::string said = testing::internal::GetCapturedStdout();
    EXPECT_NE(said.find("other processes        none can be started: Resource temporarily"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("BROKEN   an all-reduce"), std::string::npos) << said;
    EXPECT_TRUE(report.isBroken());
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
  }
}

} // namespace
