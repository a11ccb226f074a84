// How a submission that comes while nothing else is open reaches executors that have nothing to do:
// who has the intake hands each of them its task, so that nobody has to look for it, choose it and
// claim it. A hand-over is one trip from one executor to another.
//
// An executor that has found nothing to do says in a word of its own that it awaits a task, and
// looks at a line of its own. Who has the intake looks at those words while it looks at the ring.
// A task that is handed over is the other one's, as if it had claimed it: nobody else sees it as
// claimable. It need not be visited at once: the executor may have found something else meanwhile.
// As every visit is bounded, it comes to it; when all leave, it gives it back.
//
// Turns, of 16 bits, count what an executor was handed. A task may be handed to it if it awaits the
// turn after that of what lies there.
//
// What is stored in a line is ordered by nothing, and need not be: it says by itself that it is
// complete, and what the task relies on - tables, input - was in memory of the device before the
// host stored the entry. Only copies of it in the caches of the executor's multiprocessor may be
// older; what an executor looks at after its line, with acquire, drops them.
#pragma once

#include "runtime/cuda/resident/executor/board.h"

#include <cstdint>

namespace occl::cuda::resident {

/// One executor's. All lanes call together, unless it says otherwise.
template <class Target> class HandOver {
public:
  OCCL_HOST_DEVICE HandOver(Hands &hands, uint32_t number, uint32_t numExecutors, Target &target)
      : hands(hands), number(number), numExecutors(numExecutors), target(target) {}

  // Who takes.

  OCCL_HOST_DEVICE void begin() {
    turn = turnOf(target.ofFirst(true, target.peek(&hands.hands[number].words[0])));
  }
  /// It has nothing to do.
  OCCL_HOST_DEVICE void await() {
    if (isAwaiting)
      return;
    isAwaiting = true;
    if (target.lane() == 0)
      target.post(&hands.awaited[number], kAwaits | next(turn));
  }
  OCCL_HOST_DEVICE bool awaits() const { return isAwaiting; }
  /// A look at its line, in two halves: other looks may be on their way meanwhile.
  OCCL_HOST_DEVICE auto look() const { return target.lookAtHand(hands.hands[number]); }
  template <class Looked>
  OCCL_HOST_DEVICE bool hasCome(const Looked &looked, uint64_t (&words)[Hand::kWords]) const {
    return isAwaiting &&
           target.takeHand(looked, hands.hands[number], uint64_t(next(turn)) << 48, words);
  }
  /// What has come is taken.
  OCCL_HOST_DEVICE void accept() {
    turn = next(turn);
    isAwaiting = false;
  }
  /// Nobody hands it anything any more, but to later executors.
  OCCL_HOST_DEVICE void end() const {
    if (target.lane() == 0)
      target.post(&hands.awaited[number], 0);
  }

  OCCL_HOST_DEVICE static uint64_t sequenceIn(const uint64_t (&words)[Hand::kWords]) {
    return words[Hand::kWords - 1] & ((1ull << kBlockShift) - 1);
  }
  OCCL_HOST_DEVICE static uint32_t blockIn(const uint64_t (&words)[Hand::kWords]) {
    return static_cast<uint32_t>(words[Hand::kWords - 1] >> kBlockShift) % kMaxTasks;
  }

  // Who hands over: with the intake.

  /// What a lane has seen of its executors: number i * lanes + lane.
  struct Takers {
    static constexpr uint32_t kEach = kMaxExecutors / Target::kLanes;
    uint64_t awaited[kEach] = {}, last[kEach] = {};
  };
  OCCL_HOST_DEVICE Takers lookForTakers() const {
    Takers takers;
    for (uint32_t i = 0; i < Takers::kEach; ++i) {
      const uint32_t executor = i * Target::kLanes + target.lane();
      if (executor >= numExecutors)
        continue;
      takers.awaited[i] = target.peek(&hands.awaited[executor]);
      takers.last[i] = target.peek(&hands.hands[executor].words[0]);
    }
    return takers;
  }
  /// Hands over the thread blocks of a submission, each to the executor that prefers it, or, if
  /// that one is busy, to the one that is so many executors behind it as there are thread blocks.
  /// Those that it has handed over, as bits.
  OCCL_HOST_DEVICE uint64_t give(const Takers &takers,
                                 const uint64_t (&words)[SubmissionEntry::kWords],
                                 uint32_t numBlocks, uint64_t sequence) const {
    const uint64_t all = allTasks(numBlocks);
    uint64_t given = 0;
    for (uint32_t round = 0; round < 2 && given != all; ++round) {
      // Each lane looks at some executors, and hands a block to those that are free: in the first
      // round the one that they prefer, in the second the one that a busy executor prefers.
      uint64_t mine = 0;
      for (uint32_t i = 0; i < Takers::kEach; ++i) {
        const uint32_t executor = i * Target::kLanes + target.lane();
        if (executor >= numExecutors || executor == number || !isFree(takers, i))
          continue;
        const uint32_t block =
            firstOwnTask(executor, numExecutors, homeIn(words[0])) - round * numBlocks;
        if (block >= numBlocks || (given >> block & 1) != 0)
          continue;
        put(hands.hands[executor], words, sequence, block, next(turnOf(takers.last[i])));
        mine |= 1ull << block;
      }
      given |= target.sum(mine);
    }
    return given;
  }

private:
  static constexpr uint64_t kAwaits = 1ull << 16;
  static constexpr uint32_t kBlockShift = 40;

  OCCL_HOST_DEVICE static uint16_t turnOf(uint64_t word) {
    return static_cast<uint16_t>(word >> 48);
  }
  OCCL_HOST_DEVICE static uint16_t next(uint16_t turn) { return static_cast<uint16_t>(turn + 1); }

  OCCL_HOST_DEVICE static bool isFree(const Takers &takers, uint32_t i) {
    return takers.awaited[i] == (kAwaits | next(turnOf(takers.last[i])));
  }
  /// One lane.
  OCCL_HOST_DEVICE void put(Hand &hand, const uint64_t (&words)[SubmissionEntry::kWords],
                            uint64_t sequence, uint32_t block, uint16_t of) const {
    const uint64_t mark = uint64_t(of) << 48;
    for (uint32_t w = 0; w < SubmissionEntry::kWords; ++w)
      target.publish(&hand.words[w], (words[w] << 16 >> 16) | mark);
    target.publish(&hand.words[Hand::kWords - 1], sequence | uint64_t(block) << kBlockShift | mark);
  }

  Hands &hands;
  const uint32_t number, numExecutors;
  Target &target;
  uint16_t turn = 0; // of the last task that it was handed
  bool isAwaiting = false;
};

} // namespace occl::cuda::resident
