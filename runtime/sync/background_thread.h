// Threads that work in the background of a program that does not know of them.
#pragma once

#include "runtime/sync/thread.h"

#include <csignal>
#include <utility>

namespace occl {

/// While it lives, this thread and those that it starts take no signals but those of their own
/// faults, for which a program, or a sanitizer, may have a handler.
class SignalsBlocked {
public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
  }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
  sigset_t before;
};

/// Signals are for the threads that the program has made for them. Not for threads that call back:
/// what these start, processes too, would have them blocked. std::system_error if there can be no
/// thread.
template <class Body> Thread startInBackground(Body body) {
  const SignalsBlocked whileItStarts;
  return Thread(std::move(body));
}

} // namespace occl
