// The target of resident executors that are thread blocks of a device: the lanes of the first warp
// call these functions together, or each for itself where it says so.
//
// Scopes. What the executors of a rank share among themselves needs no more than the device; what
// host or peers look at is for the system.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/resident/executor/board.h"

#include <cstdint>

namespace occl::cuda::resident {

class WarpTarget {
public:
  __device__ static uint32_t lane() { return threadIdx.x; }
  static constexpr uint32_t kLanes = 32;
  __device__ static uint32_t numLanes() { return kLanes; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static uint64_t smallest(uint64_t value) {
    uint32_t high = __reduce_min_sync(~0u, static_cast<uint32_t>(value >> 32));
    uint32_t low = static_cast<uint32_t>(value >> 32) == high ? static_cast<uint32_t>(value) : ~0u;
    return uint64_t(high) << 32 | __reduce_min_sync(~0u, low);
  }
  __device__ static uint32_t sum(uint32_t value) { return __reduce_add_sync(~0u, value); }
  __device__ static uint64_t sum(uint64_t value) {
    for (uint32_t apart = 16; apart != 0; apart /= 2)
      value += __shfl_xor_sync(~0u, value, apart);
    return value;
  }
  __device__ static uint32_t countBits(uint64_t bits) { return __popcll(bits); }
  __device__ static uint32_t lowestBit(uint64_t bits) { return __ffsll(bits) - 1; }
  /// The value of the first lane that asks; 0 if none does.
  __device__ static uint64_t ofFirst(bool asks, uint64_t value) {
    uint32_t all = __ballot_sync(~0u, asks);
    return __shfl_sync(~0u, all == 0 ? 0 : value, all == 0 ? 0 : __ffs(all) - 1);
  }
  /// Nanoseconds, the same for all lanes.
  __device__ static uint64_t now() { return __shfl_sync(~0u, time(), 0); }

  /// Some hundred nanoseconds at most.
  __device__ static void pause() { __nanosleep(200); }
  /// Between two looks of who waits to be handed something.
  __device__ static void rest() { __nanosleep(20); }

  // For one lane.
  __device__ static uint64_t time() { return deviceClock(); }
  __device__ static uint32_t cycles() { return static_cast<uint32_t>(clock64()); }
  __device__ static uint64_t peek(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static void post(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void postToHost(uint64_t *word, uint64_t value) { postToPeer(word, value); }
  __device__ static uint64_t acquire(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static uint64_t acquireFromHost(const uint64_t *word) { return acquireWord(word); }
  __device__ static uint64_t peekAtPeer(const uint64_t *word) { return loadWord(word); }
  __device__ static void postToPeer(uint64_t *word, uint64_t value) { storeWord(word, value); }

  /// After a fence, if it is to order anything.
  __device__ static void add(uint64_t *word, uint64_t amount) {
    asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" ::"l"(word), "l"(amount) : "memory");
  }
  /// After what this executor has seen and done before.
  __device__ static void addReleasing(uint64_t *word, uint64_t amount) {
    asm volatile("red.release.gpu.add.u64 [%0], %1;" ::"l"(word), "l"(amount) : "memory");
  }
  __device__ static void raise(uint64_t *word, uint64_t value) {
    asm volatile("red.relaxed.gpu.max.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void lower(uint64_t *word, uint64_t value) {
    asm volatile("red.relaxed.gpu.min.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void raiseAtPeer(uint64_t *word, uint64_t value) {
    asm volatile("red.relaxed.sys.max.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }

  /// After a fence, which comes before it for whoever acquires the value.
  __device__ static void publish(uint64_t *word, uint64_t value) { post(word, value); }

  // For all lanes together.
  __device__ static uint64_t look(const uint64_t *word) {
    return first([&] { return acquire(word); });
  }
  __device__ static uint64_t lookAtHost(const uint64_t *word) {
    return first([&] { return acquireWord(word); });
  }
  __device__ static void release(uint64_t *word, uint64_t value) {
    first([&] {
      asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
      return 0;
    });
  }
  __device__ static uint64_t takeBits(uint64_t *word, uint64_t bits) {
    return first([&] {
      uint64_t old;
      asm volatile("atom.acquire.gpu.and.b64 %0, [%1], %2;"
                   : "=l"(old)
                   : "l"(word), "l"(~bits)
                   : "memory");
      return old;
    });
  }
  __device__ static void giveBits(uint64_t *word, uint64_t bits) {
    first([&] {
      asm volatile("red.release.gpu.or.b64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
      return 0;
    });
  }
  /// As they were taken: orders nothing.
  __device__ static void giveBitsBack(uint64_t *word, uint64_t bits) {
    first([&] {
      asm volatile("red.relaxed.gpu.or.b64 [%0], %1;" ::"l"(word), "l"(bits) : "memory");
      return 0;
    });
  }
  /// The word as it was before.
  __device__ static uint64_t addTo(uint64_t *word, uint64_t amount) {
    return first([&] {
      uint64_t old;
      asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
                   : "=l"(old)
                   : "l"(word), "l"(amount)
                   : "memory");
      return old;
    });
  }
  /// Stores `taken` unless that is there already.
  __device__ static bool tryLock(uint64_t *word, uint64_t taken) {
    return first([&] {
             const uint64_t open = peek(word);
             uint64_t old = open;
             if (open != taken)
               asm volatile("atom.acquire.gpu.cas.b64 %0, [%1], %2, %3;"
                            : "=l"(old)
                            : "l"(word), "l"(open), "l"(taken)
                            : "memory");
             return uint64_t(open != taken && old == open);
           }) != 0;
  }
  /// Calls open(words, sequence, number) for the entries from `tail` on that have come, `number` of
  /// at most kEntries; the new tail. A lane loads each word: they come with one trip.
  static constexpr uint32_t kEntries = kLanes / SubmissionEntry::kWords;
  template <class Open>
  __device__ static uint64_t takeEntries(const SubmissionEntry *entries, uint64_t tail,
                                         const Open &open) {
    constexpr uint32_t kWords = SubmissionEntry::kWords;
    // Entries that are complete and have no gap before them have come.
    const uint64_t sequence = tail + lane() / kWords;
    const uint64_t word = acquireWord(&entries[sequence % kWindow].words[lane() % kWords]);
    const uint32_t missing = ~__ballot_sync(~0u, isOfTurn(word, sequence));
    const uint32_t come = (missing == 0 ? 32 : __ffs(missing) - 1) / kWords;
    for (uint32_t e = 0; e < come; ++e) {
      uint64_t words[kWords];
      for (uint32_t i = 0; i < kWords; ++i)
        words[i] = __shfl_sync(~0u, word, e * kWords + i);
      __syncwarp();
      open(words, tail + e, come);
    }
    return tail + come;
  }
  __device__ static bool hasEntry(const SubmissionEntry *entries, uint64_t sequence) {
    constexpr uint32_t kWords = SubmissionEntry::kWords;
    const uint64_t word = acquireWord(&entries[sequence % kWindow].words[lane() % kWords]);
    return __all_sync(~0u, isOfTurn(word, sequence));
  }
  /// A look at a hand, a word each: takeHand() waits for what it has found. True: all words are of
  /// this turn.
  __device__ static uint64_t lookAtHand(const Hand &hand) {
    return peek(&hand.words[lane() % Hand::kWords]);
  }
  __device__ static bool takeHand(uint64_t found, const Hand &, uint64_t mark,
                                  uint64_t (&words)[Hand::kWords]) {
    if (!__all_sync(~0u, ((found ^ mark) >> 48) == 0))
      return false;
    for (uint32_t w = 0; w < Hand::kWords; ++w)
      words[w] = __shfl_sync(~0u, found, w);
    return true;
  }
  /// Acquires once a fence has followed.
  __device__ static uint64_t peekBeforeFence(const uint64_t *word) { return peek(word); }
  /// Each lane for itself.
  __device__ static void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
  /// What all lanes did before comes before what they do after, for this device.
  __device__ static void fenceDevice() {
    first([] {
      asm volatile("fence.acq_rel.gpu;" ::: "memory");
      return 0;
    });
  }
  /// The same for everybody.
  __device__ static void fenceAll() {
    first([] {
      fenceSystem();
      return 0;
    });
  }
  /// What follows is not looked at before the value is visible.
  __device__ static void storeToHostFenced(uint64_t *word, uint64_t value) {
    first([&] {
      postToHost(word, value);
      return 0;
    });
    asm volatile("fence.sc.sys;" ::: "memory");
  }

private:
  /// Lane 0 does it, after what all lanes did before and before what they do after; all get its
  /// result.
  template <class Do> __device__ static uint64_t first(const Do &what) {
    __syncwarp();
    uint64_t value = lane() == 0 ? what() : 0;
    value = __shfl_sync(~0u, value, 0);
    __syncwarp();
    return value;
  }
};

} // namespace occl::cuda::resident
