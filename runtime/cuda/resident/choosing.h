// Which task an executor turns to next.
//
// A pass gives every task one turn. What all ranks have announced goes first, in an order that all
// ranks compute alike; tasks of other executors come last, and only to who has long had none of its
// own.
#pragma once

#include "runtime/cuda/resident/board.h"

#include <cstdint>

namespace occl::cuda::resident {

/// Which tasks an executor has visited in this pass; in memory near it.
struct VisitedTasks {
  uint64_t bits[kWindow];
};

struct Choice {
  uint64_t sequence = 0;
  uint32_t block = 0;
  uint32_t tasks = 1; // that there were to choose from

  OCCL_HOST_DEVICE bool hasOthers() const { return tasks > 1; }
};

/// A slot as it was when a lane looked at it: all words come with one trip.
struct SlotView {
  uint64_t claimable, saved, left, sequence, words[SubmissionEntry::kWords];
};

template <class Target> OCCL_HOST_DEVICE SlotView viewSlot(Target &target, const Slot &slot) {
  SlotView view;
  view.claimable = target.peek(&slot.claimable);
  view.saved = target.peek(&slot.saved);
  view.left = target.peek(&slot.left);
  view.sequence = target.peek(&slot.sequence);
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    view.words[i] = target.peek(&slot.words[i]);
  return view;
}
OCCL_HOST_DEVICE inline bool isOpen(const SlotView &view, uint64_t sequence) {
  return view.sequence == sequence && view.left != 0;
}

/// One executor's. All lanes call together.
template <class Target> class Choosing {
public:
  OCCL_HOST_DEVICE Choosing(const Settings &settings, Board &board, uint32_t number, Target &target,
                            VisitedTasks &visited)
      : settings(settings), board(board), target(target), visited(visited) {
    for (uint32_t b = number; b < kMaxTasks; b += settings.numExecutors)
      own |= 1ull << b;
  }

  /// The other executors are gone: all tasks are its own.
  OCCL_HOST_DEVICE void takeOver() { own = ~0ull; }

  /// `tail`: of the submissions taken in. Whatever is older than the window is complete.
  OCCL_HOST_DEVICE void begin(uint64_t tail) {
    oldestOpen = tail < kWindow ? 0 : tail - kWindow;
    beginPass();
  }

  /// False: there is nothing for this executor now.
  OCCL_HOST_DEVICE bool choose(uint64_t tail, Choice &choice) {
    if (oldestOpen == tail) {
      ++lonely;
      return false;
    }
    uint64_t open = tail;
    uint32_t numOpen = 0;
    SlotView last; // that this lane has found open
    for (uint64_t s = oldestOpen + target.lane(); s < tail; s += target.numLanes()) {
      const SlotView view = viewSlot(target, slotOf(s));
      if (!isOpen(view, s))
        continue;
      open = open < s ? open : s;
      ++numOpen;
      last = view;
    }
    const uint32_t allOpen = target.sum(numOpen);
    const uint64_t begin = oldestOpen;
    oldestOpen = target.smallest(open);
    Survey survey;
    if (numOpen == 1)
      surveyOne(last, survey, allOpen == 1);
    else if (numOpen > 1)
      for (uint64_t s = begin + target.lane(); s < tail; s += target.numLanes())
        surveyOne(viewSlot(target, slotOf(s)), survey, false);
    return decide(survey, choice);
  }

  /// False: another executor was faster.
  OCCL_HOST_DEVICE bool claim(const Choice &choice, SlotView &view) {
    Slot &slot = slotOf(choice.sequence);
    const uint64_t bit = 1ull << choice.block;
    if ((target.takeBits(&slot.claimable, bit) & bit) == 0)
      return false;
    view = viewSlot(target, slot);
    // Meanwhile it may have been completed, and the slot be another's.
    if (view.sequence == choice.sequence)
      return true;
    target.giveBits(&slot.claimable, bit);
    return false;
  }

  /// The task is about to be visited: what orders the ages of others.
  OCCL_HOST_DEVICE void noteAge(const CollectiveWords &words) { // rank 0's number
    agedFrom = static_cast<uint32_t>(target.peek(words.announced) - (1u << 23));
  }
  /// The task has had its turn in this pass.
  OCCL_HOST_DEVICE void endTurn(const Choice &choice) {
    ++visitsInPass;
    if (target.lane() == 0)
      visited.bits[choice.sequence % kWindow] |= 1ull << choice.block;
  }

  /// How long a blocked task is polled, in nanoseconds.
  OCCL_HOST_DEVICE uint64_t budget(const Choice &choice) const {
    if (!choice.hasOthers() || !settings.preemption)
      return settings.budgetAlone;
    uint64_t budget = settings.budgetCap >> (visitsInPass < 16 ? visitsInPass : 16);
    return budget > settings.budgetFloor ? budget : settings.budgetFloor;
  }

  /// All submissions before it are complete.
  OCCL_HOST_DEVICE uint64_t first() const { return oldestOpen; }

private:
  /// Rounds without a task of its own before it helps others: about 20 microseconds.
  static constexpr uint32_t kHelpAfter = 24;
  static constexpr uint64_t kNone = ~0ull;
  static constexpr uint64_t kUnannounced = 1ull << 55, kHelping = 1ull << 54;

  /// Of the submissions that a lane looks at.
  struct Survey {
    uint64_t best = kNone; // the smallest key
    uint32_t tasks = 0;    // that may be claimed, visited in this pass or not
  };

  OCCL_HOST_DEVICE Slot &slotOf(uint64_t sequence) const { return board.slots[sequence % kWindow]; }

  OCCL_HOST_DEVICE bool decide(const Survey &survey, Choice &choice) {
    const uint64_t best = target.smallest(survey.best);
    const uint32_t tasks = target.sum(survey.tasks);
    if (best == kNone) {
      if (tasks == 0)
        ++lonely;
      else // all of them have had their turn
        beginPass();
      return false;
    }
    lonely = (best & kHelping) != 0 ? lonely : 0;
    choice = {oldestOpen + (best >> 6 & 255), static_cast<uint32_t>(best & 63), tasks};
    return true;
  }

  /// A key says what goes first: bit 55: some rank has not announced it; 54: a task of another
  /// executor; 46 to 53: the priority, inverted; 14 to 45: the age; 6 to 13: which submission; then
  /// the block.
  OCCL_HOST_DEVICE void surveyOne(const SlotView &slot, Survey &survey, bool isAlone) const {
    uint64_t mine = slot.claimable & own, key = 0;
    if (mine == 0 && lonely >= kHelpAfter && settings.preemption) {
      mine = slot.claimable;
      key = kHelping;
    }
    // Meanwhile it may have been completed.
    if (mine == 0 || slot.sequence < oldestOpen || slot.sequence - oldestOpen >= kWindow)
      return;
    const Submission submission = unpack(slot.words);
    const CollectiveWords &words = *submission.collective;
    // The invocation before must be complete here; what is alone has none before it.
    if (!isAlone && target.acquire(words.done) != submission.ordinal)
      return;
    survey.tasks += target.countBits(mine);
    const uint64_t sequence = slot.sequence;
    const uint64_t turns = settings.preemption ? visited.bits[sequence % kWindow] : 0;
    const uint64_t candidates = mine & ~turns;
    if (candidates == 0)
      return;
    uint8_t priority = settings.preemption ? submission.priority : 255;
    uint32_t age = static_cast<uint32_t>(sequence - oldestOpen);
    if (!isAlone && settings.preemption)
      key |= standing(words, submission.ordinal, priority, age);
    key |= uint64_t(255 - priority) << 46 | uint64_t(age) << 14 | (sequence - oldestOpen) << 6 |
           target.lowestBit(candidates);
    survey.best = key < survey.best ? key : survey.best;
  }

  /// What all ranks have announced goes first, in an order that all ranks compute alike: by the
  /// highest priority of any rank, then by the number on rank 0. Else kUnannounced.
  OCCL_HOST_DEVICE uint64_t standing(const CollectiveWords &words, uint64_t ordinal,
                                     uint8_t &priority, uint32_t &age) const {
    bool announced = true;
    uint32_t sequence = 0;
    for (uint32_t r = 0; r < words.numRanks; ++r) {
      if (words.isIdle(r))
        continue;
      uint64_t word = target.peekAtPeer(words.announcedBy(r));
      if (!isAnnounced(word, ordinal)) {
        announced = false;
        continue;
      }
      uint8_t theirs = static_cast<uint8_t>(word >> 24);
      priority = theirs > priority ? theirs : priority;
      if (r == 0)
        sequence = static_cast<uint32_t>(word & 0xffffff);
    }
    if (!announced)
      return kUnannounced;
    // Numbers repeat themselves after 2^24: what counts is how far apart they are.
    age = (sequence - agedFrom) & 0xffffff;
    return 0;
  }

  OCCL_HOST_DEVICE void beginPass() {
    target.sync();
    for (uint32_t i = target.lane(); i < kWindow; i += target.numLanes())
      visited.bits[i] = 0;
    visitsInPass = 0;
    target.sync();
  }

  const Settings &settings;
  Board &board;
  Target &target;
  VisitedTasks &visited;
  uint64_t own = 0; // tasks by the number of their block
  uint64_t oldestOpen = 0;
  uint32_t agedFrom = 0;
  uint32_t lonely = 0, visitsInPass = 0;
};

} // namespace occl::cuda::resident
