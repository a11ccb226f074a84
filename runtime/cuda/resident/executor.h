// The scheduler of a resident daemon, one source for device and host: an executor claims a task,
// loads its context, steps until it is finished or stuck for its budget, saves the context if it
// has moved, releases the task and claims the next one. It never waits for anything; all executors
// leave together, when nothing has been open or nothing has moved for long.
//
// Target supplies memory operations and lanes: on a device the lanes of a warp call these functions
// together, on the host there is one. Runner prepares a task and hands over what runs its slices:
//   auto visit(const Submission &, uint32_t block, body), which returns what body(run) does; there
//   interpreter::StepResult run(interpreter::BlockContext &, uint32_t maxSlices);
//   void finished(const Submission &): all of its blocks are, and visible everywhere
//   uint64_t imageLoads() const;
#pragma once

#include "runtime/cuda/resident/board.h"
#include "runtime/interpreter/step.h"

#include <cstdint>

namespace occl::cuda::resident {

/// Which tasks an executor has visited in this pass; in memory near it.
struct VisitedTasks {
  uint64_t bits[kWindow];
};

struct ExecutorArguments {
  Board *board = nullptr;
  HostPage *page = nullptr;
  /// Of these executors: 1, 2, 3 ... in the order of starts.
  uint64_t generation = 0;
  Settings settings;
};

template <class Target, class Runner> class Executor {
public:
  OCCL_HOST_DEVICE Executor(const ExecutorArguments &arguments, uint32_t number, Target &target,
                            Runner &runner, VisitedTasks &visited)
      : settings(arguments.settings), board(*arguments.board), page(*arguments.page),
        generation(arguments.generation), number(number), target(target), runner(runner),
        visited(visited) {
    for (uint32_t b = number; b < kMaxTasks; b += settings.numExecutors)
      own |= 1ull << b;
  }

  /// Until all leave.
  OCCL_HOST_DEVICE void run() {
    progress = target.peek(&board.progress[number].value);
    beginPass();
    // Whatever is older than the window is complete.
    uint64_t tail = tailOf(target.look(&board.news));
    first = tail < kWindow ? 0 : tail - kWindow;
    while (!isOver()) {
      Choice choice;
      SlotView slot;
      if (!choose(choice))
        attend();
      else if (claim(choice, slot))
        visit(choice, slot);
    }
    leave();
  }

private:
  /// Rounds without a task of its own before it helps others: about 20 microseconds.
  static constexpr uint32_t kHelpAfter = 24;
  static constexpr uint32_t kQuantumSlices = 16;
  /// Of a task that is alone; then it looks around.
  static constexpr uint32_t kMaxQuanta = 8;
  static constexpr uint32_t kRoundsPerAbortCheck = 32;
  /// Nanoseconds, while it polls for a task.
  static constexpr uint64_t kAttendEvery = 15'000;
  static constexpr uint32_t kIntakesPerWatch = 8;
  static constexpr uint64_t kNone = ~0ull;

  struct Choice {
    uint64_t sequence = 0;
    uint32_t block = 0;
    bool others = false; // there are other tasks to visit
  };

  OCCL_HOST_DEVICE static uint64_t tailOf(uint64_t news) { return news << 16 >> 16; }
  OCCL_HOST_DEVICE bool isLeaving(uint64_t news) const {
    return news >> 48 == (generation & 0xffff);
  }
  OCCL_HOST_DEVICE Slot &slotOf(uint64_t sequence) const { return board.slots[sequence % kWindow]; }

  OCCL_HOST_DEVICE bool isOver() {
    if (!hasIntake) // else nobody changes it
      seen = target.look(&board.news);
    if (++rounds % kRoundsPerAbortCheck == 0 && target.lookAtHost(&page.abort) != 0)
      return true;
    return isLeaving(seen);
  }

  // --- choosing ---

  /// A slot as it was when a lane looked at it: all words come with one trip.
  struct SlotView {
    uint64_t claimable, saved, left, sequence, words[SubmissionEntry::kWords];
  };
  OCCL_HOST_DEVICE SlotView viewOf(uint64_t sequence) const {
    const Slot &slot = slotOf(sequence);
    SlotView view;
    view.claimable = target.peek(&slot.claimable);
    view.saved = target.peek(&slot.saved);
    view.left = target.peek(&slot.left);
    view.sequence = target.peek(&slot.sequence);
    for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
      view.words[i] = target.peek(&slot.words[i]);
    return view;
  }
  OCCL_HOST_DEVICE static bool isOpen(const SlotView &view, uint64_t sequence) {
    return view.sequence == sequence && view.left != 0;
  }

  OCCL_HOST_DEVICE bool choose(Choice &choice) {
    const uint64_t tail = tailOf(seen);
    if (first == tail) {
      ++lonely;
      return false;
    }
    uint64_t open = tail;
    uint32_t numOpen = 0;
    SlotView last; // that this lane has found open
    for (uint64_t s = first + target.lane(); s < tail; s += target.numLanes()) {
      const SlotView view = viewOf(s);
      if (!isOpen(view, s))
        continue;
      open = open < s ? open : s;
      ++numOpen;
      last = view;
    }
    const uint32_t allOpen = target.sum(numOpen);
    const uint64_t begin = first;
    first = target.smallest(open);
    Survey survey;
    if (numOpen == 1)
      surveyOne(last, survey, allOpen == 1);
    else if (numOpen > 1)
      for (uint64_t s = begin + target.lane(); s < tail; s += target.numLanes())
        surveyOne(viewOf(s), survey, false);
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
    choice = {first + (best >> 6 & 255), static_cast<uint32_t>(best & 63), tasks > 1};
    return true;
  }

  /// Of the submissions that a lane looks at.
  struct Survey {
    uint64_t best = kNone; // the smallest key
    uint32_t tasks = 0;    // that may be claimed, visited in this pass or not
  };

  static constexpr uint64_t kUnannounced = 1ull << 55, kHelping = 1ull << 54;

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
    if (mine == 0 || slot.sequence < first || slot.sequence - first >= kWindow)
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
    uint32_t age = static_cast<uint32_t>(sequence - first);
    if (!isAlone && settings.preemption)
      key |= standing(words, submission.ordinal, priority, age);
    key |= uint64_t(255 - priority) << 46 | uint64_t(age) << 14 | (sequence - first) << 6 |
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

  // --- a visit ---

  OCCL_HOST_DEVICE bool claim(const Choice &choice, SlotView &view) {
    Slot &slot = slotOf(choice.sequence);
    const uint64_t bit = 1ull << choice.block;
    if ((target.takeBits(&slot.claimable, bit) & bit) == 0)
      return false;
    view = viewOf(choice.sequence);
    // Meanwhile it may have been completed, and the slot be another's.
    if (view.sequence == choice.sequence)
      return true;
    target.giveBits(&slot.claimable, bit);
    return false;
  }

  OCCL_HOST_DEVICE void visit(const Choice &choice, const SlotView &view) {
    stopIntake();
    Slot &slot = slotOf(choice.sequence);
    TaskState &task = board.tasks[choice.sequence % kWindow][choice.block];
    const uint64_t bit = 1ull << choice.block;
    const Submission submission = unpack(view.words);
    interpreter::BlockContext context;
    const bool hasContext = (view.saved & bit) != 0;
    if (hasContext)
      context = task.context;
    count(Count::Visits);
    count(Count::ContextLoads, hasContext);
    if (choice.others) // rank 0's number
      agedFrom = static_cast<uint32_t>(target.peek(submission.collective->announced) - (1u << 23));
    const Stay stay = runner.visit(submission, choice.block,
                                   [&](const auto &run) { return execute(context, choice, run); });
    if (stay.moved) {
      count(Count::Moves);
      publishProgress();
    }
    if (stay.finished)
      return finish(choice, submission, slot, task);
    record(task, choice.sequence, stay.context, stay.obstacle);
    if (stay.moved) {
      count(Count::ContextSaves);
      if (target.lane() == 0)
        task.context = stay.context;
      if (!hasContext)
        target.giveBits(&slot.saved, bit);
    }
    if (choice.others) {
      count(Count::Preemptions, !stay.ranOut);
      ++visitsInPass;
      if (target.lane() == 0)
        visited.bits[choice.sequence % kWindow] |= bit;
    }
    target.giveBits(&slot.claimable, bit);
  }

  struct Stay {
    bool finished = false, moved = false;
    bool ranOut = false; // of its quantum, and not of its budget
    interpreter::Obstacle obstacle;
    interpreter::BlockContext context; // where it is left
  };

  template <class Run>
  OCCL_HOST_DEVICE Stay execute(const interpreter::BlockContext &context, const Choice &choice,
                                const Run &run) {
    Stay stay;
    stay.context = context;
    uint64_t until = 0;
    uint32_t quanta = 0;
    for (;;) {
      interpreter::StepResult step = run(stay.context, kQuantumSlices);
      if (step.slices != 0) {
        stay.moved = true;
        until = 0; // the budget begins again
      }
      stay.finished = step.status == interpreter::StepStatus::Finished;
      stay.ranOut = step.status == interpreter::StepStatus::Progressed;
      stay.obstacle = step.obstacle;
      if (stay.finished)
        return stay;
      if (stay.ranOut) {
        if (choice.others || ++quanta == kMaxQuanta || target.look(&board.news) != seen)
          return stay;
        continue;
      }
      const uint64_t now = target.now();
      if (until == 0)
        until = now + budget(choice);
      if (now - attended >= kAttendEvery) {
        attended = now;
        const uint64_t before = seen;
        attend();
        stopIntake();
        if (seen != before)
          return stay;
      }
      if (now >= until || target.look(&board.news) != seen)
        return stay;
    }
  }

  OCCL_HOST_DEVICE uint64_t budget(const Choice &choice) const {
    if (!choice.others || !settings.preemption)
      return settings.budgetAlone;
    uint64_t budget = settings.budgetCap >> (visitsInPass < 16 ? visitsInPass : 16);
    return budget > settings.budgetFloor ? budget : settings.budgetFloor;
  }

  OCCL_HOST_DEVICE void record(TaskState &task, uint64_t sequence,
                               const interpreter::BlockContext &context,
                               const interpreter::Obstacle &obstacle) {
    if (!target.isFirst(obstacle.reason != interpreter::BlockReason::None))
      return;
    target.post(&task.wait.words[0], (sequence + 1) << 32 | context.instruction);
    target.post(&task.wait.words[1],
                uint64_t(obstacle.reason) << 56 | uint64_t(obstacle.peer) << 32 | obstacle.what);
  }

  OCCL_HOST_DEVICE void finish(const Choice &choice, const Submission &submission, Slot &slot,
                               TaskState &task) {
    count(Count::Finished);
    if (target.lane() == 0)
      target.post(&task.wait.words[0], 0);
    if (target.subtractOne(&slot.left) != 1)
      return;
    // The last one. The slot is not another's before the completion word says so.
    target.fenceAll();
    runner.finished(submission);
    if (target.lane() == 0) {
      target.postToHost(&page.completions[choice.sequence % kWindow], choice.sequence + 1);
      // Counted, not stored: the next invocation may have overtaken this executor here.
      target.addOne(submission.collective->done);
    }
    target.sync();
  }

  // --- submissions and leaving ---

  /// One look at the ring, by one executor at a time, who keeps at it while it has nothing to do.
  OCCL_HOST_DEVICE void attend() {
    if (!hasIntake) {
      if (!target.tryLock(&board.intake))
        return;
      hasIntake = true;
      seen = target.look(&board.news);
    }
    const uint64_t before = tailOf(seen);
    const uint64_t tail = target.takeEntries(page.entries, before,
                                             [&](const uint64_t(&words)[SubmissionEntry::kWords],
                                                 uint64_t sequence) { open(words, sequence); });
    if (tail == before) {
      if (++intakes % kIntakesPerWatch == 0)
        watch();
      return;
    }
    seen += tail - before;
    target.release(&board.news, seen);
    announce(before, tail);
    publishProgress();
  }

  OCCL_HOST_DEVICE void stopIntake() {
    if (hasIntake)
      target.release(&board.intake, 0);
    hasIntake = false;
  }

  OCCL_HOST_DEVICE void open(const uint64_t (&words)[SubmissionEntry::kWords], uint64_t sequence) {
    Slot &slot = slotOf(sequence);
    const uint32_t blocks = unpack(words).numBlocks;
    if (target.lane() == 0) {
      for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
        target.post(&slot.words[i], words[i]);
      target.post(&slot.saved, 0);
      target.post(&slot.left, blocks);
      target.post(&slot.sequence, sequence);
    }
    target.release(&slot.claimable, blocks == 64 ? ~0ull : (1ull << blocks) - 1);
  }

  OCCL_HOST_DEVICE void announce(uint64_t begin, uint64_t end) {
    for (uint64_t s = begin; s < end; ++s) {
      const Submission submission = unpack(viewOf(s).words);
      const CollectiveWords &words = *submission.collective;
      uint64_t word = announcement(submission.ordinal, submission.priority, s);
      for (uint32_t r = target.lane(); r < words.numRanks; r += target.numLanes())
        target.postToPeer(words.announcedAt[r], word);
    }
  }

  /// Whether all should leave. Has the intake.
  OCCL_HOST_DEVICE void watch() {
    const uint64_t tail = tailOf(seen);
    uint64_t sum = 0;
    for (uint32_t e = target.lane(); e < settings.numExecutors; e += target.numLanes())
      sum += target.peek(&board.progress[e].value);
    sum = target.sum(sum);
    const uint64_t now = target.now();
    if (sum != target.peek(&board.watchedProgress) ||
        generation != target.peek(&board.watchedGeneration)) {
      if (target.lane() == 0) {
        target.post(&board.watchedProgress, sum);
        target.post(&board.watchedSince, now);
        target.post(&board.watchedGeneration, generation);
      }
      target.sync();
      return;
    }
    const bool isIdle = first == tail;
    if (now - target.peek(&board.watchedSince) <
        (isIdle ? settings.idleLimit : settings.stuckLimit))
      return;
    if (!isIdle)
      publishWaits(tail);
    decideToLeave(tail);
  }

  /// The host stores an entry, then reads the generation that quits; here it is the other way
  /// round, with a sequentially consistent fence between on both sides: one of the two sees the
  /// other.
  OCCL_HOST_DEVICE void decideToLeave(uint64_t tail) {
    target.storeToHostFenced(&page.quitGeneration, generation);
    if (target.hasEntry(page.entries, tail)) {
      target.storeToHostFenced(&page.quitGeneration, generation - 1);
      return;
    }
    seen = (generation << 48) + tail;
    target.release(&board.news, seen);
  }

  OCCL_HOST_DEVICE void publishWaits(uint64_t tail) const {
    for (uint64_t s = first; s < tail; ++s) {
      const SlotView view = viewOf(s);
      if (!isOpen(view, s))
        continue;
      uint32_t slot = s % kWindow, blocks = unpack(view.words).numBlocks;
      for (uint32_t b = target.lane(); b < blocks; b += target.numLanes())
        for (uint32_t w = 0; w < 2; ++w)
          target.postToHost(&page.waits[slot][b].words[w],
                            target.peek(&board.tasks[slot][b].wait.words[w]));
    }
  }

  OCCL_HOST_DEVICE void leave() {
    stopIntake();
    count(Count::ImageLoads, runner.imageLoads());
    uint64_t *totals = page.counts[number].values;
    for (uint32_t i = target.lane(); i < kNumCounts; i += target.numLanes())
      target.postToHost(totals + i, target.peek(totals + i) + counts[i]);
  }

  OCCL_HOST_DEVICE void count(Count what, uint64_t number = 1) {
    counts[static_cast<uint32_t>(what)] += number;
  }

  OCCL_HOST_DEVICE void publishProgress() {
    ++progress;
    if (target.lane() == 0)
      target.post(&board.progress[number].value, progress);
  }

  const Settings &settings;
  Board &board;
  HostPage &page;
  const uint64_t generation;
  const uint32_t number;
  Target &target;
  Runner &runner;
  VisitedTasks &visited;
  uint64_t own = 0;   // tasks by the number of their block
  uint64_t first = 0; // all submissions before are complete
  uint64_t seen = 0;  // of the board's news
  uint64_t progress = 0;
  uint64_t attended = 0; // when it last looked at the ring during a visit
  uint32_t agedFrom = 0;
  uint32_t rounds = 0, lonely = 0, visitsInPass = 0, intakes = 0;
  bool hasIntake = false;
  uint64_t counts[kNumCounts] = {};
};

} // namespace occl::cuda::resident
