// Which process is which: a pid alone is reused after its process is gone, and a forked child has
// the memory of its parent, but neither its threads nor its part in anything.
#pragma once

#include <atomic>
#include <cstdint>

namespace occl {

struct ProcessIdentity {
  int32_t pid = 0;
  /// Drawn by the process. No other has it, nor has a forked child.
  uint64_t cookie = 0;

  bool operator==(const ProcessIdentity &) const = default;
};

/// Of this process. Needs no file descriptor. Any thread.
ProcessIdentity ownProcess();

/// Remembers the process that it was made in. Thread safety: any.
class ProcessMark {
public:
  ProcessMark();

  /// False in a process that was forked from the one it was made in. Two loads. Children that share
  /// the memory, as those of vfork() before they execute something, count as this process.
  bool isThisProcess() const { return word->load(std::memory_order_relaxed) == cookie; }

private:
  const std::atomic<uint64_t> *word; // the system clears it in a forked child
  uint64_t cookie;
};

/// One T for each process. A forked child gets a new one: locks of the parent's may be held by
/// threads that the child has not got. Never destroyed. Thread safety: any.
template <class T> class PerProcess {
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
    ProcessMark mark;
    T value;
    Held *ofParent = nullptr; // not looked at: so that no search for leaks takes it for one
  };

  std::atomic<Held *> held{nullptr};
};

} // namespace occl
