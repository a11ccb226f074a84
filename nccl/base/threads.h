// Threads that work in the background of a program that does not know of them.
#pragma once

#include <csignal>
#include <pthread.h>
#include <thread>

namespace occl::nccl {

/// Runs body() on a thread of its own, never joined. It, and the threads that it starts, take no
/// signals: those are for the threads that the program has chosen. std::system_error if there can
/// be no thread.
template <class Body> void startThread(Body body) {
  class Blocked {
  public:
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

  private:
    sigset_t before;
  };
  const Blocked whileItStarts;
  std::thread(std::move(body)).detach();
}

} // namespace occl::nccl
