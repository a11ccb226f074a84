#include "runtime/base/process_identity.h"

#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl {
namespace {

struct Number {
  int value = 0;
};

PerProcess<Number> number;

/// The exit status of a child, made by `makeChild`, that runs `body`.
int inChild(const std::function<pid_t()> &makeChild, const std::function<int()> &body) {
  pid_t child = makeChild();
  if (child == 0)
    _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessIdentity, IsTheSameForAllThreadsOfAProcess) {
  ProcessIdentity own = ownProcess();
  EXPECT_EQ(own.pid, getpid());
  EXPECT_NE(own.cookie, 0u);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { EXPECT_EQ(ownProcess(), own); });
  for (std::thread &thread : threads)
    thread.join();
}

void expectAnotherProcess(const std::function<pid_t()> &makeChild) {
  ProcessIdentity parent = ownProcess();
  ProcessMark mark;
  number.get().value = 5;
  EXPECT_EQ(inChild(makeChild,
                    [&] {
                      if (mark.isThisProcess())
                        return 1;
                      ProcessIdentity own = ownProcess();
                      if (own.cookie == parent.cookie || own.cookie == 0 || own != ownProcess())
                        return 2;
                      if (mark.isThisProcess() || !ProcessMark().isThisProcess())
                        return 3;
                      return number.get().value == 0 ? 0 : 4;
                    }),
            0);
  EXPECT_TRUE(mark.isThisProcess());
  EXPECT_EQ(ownProcess(), parent);
  EXPECT_EQ(number.get().value, 5);
}

TEST(ProcessIdentity, AForkedChildIsAnotherProcess) {
  expectAnotherProcess([] { return fork(); });
}

TEST(ProcessIdentity, SoIsOneThatTheLibraryDoesNotKnowOf) {
  expectAnotherProcess([] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); });
}

} // namespace
} // namespace occl
