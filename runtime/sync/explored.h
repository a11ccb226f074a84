// What a deterministic scheduler offers the types that replace the standard library's when the
// runtime is built with -DOCCL_EXPLORE. Implemented in test/explore. All threads of an exploration
// are fibers of one: between two calls of these functions nobody else runs. Outside of an
// exploration `reach` and `drain` do nothing.
//
// Stores may be kept in a buffer of their thread, as processors do: a load of another thread then
// still sees the old value. A read-modify-write, a sequentially consistent store or fence, a lock
// and a system call empty the buffer. Stores are never reordered among each other, nor loads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

namespace occl {

/// Virtual time: passes a little with every access, and jumps when all threads sleep.
struct SteadyClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

namespace explored {

using Where = std::source_location;

/// A point at which another thread may run. `operation` is for the trace.
void reach(const char *operation, const void *address, const Where &where);

/// Keeps a store of 1 to 8 bytes in the thread's buffer; false if it is to be done at once.
bool keepStore(void *address, uint64_t value, size_t bytes, std::memory_order order);
/// The newest value that this thread has stored to the address and not yet made visible.
bool findStore(const void *address, uint64_t &value);
/// The life of a word that is an object begins and ends; while it is gone, using it is a defect.
void begin(const void *word);
void end(const void *word);
void use(const void *word);
/// Makes all stores of this thread visible.
void drain();

/// Who sleeps until somebody wakes it.
enum class Sleep {
  Timed,    // the time out is what ends it, like a pause
  Backstop, // somebody is sure to end it, and the time out is there for what ends nobody else's
};
/// Sleeps until wake(key) or the deadline. A sleep with Backstop that only time could end is
/// reported as a lost wake-up, if the exploration asks for that. False if time ended it.
bool park(const void *key, SteadyClock::time_point deadline, Sleep kind, const Where &where);
void wake(const void *key);
/// One of those that sleep on it, whichever the schedule says.
void wakeOne(const void *key);
/// What the last park() of this thread waited for is there, although time ended it. If all others
/// slept at that time, too, nobody was left to wake it: a lost wake-up, and a defect.
void foundUnwoken(const Where &where);

/// Lets the others run before this thread does again, and time pass.
void yield(std::chrono::nanoseconds time, const Where &where);

/// Starts a thread; its number.
uint32_t spawn(std::function<void()> body);
bool hasEnded(uint32_t thread);
/// 0 outside of an exploration.
uint32_t currentThread();
/// Room for a pointer, at first null: each thread has one for each kind.
void *placeOfThisThread(const void *kind);
/// What a thread that waits for the end of another sleeps on.
const void *endOf(uint32_t thread);

} // namespace explored
} // namespace occl
