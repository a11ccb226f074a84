// How one executor wakes another that sleeps because nothing moved. Lies in shared memory; several
// may sleep on one doorbell, any thread of any process may ring it.
//
// No wake-up is lost (Dekker): who rings first publishes what the sleeper waits for, then reads
// `sleeping`; who sleeps first sets `sleeping`, then looks once more whether there is something to
// do. A sequentially consistent fence lies between the two steps on both sides, so at least one of
// them sees the other.
#pragma once

#include "runtime/sync/atomic.h"
#include "runtime/sync/futex.h"

#include <chrono>
#include <cstdint>

namespace occl {

struct alignas(64) Doorbell {
  Atomic<uint32_t> word{0};     // changes with every ring that found a sleeper
  Atomic<uint32_t> sleeping{0}; // 1 while someone may be asleep

  /// After publishing something that a sleeper may wait for. Costs a fence and a load while nobody
  /// sleeps.
  void ring() {
    threadFence(std::memory_order_seq_cst);
    ringFenced();
  }

  /// The same for a caller that has executed a sequentially consistent fence since it published.
  void ringFenced() {
    if (sleeping.load(std::memory_order_relaxed) != 0)
      wakeSleepers();
  }

  /// First step of going to sleep: the ticket for `sleep`. Between the two the caller must look
  /// once more whether there is something to do, and not sleep if so.
  uint32_t prepareSleep() {
    uint32_t ticket = word.load(std::memory_order_acquire);
    sleeping.exchange(1, std::memory_order_seq_cst);
    threadFence(std::memory_order_seq_cst);
    return ticket;
  }

  /// Returns at a ring since prepareSleep, after atMost, or without cause.
  void sleep(uint32_t ticket, std::chrono::nanoseconds atMost) { futexWait(word, ticket, atMost); }

  /// A ticket to sleep without being seen to: ring() does not end such a sleep, ringAll() does.
  uint32_t quietTicket() const { return word.load(std::memory_order_acquire); }

  /// A sleep with such a ticket.
  void nap(uint32_t ticket, std::chrono::nanoseconds atMost) {
    futexWait(word, ticket, atMost, SleepEnd::ByTime);
  }

  /// Wakes all that sleep, whether they are seen to or not. Always a system call.
  void ringAll() {
    sleeping.store(0, std::memory_order_seq_cst);
    word.fetch_add(1, std::memory_order_seq_cst);
    futexWakeAll(word);
  }

private:
  void wakeSleepers() {
    if (sleeping.exchange(0, std::memory_order_seq_cst) == 0)
      return;
    word.fetch_add(1, std::memory_order_seq_cst);
    futexWakeAll(word);
  }
};

static_assert(Atomic<uint32_t>::is_always_lock_free);

} // namespace occl
