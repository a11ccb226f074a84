#include "runtime/base/futex.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace occl {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void futexWait(std::atomic<uint32_t> &word, uint32_t expected, std::chrono::nanoseconds atMost) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(atMost);
  timespec timeout = {};
  timeout.tv_sec = seconds.count();
  timeout.tv_nsec = (atMost - seconds).count();
  // Whatever it returns, the caller looks at its condition again.
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace occl
