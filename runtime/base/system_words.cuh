// Device code: the words through which devices and the host tell each other something, and the
// clock that bounds the wait for them. The scope is the system: the other end may be another
// device, or the host. They lie in global memory: a device's own, a peer's or pinned.
#pragma once

#include <cstdint>

namespace occl {

/// What was stored before the value that this returns was released is there to be read.
__device__ inline uint64_t acquireWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// Orders nothing.
__device__ inline uint64_t loadWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// After everything that this thread, or one that it has met at a barrier, has stored before.
__device__ inline void releaseWord(uint64_t *word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// Orders nothing.
__device__ inline void storeWord(uint64_t *word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

/// What this thread did before, and what it has seen, comes before what it does after, for all that
/// see that.
__device__ inline void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// Nanoseconds; of one device, and moves on in steps.
__device__ inline uint64_t deviceClock() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace occl
