// Futexes of the system; with OCCL_EXPLORE those of the explored schedules.
#include "runtime/sync/futex.h"

#ifdef OCCL_EXPLORE

namespace occl {

void futexWait(Atomic<uint32_t> &word, uint32_t expected, std::chrono::nanoseconds atMost,
               SleepEnd end) {
  explored::drain();
  if (word.load(std::memory_order_acquire) != expected)
    return;
  explored::park(&word, SteadyClock::now() + atMost,
                 end == SleepEnd::ByWake ? explored::Sleep::Backstop : explored::Sleep::Timed,
                 explored::Where::current());
}

void futexWakeAll(Atomic<uint32_t> &word) {
  explored::reach("wake", &word, explored::Where::current());
  explored::drain();
  explored::wake(&word);
}

} // namespace occl

#else

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace occl {

static_assert(sizeof(Atomic<uint32_t>) == sizeof(uint32_t));

void futexWait(Atomic<uint32_t> &word, uint32_t expected, std::chrono::nanoseconds atMost,
               SleepEnd) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(atMost);
  timespec timeout = {};
  timeout.tv_sec = seconds.count();
  timeout.tv_nsec = (atMost - seconds).count();
  // Whatever it returns, the caller looks at its condition again.
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futexWakeAll(Atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace occl

#endif
