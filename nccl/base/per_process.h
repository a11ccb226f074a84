// What a process has one of, also when it was forked from one that had it.
#pragma once

#include <atomic>
#include <sys/types.h>
#include <unistd.h>

namespace occl::nccl {

/// A forked child gets a T of its own: locks of its parent's may be held by threads that it has not
/// got. Never destroyed, as threads may use it while the process exits. A variable of static
/// storage. Thread safety: any.
template <class T> class PerProcess {
public:
  T &get() {
    for (Held *present = held.load();;) {
      if (present && present->process == getpid())
        return present->value;
      auto *made = new Held;
      made->ofParent = present;
      if (held.compare_exchange_strong(present, made))
        return made->value;
      delete made; // another thread was first
    }
  }

private:
  struct Held {
    const pid_t process = getpid();
    T value;
    Held *ofParent = nullptr; // not looked at: so that no search for leaks takes it for one
  };

  std::atomic<Held *> held{nullptr};
};

} // namespace occl::nccl
