// Which task an executor turns to next.
//
// A pass gives every task one turn, in the order of a policy (runtime/sched/policy), that all ranks
// compute alike of what all of them have announced; tasks of other executors come last, and only to
// who has long had none of its own.
//
// An executor keeps a ledger of what it has seen in the window, and chooses from that: a look at
// all slots takes microseconds with many of them open. It looks at all of them when it knows of
// nothing to do; else only at what has come since, and at what some rank has not announced. The
// ledger may be out of date; claiming a task finds that out.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/sched/policy/order_key.h"

#include <cstdint>

namespace occl::cuda::resident {

/// What an executor knows of the window, by slot; in memory near it. A lane reads and writes the
/// slots whose number is its own, modulo the lanes.
struct Ledger {
  /// What of a submission says where it stands.
  struct Submitted {
    const uint64_t *done, *announced; // of its collective
    uint64_t ordinal;
    uint32_t announcedStride;
    uint8_t numRanks, priority;
  };
  Submitted submitted[kWindow];
  uint64_t claimable[kWindow]; // tasks for this executor, less those that have had their turn
  uint64_t visited[kWindow];   // have had their turn in this pass
  uint64_t standing[kWindow];  // see scheduler::standingKey()
  /// The low halves of 1 + the sequence: of what `submitted` is, and whose standing stays.
  uint32_t known[kWindow], settled[kWindow];
  bool isOthers[kWindow]; // tasks of other executors
};
static_assert(CollectiveWords::kMaxRanks <= 8);

struct Choice {
  uint64_t sequence = 0;
  uint32_t block = 0;
  uint32_t tasks = 1; // that there were to choose from
  bool isAnnounced = true;
  bool isAged = false;   // the age is rank 0's number
  bool isClear = false;  // all that came before is complete
  bool isHanded = false; // to this executor: hand_over.h
  uint32_t age = 0;

  OCCL_HOST_DEVICE bool hasOthers() const { return tasks > 1; }
};

/// A slot as it was when a lane looked at it: all words come with one trip.
struct SlotView {
  uint64_t claimable, left, sequence, words[SubmissionEntry::kWords];
};
/// What is claimed: a slot, and of a task what was there when it was claimed.
struct ClaimView {
  SlotView slot;
  uint64_t savedFor = 0;
  interpreter::BlockContext context;
  WaitRecord wait;
};

template <class Target> OCCL_HOST_DEVICE SlotView viewSlot(Target &target, const Slot &slot) {
  SlotView view;
  view.claimable = target.peek(&slot.claimable);
  view.left = target.peek(&slot.left);
  view.sequence = target.peek(&slot.sequence);
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    view.words[i] = target.peek(&slot.words[i]);
  return view;
}
OCCL_HOST_DEVICE inline bool isOpen(const SlotView &view, uint64_t sequence) {
  return view.sequence == sequence && view.left != 0;
}

/// One executor's. All lanes call together. Times are nanoseconds.
template <class Target> class Choosing {
public:
  OCCL_HOST_DEVICE Choosing(const Settings &settings, Board &board, uint32_t number, Target &target,
                            Ledger &ledger)
      : settings(settings), board(board), number(number), target(target), ledger(ledger),
        every(everyTask(settings.numExecutors)) {}

  /// The other executors are gone: all tasks are its own.
  OCCL_HOST_DEVICE void takeOver() {
    if (!ownsAll)
      surveyedTo = oldestOpen; // look at all slots
    ownsAll = true;
  }

  /// `tail`: of the submissions taken in. Whatever is older than the window is complete.
  OCCL_HOST_DEVICE void begin(uint64_t tail, uint64_t now) {
    oldestOpen = tail < kWindow ? 0 : tail - kWindow;
    surveyedTo = oldestOpen;
    lastOwn = now;
    for (uint32_t i = target.lane(); i < kWindow; i += target.numLanes())
      ledger.known[i] = ledger.settled[i] = 0;
    beginPass();
  }

  /// All that it knows of is complete.
  OCCL_HOST_DEVICE bool isIdle(uint64_t tail) {
    wasIdle = wasIdle || oldestOpen >= tail;
    return oldestOpen >= tail;
  }
  /// False: there is nothing for this executor now.
  OCCL_HOST_DEVICE bool choose(uint64_t tail, uint64_t now, Choice &choice) {
    if (isIdle(tail))
      return false;
    if (wasIdle) // what comes is theirs whose tables are near
      lastOwn = now;
    wasIdle = false;
    bool hasLooked = false; // at all slots
    if (surveyedTo <= oldestOpen || tail - oldestOpen > kWindow)
      hasLooked = survey(tail, now);
    else if (surveyedTo != tail || (hasUnsettled && now - settledAt >= settings.settleEvery))
      update(tail, now);
    uint64_t best = pick();
    if (best >= OrderKey::kOthers && !hasLooked && now - surveyedAt >= kSurveyEvery) {
      hasLooked = survey(tail, now);
      best = pick();
    }
    if (best == kNone && hasLooked && tasks != 0) { // all of them have had their turn
      beginPass();
      survey(tail, now);
      best = pick();
    }
    return decide(best, now, choice);
  }

  /// False: another executor was faster.
  OCCL_HOST_DEVICE bool claim(const Choice &choice, ClaimView &view) {
    Slot &slot = board.slots[choice.sequence % kWindow];
    const uint64_t bit = 1ull << choice.block;
    const bool isClaimable = (target.takeBits(&slot.claimable, bit) & bit) != 0;
    // Without preemption it is chosen again, until it is finished.
    if (isMine(choice.sequence) && (settings.preemption || !isClaimable))
      ledger.claimable[choice.sequence % kWindow] &= ~bit;
    if (!isClaimable)
      return false;
    // Slot and task come with one trip.
    const TaskState &task = board.tasks[choice.sequence % kWindow][choice.block];
    view.slot = viewSlot(target, slot);
    view.savedFor = target.peek(&task.savedFor);
    for (uint32_t w = 0; w < WaitRecord::kWords; ++w)
      view.wait.words[w] = target.peek(&task.wait.words[w]);
    view.context = task.context;
    // Meanwhile it may have been completed, and the slot be another's.
    if (view.slot.sequence == choice.sequence)
      return true;
    target.giveBits(&slot.claimable, bit);
    return false;
  }

  /// The task is about to be visited: what orders the ages of others.
  OCCL_HOST_DEVICE void noteAge(const Choice &choice) {
    if (choice.isAged)
      agedFrom = choice.age - (1u << 23);
  }
  /// The task has had its turn in this pass.
  OCCL_HOST_DEVICE void endTurn(const Choice &choice) {
    ++visitsInPass;
    if (isMine(choice.sequence))
      ledger.visited[choice.sequence % kWindow] |= 1ull << choice.block;
  }
  /// The submission is complete.
  OCCL_HOST_DEVICE void noteComplete(uint64_t sequence) {
    if (sequence == oldestOpen)
      oldestOpen = sequence + 1;
  }

  /// How long a blocked task is polled.
  OCCL_HOST_DEVICE uint64_t budget(const Choice &choice) const {
    if (!choice.hasOthers() || !settings.preemption)
      return settings.budgetAlone;
    if (!choice.isAnnounced)
      return 0;
    return scheduler::budgetOf(settings.budget, settings.budgetLimits,
                               {visitsInPass, choice.tasks, false});
  }

  /// All submissions before it are complete.
  OCCL_HOST_DEVICE uint64_t first() const { return oldestOpen; }

private:
  /// Between looks at all slots while there is nothing to do.
  static constexpr uint64_t kSurveyEvery = 3'000;
  /// Slots that a lane looks at together.
  static constexpr uint32_t kTogether = 4;
  using OrderKey = scheduler::OrderKey;
  static constexpr uint64_t kNone = OrderKey::kNone;
  static_assert(kWindow == OrderKey::kNumbers && kMaxTasks == OrderKey::kBlocks);

  OCCL_HOST_DEVICE bool isMine(uint64_t sequence) const {
    return (sequence & (target.numLanes() - 1)) == target.lane();
  }
  /// The first submission of this lane.
  OCCL_HOST_DEVICE uint64_t firstOfLane(uint64_t from) const {
    return from + ((target.lane() - from) & (target.numLanes() - 1));
  }

  /// Looks at all slots. True.
  OCCL_HOST_DEVICE bool survey(uint64_t tail, uint64_t now) {
    helps = settings.preemption && now - lastOwn >= settings.helpAfter;
    const Found found = look(oldestOpen, tail);
    const bool isAlone = target.sum(found.numOpen) == 1;
    const uint32_t dropped = settle(tail, now, isAlone);
    tasks = target.sum(found.numTasks - dropped);
    oldestOpen = target.smallest(found.open);
    surveyedAt = now;
    return true;
  }
  /// Looks at what has come since, and at announcements.
  OCCL_HOST_DEVICE void update(uint64_t tail, uint64_t now) {
    const uint32_t added = surveyedTo != tail ? look(surveyedTo, tail).numTasks : 0;
    const uint32_t dropped = settle(tail, now, false);
    // What is dropped here may be dropped again: it is found again by the next survey.
    tasks += target.sum(added > dropped ? added - dropped : 0);
  }

  /// Of the submissions that a lane has looked at.
  struct Found {
    uint64_t open = kNone; // the first open one; the end if none is
    uint32_t numOpen = 0, numTasks = 0;
  };
  OCCL_HOST_DEVICE Found look(uint64_t from, uint64_t tail) {
    Found found;
    found.open = tail;
    for (uint64_t s = firstOfLane(from); s < tail; s += kTogether * target.numLanes()) {
      // All loads first, so that they are on their way together.
      uint64_t claimable[kTogether], left[kTogether], sequence[kTogether], word[kTogether];
      for (uint32_t k = 0; k < kTogether; ++k) {
        const Slot &slot = board.slots[(s + k * target.numLanes()) % kWindow];
        claimable[k] = target.peek(&slot.claimable);
        left[k] = target.peek(&slot.left);
        sequence[k] = target.peek(&slot.sequence);
        word[k] = target.peek(&slot.words[0]);
      }
      for (uint32_t k = 0; k < kTogether; ++k) {
        const uint64_t at = s + k * target.numLanes();
        if (at < tail)
          enter(at, sequence[k] == at && left[k] != 0, claimable[k], word[k], found);
      }
    }
    surveyedTo = tail;
    return found;
  }
  OCCL_HOST_DEVICE void enter(uint64_t at, bool isOpenHere, uint64_t claimable, uint64_t word,
                              Found &found) {
    const uint32_t index = at % kWindow;
    uint64_t mine = 0;
    if (isOpenHere) {
      found.open = found.open < at ? found.open : at;
      ++found.numOpen;
      mine = ownsAll ? claimable
                     : claimable & ownTasks(every, number, settings.numExecutors, homeIn(word));
      // A helper may take any of them; the key puts those behind all of its own.
      ledger.isOthers[index] = mine == 0;
      if (mine == 0 && helps)
        mine = claimable;
      found.numTasks += target.countBits(mine);
    }
    ledger.claimable[index] = mine & ~(settings.preemption ? ledger.visited[index] : 0);
  }

  /// This lane's submissions whose standing is not known for good. How many tasks of them cannot
  /// begin: those are left out until the next survey.
  OCCL_HOST_DEVICE uint32_t settle(uint64_t tail, uint64_t now, bool isAlone) {
    uint32_t dropped = 0, unsettled = 0;
    bool hasLookedAtDone = false;
    for (uint64_t s = firstOfLane(oldestOpen); s < tail; s += target.numLanes()) {
      const uint32_t index = s % kWindow;
      const auto mark = static_cast<uint32_t>(s + 1);
      if (ledger.claimable[index] == 0 || ledger.settled[index] == mark)
        continue;
      // Alone it is begun whether others have announced it or not: no word is looked at for it.
      if (isAlone) { // it has none before it
        ledger.standing[index] = OrderKey::kUnaged;
        continue;
      }
      if (ledger.known[index] != mark && !learn(s, index)) {
        ledger.claimable[index] = 0;
        continue;
      }
      hasLookedAtDone = true;
      if (!findStanding(ledger.submitted[index], index, mark)) {
        dropped += target.countBits(ledger.claimable[index]);
        ledger.claimable[index] = 0;
      }
      unsettled += ledger.settled[index] != mark;
    }
    hasUnsettled = target.sum(unsettled) != 0;
    settledAt = now;
    if (hasLookedAtDone)
      target.fence(); // what an invocation that is complete has done is seen from here on
    return dropped;
  }

  /// False: meanwhile it has been completed.
  OCCL_HOST_DEVICE bool learn(uint64_t sequence, uint32_t index) {
    const SlotView view = viewSlot(target, board.slots[index]);
    if (view.sequence != sequence)
      return false;
    const Submission submission = unpack(view.words);
    const CollectiveWords &words = *submission.collective;
    // Copied: later looks at the announcements cost one trip instead of three.
    ledger.submitted[index] = {words.done,
                               words.announced,
                               submission.ordinal,
                               static_cast<uint32_t>(words.announcedStride),
                               static_cast<uint8_t>(words.numRanks),
                               submission.priority};
    ledger.known[index] = static_cast<uint32_t>(sequence + 1);
    return true;
  }

  /// Where a submission stands among others. False: the invocation before is not complete here.
  OCCL_HOST_DEVICE bool findStanding(const Ledger::Submitted &submitted, uint32_t index,
                                     uint32_t mark) {
    const uint64_t done = target.peekBeforeFence(submitted.done);
    if (!settings.preemption) {
      // As this rank has submitted it: it is never found out what others say.
      ledger.standing[index] =
          scheduler::standingKey(settings.order, submitted.priority, true, 0) | OrderKey::kUnaged;
      return done == submitted.ordinal;
    }
    uint8_t priority = submitted.priority;
    bool announced = true;
    uint64_t age = 0;
    for (uint32_t r = 0; r < submitted.numRanks; ++r) {
      const uint64_t word = target.peekAtPeer(
          reinterpret_cast<const uint64_t *>(reinterpret_cast<const char *>(submitted.announced) +
                                             uint64_t(r) * submitted.announcedStride));
      if (!isAnnounced(word, submitted.ordinal)) {
        announced = false;
        continue;
      }
      // One rank's urgency counts here, though some other rank has not come to it.
      const auto theirs = static_cast<uint8_t>(word >> 24);
      priority = theirs > priority ? theirs : priority;
      if (r == 0)
        age = word & (OrderKey::kAges - 1);
    }
    if (done != submitted.ordinal)
      return false;
    ledger.standing[index] = scheduler::standingKey(settings.order, priority, announced, age);
    if (announced)
      ledger.settled[index] = mark;
    return true;
  }

  /// The smallest key of a task in the ledger.
  OCCL_HOST_DEVICE uint64_t pick() const {
    uint64_t best = kNone;
    for (uint64_t s = firstOfLane(oldestOpen); s < surveyedTo; s += target.numLanes()) {
      const uint32_t index = s % kWindow;
      const uint64_t candidates = ledger.claimable[index];
      const uint64_t standing = ledger.standing[index];
      // Nobody helps with what cannot go on.
      const bool isOthers = ledger.isOthers[index];
      if (candidates == 0 || (isOthers && (standing & OrderKey::kUnannounced) != 0))
        continue;
      const uint64_t key = scheduler::keyOf(settings.order, standing, agedFrom, isOthers,
                                            s - oldestOpen, firstOf(candidates, isOthers));
      best = key < best ? key : best;
    }
    return target.smallest(best);
  }
  /// Who helps begins elsewhere than the others that do.
  OCCL_HOST_DEVICE uint32_t firstOf(uint64_t candidates, bool isOthers) const {
    if (!isOthers)
      return target.lowestBit(candidates);
    const uint32_t from = number % kMaxTasks;
    const uint64_t above = candidates >> from << from;
    return target.lowestBit(above != 0 ? above : candidates);
  }

  OCCL_HOST_DEVICE bool decide(uint64_t best, uint64_t now, Choice &choice) {
    if (best == kNone)
      return false;
    const scheduler::KeyedTask task = scheduler::taskOf(settings.order, best, agedFrom);
    if (!task.isOthers)
      lastOwn = now;
    choice.sequence = oldestOpen + task.number;
    choice.block = task.block;
    choice.tasks = tasks;
    choice.isAnnounced = task.isAnnounced;
    choice.isAged = task.isAged;
    choice.age = task.age;
    return true;
  }

  OCCL_HOST_DEVICE void beginPass() {
    for (uint32_t i = target.lane(); i < kWindow; i += target.numLanes())
      ledger.visited[i] = 0;
    visitsInPass = 0;
  }

  const Settings &settings;
  Board &board;
  const uint32_t number;
  Target &target;
  Ledger &ledger;
  const uint64_t every; // everyTask() of the executors
  uint64_t oldestOpen = 0;
  uint64_t surveyedTo = 0, surveyedAt = 0, settledAt = 0;
  uint64_t lastOwn = 0; // when it last had a task of its own to choose
  uint32_t tasks = 0;   // that it has found since the survey, whoever has them now
  uint32_t agedFrom = 0;
  uint32_t visitsInPass = 0;
  bool wasIdle = false;
  bool helps = false; // as of the survey
  bool ownsAll = false;
  bool hasUnsettled = false; // some submission's standing may change
};

} // namespace occl::cuda::resident
