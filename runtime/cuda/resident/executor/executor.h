// The scheduler of a resident daemon, one source for device and host: an executor claims a task,
// loads its context, steps until it is finished or stuck for its budget, saves the context if it
// has moved, releases the task and claims the next one. It never waits for anything; all executors
// leave together, when nothing has been open or nothing has moved for long.
//
// Target supplies memory operations and lanes: on a device the lanes of a warp call these functions
// together, on the host there is one. Runner prepares a task and hands over what runs its slices:
//   auto visit(const Submission &, uint32_t block, bool isClear, body), which returns what
//   body(run) does (isClear: the invocation before is known to be complete here); there
//   interpreter::StepResult run(interpreter::BlockContext &, uint32_t maxSlices);
//   void takenIn(const Submission &): it has been opened and announced
//   const CollectiveAddresses &addressesOf(const Submission &): near, if it was visited last
//   bool needsFence(const Submission &): other ranks' memory may get something of it that they do
//   not wait for before they are finished
//   void finished(const Submission &): all of its blocks are
//   uint64_t imageLoads() const;
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/cuda/resident/executor/choosing.h"
#include "runtime/cuda/resident/executor/executor_arguments.h"
#include "runtime/cuda/resident/executor/intake.h"
#include "runtime/cuda/resident/executor/marks.h"
#include "runtime/cuda/resident/executor/visit_meter.h"
#include "runtime/exec/step/step.h"

#include <cstdint>

namespace occl::cuda::resident {

template <class Target, class Runner> class Executor {
public:
  OCCL_HOST_DEVICE Executor(const ExecutorArguments &arguments, uint32_t number, Target &target,
                            Runner &runner, Ledger &ledger, Marker<Target> &marker)
      : board(*arguments.board), page(*arguments.page), generation(arguments.generation),
        number(number), target(target), runner(runner), marker(marker),
        intake(arguments, number, target, runner, marker),
        choosing(arguments.settings, *arguments.board, number, target, ledger) {}

  /// Until all leave. In line, with all that it calls at one place: an executor is in registers
  /// then, and not on the stack (docs/decisions/gpu/stacks.md).
  OCCL_INLINE void run() {
    // It knows only what has been taken in, and looks at the window when it chooses.
    const uint64_t now = target.now();
    choosing.begin(intake.begin(now), now);
    while (!intake.isOver()) {
      // The others have left: all tasks are its own.
      if (intake.hasStayed()) {
        marker.retire();
        choosing.takeOver();
      }
      Choice choice;
      ClaimView view;
      if (claim(choice, view))
        visit(choice, view);
    }
    // Tell the host what is open and what was counted.
    intake.leave(choosing.first());
    publishCounts();
    marker.leave();
    intake.endLookout();
  }

private:
  static constexpr uint32_t kQuantumSlices = 16;
  /// Of a task that is alone; then it looks around.
  static constexpr uint32_t kMaxQuanta = 8;
  /// Nanoseconds, while it polls for a task.
  static constexpr uint64_t kAttendEvery = 15'000;

  using Meter = VisitMeter<Target>;
  using Found = typename Intake<Target, Runner>::Found;

  /// Whether there is something to visit, which this executor has then.
  OCCL_INLINE bool claim(Choice &choice, ClaimView &view) {
    if (intake.takeHanded(choice, view))
      return true;
    if (intake.isAnothers() && choosing.isIdle(intake.tail())) {
      intake.await();
      target.rest();
      return false;
    }
    const uint64_t now = target.now();
    if (!choosing.isIdle(intake.tail())) // else it looks below, and may begin what it finds
      intake.attendIfDue(choosing.first(), now);
    if (choosing.choose(intake.tail(), now, choice)) {
      if (!choosing.claim(choice, view))
        return false;
      intake.stop();
      return true;
    }
    const auto found = intake.attendAndClaim(choosing.first(), choice, view);
    if (found == Found::Ended) {
      complete(choice, unpack(view.slot.words));
    } else if (found != Found::Claimed && !intake.isHeld()) {
      intake.await();
      target.pause(); // many that look all the time are in the way of those that work
    }
    return found == Found::Claimed;
  }

  OCCL_INLINE void visit(const Choice &choice, const ClaimView &view) {
    Slot &slot = board.slots[choice.sequence % kWindow];
    TaskState &task = board.tasks[choice.sequence % kWindow][choice.block];
    const Submission submission = unpack(view.slot.words);
    const bool hasContext = view.savedFor == choice.sequence + 1;
    const interpreter::BlockContext context =
        hasContext ? view.context : interpreter::BlockContext();
    count(Count::Visits);
    count(Count::ContextLoads, hasContext);
    count(Count::Handed, choice.isHanded);
    if (choice.hasOthers())
      choosing.noteAge(choice);
    const bool isAnnounced = choice.isAnnounced && choice.isAged;
    marker.mark(Moment::Visit, choice.sequence, choice.block, choice.tasks, isAnnounced);
    Meter meter(target, task.wait, view.wait, choice.block, choice.sequence);
    meter.begin(slot.progress, isAnnounced);
    const Stay stay = runner.visit(submission, choice.block, choice.isClear, [&](const auto &run) {
      marker.mark(Moment::Ready, choice.sequence, choice.block);
      meter.countFor(runner.addressesOf(submission));
      return execute(context, choice, view, meter, run);
    });
    count(Count::Moves, stay.moved);
    if (stay.finished) {
      marker.mark(Moment::Finished, choice.sequence, choice.block);
      meter.finish();
      finish(choice, submission, slot);
      intake.announceOwed(runner.addressesOf(submission), submission, choice.sequence);
      intake.publishProgress();
      return meter.end(choice.tasks, true, false);
    }
    const bool isPreempted = choice.hasOthers() && !stay.ranOut;
    marker.mark(Moment::Left, choice.sequence, choice.block, 0, isPreempted);
    if (stay.moved)
      intake.publishProgress();
    meter.leaveAt(stay.context.instruction, stay.obstacle);
    if (stay.moved) {
      count(Count::ContextSaves);
      if (target.lane() == 0) {
        task.context = stay.context;
        target.post(&task.savedFor, choice.sequence + 1);
      }
    }
    count(Count::Preemptions, isPreempted);
    if (choice.hasOthers())
      choosing.endTurn(choice);
    // Who has moved nothing leaves nothing that is to be seen.
    const uint64_t bit = 1ull << choice.block;
    if (choice.isHanded)
      intake.giveBack(view, choice);
    else
      stay.moved ? target.giveBits(&slot.claimable, bit)
                 : target.giveBitsBack(&slot.claimable, bit);
    meter.end(choice.tasks, stay.moved, isPreempted);
  }

  struct Stay {
    bool finished = false, moved = false;
    bool ranOut = false; // of its quantum, and not of its budget
    interpreter::Obstacle obstacle;
    interpreter::BlockContext context; // where it is left
  };

  template <class Run>
  OCCL_HOST_DEVICE Stay execute(const interpreter::BlockContext &context, const Choice &choice,
                                const ClaimView &view, Meter &meter, const Run &run) {
    Stay stay;
    stay.context = context;
    uint64_t until = 0;
    uint32_t quanta = 0;
    for (;;) {
      const uint32_t from = stay.context.instruction;
      interpreter::StepResult step = run(stay.context, kQuantumSlices);
      const uint64_t now = target.now();
      const uint64_t took = meter.ran(step, stay.context.instruction, now);
      if (step.slices != 0) {
        stay.moved = true;
        until = 0; // the budget begins again
        marker.mark(Moment::Stepped, choice.sequence, choice.block, took, false, from);
      }
      stay.finished = step.status == interpreter::StepStatus::Finished;
      stay.ranOut = step.status == interpreter::StepStatus::Progressed;
      stay.obstacle = step.obstacle;
      if (stay.finished)
        return stay;
      // The program takes longer than any budget.
      const bool awaitsProgram = interpreter::isPartition(step.obstacle);
      intake.openOwed(view.slot, choice);
      if (stay.ranOut) {
        intake.stop();
        if (choice.hasOthers() || ++quanta == kMaxQuanta || intake.hasNews(choice.sequence))
          return stay;
        continue;
      }
      if (until == 0) {
        marker.mark(Moment::Blocked, choice.sequence, choice.block, meter.obstacle(), false,
                    stay.context.instruction);
        until = now + choosing.budget(choice);
        attended = now;
      }
      if (now - attended >= kAttendEvery) {
        attended = now;
        const uint64_t before = intake.tail();
        intake.attend(choosing.first());
        intake.stop();
        if (intake.tail() != before && !choice.hasOthers())
          return stay;
      }
      // With others it is left soon enough anyway.
      if (now >= until || (choice.hasOthers() && awaitsProgram) ||
          (!choice.hasOthers() && intake.hasNews(choice.sequence)))
        return stay;
    }
  }

  OCCL_HOST_DEVICE void finish(const Choice &choice, const Submission &submission, Slot &slot) {
    count(Count::Finished);
    if (submission.numBlocks != 1) {
      if (target.addTo(&slot.left, ~0ull) != 1)
        return;
    } else {
      // Who sees that nothing is left may begin the next call of the collective. The slot is not
      // another's before the completion word says so.
      target.fenceDevice();
      if (!intake.isOwing() && target.lane() == 0)
        target.post(&slot.left, 0);
    }
    complete(choice, submission);
  }

  /// All tasks are finished, and this executor has seen that on the device. The host is told first:
  /// whatever it has look at the output - kernels, copies, other devices - does so where this
  /// device's memory is, and what this rank has stored there is there; so is what other ranks have
  /// stored, whose flags were acquired. What this rank has stored elsewhere other ranks wait for.
  /// Only the next invocation relies on that having arrived, and only if they do not.
  OCCL_HOST_DEVICE void complete(const Choice &choice, const Submission &submission) {
    marker.mark(Moment::Visible, choice.sequence, choice.block);
    if (target.lane() == 0)
      target.postToHost(&page.completions[choice.sequence % kWindow], choice.sequence + 1);
    marker.mark(Moment::Completed, choice.sequence, choice.block);
    if (runner.needsFence(submission))
      target.fenceAll();
    // Counted, not stored: the next invocation may have overtaken this executor here. Who finished
    // the only task has fenced.
    if (target.lane() == 0) {
      uint64_t *done = runner.addressesOf(submission).done;
      submission.numBlocks == 1 ? target.add(done, 1) : target.addReleasing(done, 1);
    }
    target.sync();
    runner.finished(submission);
    choosing.noteComplete(choice.sequence);
    if (!intake.isOwing()) // what was entered nowhere has begun and ended as soon as it was there
      countProgress(runner.addressesOf(submission), choice.sequence);
  }

  OCCL_HOST_DEVICE void countProgress(const CollectiveAddresses &collective, uint64_t sequence) {
    const Slot &slot = board.slots[sequence % kWindow];
    BlockCounts *const counts = collective.counts;
    if (target.lane() != 0 || counts == nullptr || target.peek(&slot.sequence) != sequence)
      return;
    // Times that nobody noted are when it was complete.
    const Progress progress = {target.peek(&slot.progress.takenIn),
                               target.peek(&slot.progress.started),
                               target.peek(&slot.progress.announced)};
    const uint64_t now = target.time();
    const auto since = [&](uint64_t time) {
      const uint64_t at = time < now ? time : now;
      return at > progress.takenIn ? at - progress.takenIn : 0;
    };
    target.add(&counts->startNs, since(progress.started));
    target.add(&counts->announceNs, since(progress.announced));
  }

  OCCL_HOST_DEVICE void publishCounts() {
    count(Count::ImageLoads, runner.imageLoads());
    // What has come after a lookout may be leaving, too.
    uint64_t *totals =
        page.counts[intake.hasStayed() ? kMaxExecutors + generation % 2 : number].values;
    for (uint32_t i = 0; i < kNumCounts; ++i) // of all: it keeps them in registers
      if (i % target.numLanes() == target.lane())
        target.postToHost(totals + i, target.peek(totals + i) + counts[i]);
  }

  OCCL_HOST_DEVICE void count(Count what, uint64_t amount = 1) {
    counts[static_cast<uint32_t>(what)] += amount;
  }

  Board &board;
  HostPage &page;
  const uint64_t generation;
  const uint32_t number;
  Target &target;
  Runner &runner;
  Marker<Target> &marker;
  Intake<Target, Runner> intake;
  Choosing<Target> choosing;
  uint64_t attended = 0; // when it last looked at the ring during a visit
  uint64_t counts[kNumCounts] = {};
};

} // namespace occl::cuda::resident
