// Threads that work in the background of a program that does not know of them.
#pragma once

#include <csignal>
#include <pthread.h>
#include <thread>

namespace occl::nccl {

/// Runs body() on a thread of its own, never joined. It, and the threads that it starts, take no
/// signals but those of their own faults, as threads of OCCL: others are for the threads that the
/// program has chosen. std::system_error if there can
/// be no thread.
template <class Body> void startThread(Body body) {
  class Blocked {
  public:
    Blocked() {
      sigset_t blocked;
      sigfillset(&blocked);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
        sigdelset(&blocked, fault);
      pthread_sigmask(SIG_SETMASK, &blocked, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

  private:
    sigset_t before;
  };
  const Blocked whileItStarts;
  std::thread(std::move(body)).detach();
}

} // namespace occl::nccl
