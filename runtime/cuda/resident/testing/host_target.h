// The target of resident executors that are threads of the host, for tests.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/clock.h"
#include "runtime/sync/thread.h"

#include <bit>
#include <chrono>
#include <cstdint>

namespace occl::cuda::resident {

class HostTarget {
public:
  // One lane.
  static uint32_t lane() { return 0; }
  static constexpr uint32_t kLanes = 1;
  static uint32_t numLanes() { return kLanes; }
  static void sync() {}
  template <class T> static T smallest(T value) { return value; }
  template <class T> static T sum(T value) { return value; }
  static uint64_t ofFirst(bool asks, uint64_t value) { return asks ? value : 0; }

  static uint32_t countBits(uint64_t bits) { return static_cast<uint32_t>(std::popcount(bits)); }
  static uint32_t lowestBit(uint64_t bits) { return static_cast<uint32_t>(std::countr_zero(bits)); }

  /// Nanoseconds.
  static uint64_t now() {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }

  static void pause() { yieldProcessor(); }
  static void rest() { yieldProcessor(); }

  // For one lane.
  static uint64_t time() { return now(); }
  static uint32_t cycles() { return static_cast<uint32_t>(now()); }
  static uint64_t peek(const uint64_t *word) { return loadShared(word, std::memory_order_relaxed); }
  static void post(uint64_t *word, uint64_t value) {
    storeShared(word, value, std::memory_order_relaxed);
  }
  /// After a fence. Released all the same: thread sanitizer does not know fences.
  static void postToHost(uint64_t *word, uint64_t value) { release(word, value); }
  static uint64_t acquire(const uint64_t *word) {
    return loadShared(word, std::memory_order_acquire);
  }
  static uint64_t acquireFromHost(const uint64_t *word) { return acquire(word); }
  static uint64_t peekAtPeer(const uint64_t *word) { return peek(word); }
  static void postToPeer(uint64_t *word, uint64_t value) { post(word, value); }

  static void add(uint64_t *word, uint64_t amount) {
    change(word, [amount](uint64_t old) { return old + amount; });
  }
  static void addReleasing(uint64_t *word, uint64_t amount) { add(word, amount); }
  static void raise(uint64_t *word, uint64_t value) {
    change(word, [value](uint64_t old) { return old > value ? old : value; });
  }
  static void lower(uint64_t *word, uint64_t value) {
    change(word, [value](uint64_t old) { return old < value ? old : value; });
  }

  /// After a fence. Released all the same, as postToHost().
  static void publish(uint64_t *word, uint64_t value) { release(word, value); }

  // For all lanes together.
  static uint64_t look(const uint64_t *word) { return acquire(word); }
  static uint64_t lookAtHost(const uint64_t *word) { return acquire(word); }
  static void release(uint64_t *word, uint64_t value) {
    storeShared(word, value, std::memory_order_release);
  }
  static uint64_t takeBits(uint64_t *word, uint64_t bits) {
    return change(word, [bits](uint64_t old) { return old & ~bits; });
  }
  static void giveBits(uint64_t *word, uint64_t bits) {
    change(word, [bits](uint64_t old) { return old | bits; });
  }
  static void giveBitsBack(uint64_t *word, uint64_t bits) { giveBits(word, bits); }
  static uint64_t addTo(uint64_t *word, uint64_t amount) {
    return change(word, [amount](uint64_t old) { return old + amount; });
  }
  static bool tryLock(uint64_t *word, uint64_t taken) {
    uint64_t open = peek(word);
    if (open != taken &&
        shared(word).compare_exchange_strong(open, taken, std::memory_order_acq_rel))
      return true;
    yieldProcessor(); // there may be more executors than processors
    return false;
  }
  /// Calls open(words, sequence, number) for the entries from `tail` on that have come, `number` of
  /// at most kEntries; the new tail.
  static constexpr uint32_t kEntries = 8;
  template <class Open>
  static uint64_t takeEntries(const SubmissionEntry *entries, uint64_t tail, const Open &open) {
    uint64_t words[SubmissionEntry::kWords];
    uint64_t end = tail;
    while (end - tail < kEntries && loadEntry(entries[end % kWindow], end, words))
      ++end;
    for (uint64_t s = tail; s < end; ++s) {
      loadEntry(entries[s % kWindow], s, words);
      open(words, s, static_cast<uint32_t>(end - tail));
    }
    return end;
  }
  static bool hasEntry(const SubmissionEntry *entries, uint64_t sequence) {
    uint64_t words[SubmissionEntry::kWords];
    return loadEntry(entries[sequence % kWindow], sequence, words);
  }
  /// All words are of this turn. The look is that of takeHand().
  static bool lookAtHand(const Hand &) { return true; }
  static bool takeHand(bool, const Hand &hand, uint64_t mark, uint64_t (&words)[Hand::kWords]) {
    for (uint32_t w = 0; w < Hand::kWords; ++w) {
      words[w] = acquire(&hand.words[w]);
      if (((words[w] ^ mark) >> 48) != 0)
        return false;
    }
    return true;
  }
  /// Acquires by itself: thread sanitizer does not know fences.
  static uint64_t peekBeforeFence(const uint64_t *word) { return acquire(word); }
  static void fence() { threadFence(std::memory_order_acq_rel); }
  /// What all lanes did before comes before what they do after, for this device or for everybody.
  static void fenceDevice() { threadFence(std::memory_order_acq_rel); }
  static void fenceAll() { threadFence(std::memory_order_acq_rel); }
  /// What follows is not looked at before the value is visible.
  static void storeToHostFenced(uint64_t *word, uint64_t value) {
    storeShared(word, value, std::memory_order_relaxed);
    threadFence(std::memory_order_seq_cst);
  }

private:
  /// The entry's words, if they are of this turn.
  static bool loadEntry(const SubmissionEntry &entry, uint64_t sequence,
                        uint64_t (&words)[SubmissionEntry::kWords]) {
    for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i) {
      words[i] = acquire(&entry.words[i]);
      if (!isOfTurn(words[i], sequence)) {
        yieldProcessor(); // as in tryLock()
        return false;
      }
    }
    return true;
  }
  static Atomic<uint64_t> &shared(uint64_t *word) {
    static_assert(sizeof(Atomic<uint64_t>) == sizeof(uint64_t));
    return *reinterpret_cast<Atomic<uint64_t> *>(word);
  }
  template <class Change> static uint64_t change(uint64_t *word, const Change &changed) {
    uint64_t old = peek(word);
    while (!shared(word).compare_exchange_strong(old, changed(old), std::memory_order_acq_rel,
                                                 std::memory_order_acquire))
      ;
    return old;
  }
};

/// What runners on hosts have nothing to do for: there is no device's memory, and no rank but those
/// of the process. See executor.h.
class HostRunnerBase {
public:
  static void takenIn(const Submission &) {}
  static const CollectiveAddresses &addressesOf(const Submission &submission) {
    return *submission.collective;
  }
  static bool needsFence(const Submission &) { return true; }
  static void finished(const Submission &) {}
  static uint64_t imageLoads() { return 0; }
};

} // namespace occl::cuda::resident
