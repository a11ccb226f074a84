// What `occl doctor` says where no process can be started: fork() fails from some call on. And
// where a user may lock little memory.
#include "tools/occl/host_checks.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int callsThatWork = 0;
uid_t user = 1000;

} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
pid_t __real_fork(void);

uid_t __wrap_geteuid(void) { return user; }

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
    EXPECT_NE(said.find("other processes      none can be started: Resource temporarily"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("BROKEN   an all-reduce"), std::string::npos) << said;
    EXPECT_TRUE(report.isBroken());
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
  }
}

TEST(HostChecks, littleLockedMemory_isSaidOfANetworkPlugin) {
  callsThatWork = 1000;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit little = {64 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &little), 0);
  setenv("OCCL_NET", (std::string("tcp,ncclnet:") + std::getenv("NETWORK_PLUGIN")).c_str(), 1);
  for (const uid_t each : {1000, 0}) {
    user = each;
    testing::internal::CaptureStdout();
    occl::driver::Report report;
    occl::driver::checkHost(report);
    const std::string said = testing::internal::GetCapturedStdout();
    const bool isBound = each != 0; // root is not
    EXPECT_EQ(said.find("limited  network plugin") != std::string::npos, isBound) << said;
    EXPECT_EQ(said.find("ok       network plugin") != std::string::npos, !isBound) << said;
    EXPECT_EQ(said.find("64 KiB of") != std::string::npos, isBound) << said;
  }
  unsetenv("OCCL_NET");
  setrlimit(RLIMIT_MEMLOCK, &before);
}

} // namespace
