// Threads of a process that do for all its groups what must not be done where collectives end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace occl_torch {

/// What is looked at from time to time.
class Ticking {
public:
  virtual ~Ticking() = default;
  /// Returns after how many milliseconds to look again; 0: no more.
  virtual unsigned tick() = 0;
};

/// Its threads are started at first use, and again in a child made by fork(). Thread-safe.
class Helper {
public:
  static Helper &get();

  /// Executes the task soon, on a thread where it may run Python and wait for other tasks.
  void run(std::function<void()> task);
  /// Calls tick() of the object, a millisecond from now first, until it returns 0 or is gone.
  void watch(std::weak_ptr<Ticking> object);
  /// Releases the object some time later, on a thread that may wait for the interpreter: callbacks
  /// of collectives may not.
  void release(std::shared_ptr<void> object);
  /// Releases what release() was given until now.
  void sweep();

private:
  using Clock = std::chrono::steady_clock;
  struct Watched {
    std::weak_ptr<Ticking> object;
    Clock::time_point next;
  };
  void startTicking();
  void tickForEver();
  void work();
  void addWorkerIfStuck();

  std::mutex mutex_;
  std::condition_variable ticks_, tasksThere_;
  std::vector<Watched> watched_;
  bool ticking_ = false;
  std::deque<std::function<void()>> tasks_;
  Clock::time_point lastTaken_;
  unsigned idle_ = 0, workers_ = 0;

  std::mutex garbageMutex_;
  std::vector<std::shared_ptr<void>> garbage_;
};

} // namespace occl_torch
