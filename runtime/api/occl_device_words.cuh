// What occl_device.cuh is made of, and not for programs: the words through which devices and the
// host tell each other something, and the clock that bounds the wait for them. They lie in global
// memory: a device's own, a peer's or pinned. Without CUDA host code.
#ifndef OCCL_DEVICE_WORDS_CUH
#define OCCL_DEVICE_WORDS_CUH

#include <cstdint>
#ifndef __CUDACC__
#include <chrono>
#endif

#ifdef __CUDACC__
#define OCCL_DEVICE_FUNCTION __device__ inline
#else
#define OCCL_DEVICE_FUNCTION inline
#endif

namespace occl::device::detail {

#ifdef __CUDACC__
/// What was stored before the value that this returns was released is there to be read.
OCCL_DEVICE_FUNCTION uint64_t acquireWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// Orders nothing.
OCCL_DEVICE_FUNCTION uint64_t loadWord(const uint64_t *word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
/// After everything that this thread, or one that it has met at a barrier, has stored before.
OCCL_DEVICE_FUNCTION void releaseWord(uint64_t *word, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// Orders nothing.
OCCL_DEVICE_FUNCTION void storeWord(uint64_t *word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
/// What this thread did before, and what it has seen, comes before what it does after, for all that
/// see that.
OCCL_DEVICE_FUNCTION void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
/// The same, and in one order with all others of the system.
OCCL_DEVICE_FUNCTION void fenceSequential() { asm volatile("fence.sc.sys;" ::: "memory"); }
/// Of one device.
OCCL_DEVICE_FUNCTION void fenceDevice() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
/// Words of 32 bits.
OCCL_DEVICE_FUNCTION uint32_t look(const uint32_t *word) {
  return *static_cast<const volatile uint32_t *>(word);
}
OCCL_DEVICE_FUNCTION void say(uint32_t *word, uint32_t value) {
  *static_cast<volatile uint32_t *>(word) = value;
}
/// Their old values; of one device. They order nothing.
OCCL_DEVICE_FUNCTION uint64_t raise(uint64_t *word, uint64_t value) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.max.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(word), "l"(value)
               : "memory");
  return before;
}
OCCL_DEVICE_FUNCTION uint64_t add(uint64_t *word, uint64_t value) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(word), "l"(value)
               : "memory");
  return before;
}
OCCL_DEVICE_FUNCTION uint64_t exchangeIf(uint64_t *word, uint64_t expected, uint64_t value) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(word), "l"(expected), "l"(value)
               : "memory");
  return before;
}
/// The same, to be seen by other devices.
OCCL_DEVICE_FUNCTION uint64_t exchangeForAll(uint64_t *word, uint64_t expected, uint64_t value) {
  uint64_t before;
  asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(word), "l"(expected), "l"(value)
               : "memory");
  return before;
}
/// Nanoseconds; of one device, and moves on in steps.
OCCL_DEVICE_FUNCTION uint64_t deviceClock() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}
#else
inline uint64_t acquireWord(const uint64_t *word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
inline uint64_t loadWord(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline void releaseWord(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
inline void fenceDevice() {} // stores and the operations below have these
inline void fenceSystem() {}
inline void fenceSequential() { // a fence that checkers of races know
  static uint64_t all = 0;
  __atomic_fetch_add(&all, 0, __ATOMIC_SEQ_CST);
}
inline void storeWord(uint64_t *word, uint64_t value) { releaseWord(word, value); }
inline uint32_t look(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline void say(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
inline uint64_t raise(uint64_t *word, uint64_t value) {
  uint64_t before = loadWord(word);
  while (before < value && !__atomic_compare_exchange_n(word, &before, value, true,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return before;
}
inline uint64_t add(uint64_t *word, uint64_t value) {
  return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
inline uint64_t exchangeIf(uint64_t *word, uint64_t expected, uint64_t value) {
  __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
inline uint64_t exchangeForAll(uint64_t *word, uint64_t expected, uint64_t value) {
  return exchangeIf(word, expected, value);
}
inline uint64_t deviceClock() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
#endif

} // namespace occl::device::detail

#endif // OCCL_DEVICE_WORDS_CUH
