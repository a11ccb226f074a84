// What a process has one of, also when it was forked from one that had it.
#pragma once

#include <atomic>

namespace occl {

/// One T for each process. A forked child gets a new one: locks of the parent's may be held by
/// threads that the child has not got. Never destroyed, as threads may use it while the process
/// exits. A variable of static storage. Mark: isThisProcess(), whether it was made in this process.
/// Thread safety: any.
template <class T, class Mark> class OnePerProcess {
public:
  T &get() {
    for (Held *present = held.load(std::memory_order_acquire);;) {
      if (present && present->mark.isThisProcess())
        return present->value;
      auto *made = new Held;
      made->ofParent = present;
      if (held.compare_exchange_strong(present, made, std::memory_order_acq_rel))
        return made->value;
      delete made; // another thread was first
    }
  }

private:
  struct Held {
    Mark mark;
    T value;
    Held *ofParent = nullptr; // not looked at: so that no search for leaks takes it for one
  };

  std::atomic<Held *> held{nullptr};
};

} // namespace occl
