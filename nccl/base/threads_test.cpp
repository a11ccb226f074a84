// Which signals a thread of the library takes.
#include "nccl/base/threads.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <utility>

namespace occl::nccl {
namespace {

sigset_t blockedHere() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return blocked;
}

TEST(Threads, TakeNoSignalsButFaults) {
  std::promise<sigset_t> told;
  std::future<sigset_t> blocked = told.get_future();
  startThread([told = std::move(told)]() mutable { told.set_value(blockedHere()); });
  const sigset_t there = blocked.get(), here = blockedHere();
  for (const int others : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGPROF, SIGRTMIN}) {
    EXPECT_TRUE(sigismember(&there, others)) << others;
    EXPECT_FALSE(sigismember(&here, others)) << others;
  }
  // A handler of the program, or of a sanitizer, says where it was.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    EXPECT_FALSE(sigismember(&there, fault)) << fault;
}

} // namespace
} // namespace occl::nccl
