// mutex.h and thread.h when schedules are explored.
#pragma once

#include "runtime/sync/explored.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

namespace occl {

class Mutex {
  using Where = explored::Where;

public:
  explicit Mutex(Where where = Where::current()) : where(where) { explored::begin(this); }
  Mutex(const Mutex &) = delete;
  Mutex &operator=(const Mutex &) = delete;
  ~Mutex() { explored::end(this); }

  void lock() {
    reach("lock");
    while (!take())
      explored::park(this, SteadyClock::time_point::max(), explored::Sleep::Backstop, where);
  }

  bool try_lock() {
    reach("try_lock");
    return take();
  }

  void unlock() {
    reach("unlock");
    locked.store(false, std::memory_order_release);
    explored::wake(this);
  }

private:
  void reach(const char *operation) {
    explored::reach(operation, this, where);
    explored::use(this);
    explored::drain();
  }

  bool take() {
    bool before = false;
    return locked.compare_exchange_strong(before, true, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }

  std::atomic<bool> locked = false;
  /// Where it was made: it is locked by the standard library's guards.
  const Where where;
};

class ConditionVariable {
  using Where = explored::Where;

public:
  ConditionVariable() { explored::begin(this); }
  ConditionVariable(const ConditionVariable &) = delete;
  ConditionVariable &operator=(const ConditionVariable &) = delete;
  ~ConditionVariable() { explored::end(this); }

  void notify_all(Where where = Where::current()) {
    explored::reach("notify", this, where);
    explored::use(this);
    explored::wake(this);
  }
  void notify_one(Where where = Where::current()) {
    explored::reach("notify one", this, where);
    explored::use(this);
    explored::wakeOne(this);
  }

  template <class Lock, class Condition>
  void wait(Lock &lock, Condition condition, Where where = Where::current()) {
    while (!condition())
      parkUnlocked(lock, SteadyClock::time_point::max(), explored::Sleep::Backstop, where);
  }

  template <class Lock, class Condition>
  bool wait_for(Lock &lock, std::chrono::nanoseconds atMost, Condition condition,
                Where where = Where::current()) {
    auto deadline = SteadyClock::now() + std::min(atMost, std::chrono::nanoseconds(1ll << 60));
    while (!condition())
      if (!parkUnlocked(lock, deadline, explored::Sleep::Timed, where)) {
        if (!condition())
          return false;
        explored::foundUnwoken(where);
        return true;
      }
    return true;
  }

private:
  /// Nobody runs between the release of the lock and the sleep, as with the real one.
  template <class Lock>
  bool parkUnlocked(Lock &lock, SteadyClock::time_point deadline, explored::Sleep kind,
                    const Where &where) {
    lock.unlock();
    bool woken = explored::park(this, deadline, kind, where);
    lock.lock();
    return woken;
  }
};

class Thread {
  using Where = explored::Where;

public:
  Thread() = default;
  template <class Body, class... Arguments>
  explicit Thread(Body &&body, Arguments &&...arguments)
      : number(explored::spawn(
            std::bind(std::forward<Body>(body), std::forward<Arguments>(arguments)...))),
        running(true) {}
  Thread(Thread &&other) noexcept { *this = std::move(other); }
  Thread &operator=(Thread &&other) noexcept {
    number = other.number;
    running = std::exchange(other.running, false);
    return *this;
  }

  /// More ranks than processors: the usual case in tests, and the one with most preemption.
  static uint32_t hardware_concurrency() { return 1; }

  bool joinable() const { return running; }

  void join(Where where = Where::current()) {
    explored::reach("join", this, where);
    explored::drain();
    while (!explored::hasEnded(number))
      explored::park(explored::endOf(number), SteadyClock::time_point::max(),
                     explored::Sleep::Backstop, where);
    running = false;
  }

private:
  uint32_t number = 0;
  bool running = false;
};

inline void yieldProcessor(explored::Where where = explored::Where::current()) {
  explored::yield(std::chrono::microseconds(20), where);
}

inline void relax(explored::Where where = explored::Where::current()) {
  explored::yield(std::chrono::nanoseconds(100), where);
}

inline void sleepFor(std::chrono::nanoseconds time,
                     explored::Where where = explored::Where::current()) {
  explored::park(nullptr, SteadyClock::now() + time, explored::Sleep::Timed, where);
}

} // namespace occl
