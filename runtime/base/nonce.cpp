// Random numbers that are never 0.
#include "runtime/base/nonce.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

namespace occl {

uint64_t drawNonce() {
  uint64_t number = 0;
  while (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number)
    if (number != 0)
      return number;
  // Early after a boot there are no random numbers: time and thread must do.
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  number = static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
  return (number * 0x9e3779b97f4a7c15ull ^ static_cast<uint64_t>(gettid()) << 40) | 1;
}

} // namespace occl
