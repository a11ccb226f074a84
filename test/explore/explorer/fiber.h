// A thread of an exploration: a context of its own on the one real thread.
#pragma once

#include "runtime/sync/explored.h"
#include "test/explore/explorer/vector_clock.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <ucontext.h>

namespace occl::explore {

/// A store that others do not see yet.
struct KeptStore {
  void *address = nullptr;
  uint64_t value = 0;
  size_t bytes = 0;
  uint64_t due = 0; // the step at which it becomes visible
  VectorClock released;
};

struct Fiber {
  enum class State { Runnable, Asleep, Ended };

  uint32_t number = 0;
  std::function<void()> body;
  ucontext_t context{}; // where it begins
  jmp_buf left;         // and where it has left off
  bool hasBegun = false;
  std::byte *stack = nullptr;
  State state = State::Runnable;

  // While it sleeps.
  const void *key = nullptr;
  SteadyClock::time_point deadline;
  explored::Sleep kind = explored::Sleep::Timed;
  explored::Where where;
  bool endedByTime = false;
  bool endedAlone = false; // and everybody else slept then, and goes on sleeping

  std::deque<KeptStore> kept; // oldest first
};

/// Stacks are used again by later schedules.
class StackPool {
public:
  static constexpr size_t kBytes = 256 << 10;

  StackPool() = default;
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;
  ~StackPool();

  std::byte *take();
  void giveBack(std::byte *stack) { free.push_back(stack); }

private:
  std::deque<std::byte *> free;
};

} // namespace occl::explore
