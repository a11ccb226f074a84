// A process forks while one of its threads loads libibverbs.
#include "runtime/net/transport/verbs/ibverbs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

std::atomic<bool> isHeld{false}, isInside{false};

} // namespace

/// In the place of the C library's: who loads something stays here while that is held.
extern "C" void *dlopen(const char *name, int flags) {
  isInside = true;
  while (isHeld)
    std::this_thread::yield();
  return reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"))(name, flags);
}

namespace occl::net {
namespace {

#ifndef __SANITIZE_THREAD__ // which does not survive fork() of a process with threads
TEST(Ibverbs, AChildMadeWhileItIsLoadedLoadsItItself) {
  isHeld = true;
  bool isFound = false;
  std::thread loads([&] { isFound = Ibverbs::load().ok(); });
  while (!isInside)
    std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20); // where it would wait for a thread that it has not got
    isHeld = false;
    _exit(Ibverbs::load().ok() ? 1 : 2);
  }
  isHeld = false;
  loads.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), isFound ? 1 : 2);
}
#endif

} // namespace
} // namespace occl::net
