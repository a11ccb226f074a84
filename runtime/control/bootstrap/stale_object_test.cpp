// What joining does if an object that a killed process has left behind does not go. The linker
// (--wrap) leads shm_unlink here.
#include "runtime/control/bootstrap/bootstrap.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// What happens when an object's name is taken away; the original if it is empty.
std::function<int(const char *)> unlinkInstead;

} // namespace

extern "C" {
int __real_shm_unlink(const char *name);
int __wrap_shm_unlink(const char *name) {
  return unlinkInstead ? unlinkInstead(name) : __real_shm_unlink(name);
}
}

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

/// One rank of two joins and is killed before the other one comes.
class StaleObject : public testing::Test {
protected:
  StaleObject() {
    std::random_device random;
    options.name = "test-" + std::to_string(random()) + "-" + std::to_string(random());
    options.numRanks = 2;
    options.segmentBytes = 10000;
    options.timeout = 20s;
    options.bell = *SharedBell::makeShared();
    leaveBehind();
  }
  ~StaleObject() override {
    unlinkInstead = {};
    unlink(path.c_str());
    unlink(kept.c_str());
  }

  void leaveBehind() {
    path = "/dev/shm/occl-" + std::to_string(geteuid()) + "-" + options.name;
    kept = "/dev/shm/kept-" + options.name; // not one that a start looks at
    pid_t child = fork();
    if (child == 0) {
      options.rank = 1;
      // Ends only if it is not killed.
      _exit(formProcessGroup(options).ok() ? 1 : 2);
    }
    ProcessGroupOptions probe = options;
    probe.rank = 1;
    probe.timeout = 100ms;
    Status status;
    for (int attempt = 0; attempt < 200 && status.code() != StatusCode::Mismatch; ++attempt) {
      usleep(10000);
      if (access(path.c_str(), F_OK) == 0)
        status = formProcessGroup(probe).status(); // "rank 1 is already taken"
    }
    EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
    EXPECT_EQ(kill(child, SIGKILL), 0);
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFSIGNALED(how));
  }

  ProcessGroupOptions options; // of rank 0
  std::string path, kept;
};

TEST_F(StaleObject, OneThatCannotBeRemovedIsAnErrorAtOnce) {
  unlinkInstead = [](const char *) {
    errno = EPERM;
    return -1;
  };
  Status status = formProcessGroup(options).status();
  EXPECT_EQ(status.code(), StatusCode::SystemError);
  EXPECT_NE(status.message().find("cannot remove shared memory /occl-"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find(options.name), std::string::npos) << status.message();
}

TEST_F(StaleObject, JoiningEndsAtItsDeadlineThoughTheNameComesBackEachTime) {
  ASSERT_EQ(link(path.c_str(), kept.c_str()), 0);
  uint32_t removals = 0;
  unlinkInstead = [&](const char *name) {
    ++removals;
    int result = __real_shm_unlink(name);
    return result == 0 ? link(kept.c_str(), path.c_str()) : result;
  };
  options.timeout = 100ms;
  Status status = formProcessGroup(options).status();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_NE(status.message().find("again and again"), std::string::npos) << status.message();
  EXPECT_GT(removals, 1u);
}

/// The other copy's rank, whose byte this is, would look dead.
TEST_F(StaleObject, LookingForRemainsLetsNothingGoOfAnotherCopyOfTheLibrary) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_len = 1;
  ASSERT_EQ(fcntl(file, F_SETLK, &byte), 0);
  ProcessGroupOptions alone = options;
  alone.name += "-alone";
  alone.numRanks = 1;
  EXPECT_TRUE(formProcessGroup(alone).ok());
  const pid_t child = fork();
  if (child == 0)
    _exit(fcntl(file, F_GETLK, &byte) == 0 && byte.l_type != F_UNLCK ? 3 : 4);
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(WEXITSTATUS(how), 3);
  close(file);
}

} // namespace
} // namespace occl::bootstrap
