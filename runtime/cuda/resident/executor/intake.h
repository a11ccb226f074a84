// How submissions reach the window, and how executors leave. One executor at a time has the intake:
// it polls the ring, and decides for all that it is time to leave. Leaving because the host asks is
// everybody's own affair.
//
// What comes alone, while nothing is open, is begun at once. A submission of one thread block its
// finder begins by itself: it keeps the intake, and owes the others everything that they are to
// know: the slot is filled, and the other ranks are told, if the task is not finished at once. One
// of several thread blocks it hands to executors that have nothing to do (hand_over.h), and keeps
// the intake; only what nobody takes it begins itself, or lets be claimed like what comes while
// others are open. This rank's executors are told when it has looked at the ring again, or gives up
// the intake.
//
// Who has the intake is the only one that looks at memory of the host: loads from there are in the
// way of each other, and of the fences of those that work. So it also finds out that the host wants
// all to leave, and tells the others as if that had been decided here.
//
// Who has the intake also looks at the gates of streamed submissions that have been taken in, and
// is the lookout if somebody has to stay.
#pragma once

#include "runtime/cuda/resident/executor/board.h"
#include "runtime/cuda/resident/executor/choosing.h"
#include "runtime/cuda/resident/executor/executor_arguments.h"
#include "runtime/cuda/resident/executor/gates.h"
#include "runtime/cuda/resident/executor/hand_over.h"
#include "runtime/cuda/resident/executor/marks.h"

#include <cstdint>

namespace occl::cuda::resident {

/// One executor's. All lanes call together.
template <class Target, class Runner> class Intake {
public:
  OCCL_HOST_DEVICE Intake(const ExecutorArguments &arguments, uint32_t number, Target &target,
                          Runner &runner, Marker<Target> &marker)
      : settings(arguments.settings), board(*arguments.board), page(*arguments.page),
        generation(arguments.generation), number(number),
        every(everyTask(arguments.settings.numExecutors)), target(target), runner(runner),
        marker(marker), handOver(arguments.board->hands[arguments.generation % 2], number,
                                 arguments.settings.numExecutors, target),
        gates(*arguments.board, *arguments.page, target) {}

  /// What has been taken in, to begin with.
  OCCL_HOST_DEVICE uint64_t begin(uint64_t now) {
    started = now;
    lookedAtHost = now;
    progress = target.peek(&board.progress[number].value);
    handOver.begin();
    if (target.lane() == 0) {
      target.raise(&board.begun, generation); // the lookout of the one before leaves
      if (number == 0)
        target.postToHost(&page.begun, generation);
    }
    seen = target.look(&board.news);
    return tail();
  }
  OCCL_HOST_DEVICE uint64_t tail() const { return tailOf(seen); }
  /// By this executor.
  OCCL_HOST_DEVICE bool isHeld() const { return hasIntake; }

  /// By another one, as of the last isOver().
  OCCL_HOST_DEVICE bool isAnothers() const { return !hasIntake && lastLook == kTaken; }

  /// Whether this executor is to leave.
  OCCL_HOST_DEVICE bool isOver() {
    if (!hasIntake) { // else nobody changes them
      auto hand = decltype(handOver.look())();
      if (handOver.awaits())
        hand = handOver.look();
      const uint64_t word = target.peek(&board.intake);
      seen = target.look(&board.news);
      lastLook = target.ofFirst(true, word);
      isHanded = handOver.hasCome(hand, handed);
    }
    if (isLookout)
      return isRelieved || isCalledOff || target.look(&board.begun) > generation;
    return isLeaving(seen);
  }
  /// Whether it has stayed when the others left.
  OCCL_HOST_DEVICE bool hasStayed() const { return isLookout; }
  /// Whether there is news since this executor has last looked, but for a submission that it knows
  /// of.
  OCCL_HOST_DEVICE bool hasNews(uint64_t known) const {
    if (hasIntake)
      return false;
    const uint64_t news = target.look(&board.news);
    return news != seen && news != seen - tail() + known + 1;
  }

  /// It has nothing to do: a task may be handed to it.
  OCCL_HOST_DEVICE void await() {
    if (!isLookout)
      handOver.await();
  }
  /// True: a task has been handed to it.
  OCCL_HOST_DEVICE bool takeHanded(Choice &choice, ClaimView &view) {
    if (!isHanded)
      return false;
    isHanded = false;
    handOver.accept();
    setFresh(choice, view, handed, handOver.sequenceIn(handed), handOver.blockIn(handed));
    choice.isHanded = true;
    return true;
  }
  /// It is not finished: anybody may claim it from now on.
  OCCL_HOST_DEVICE void giveBack(const ClaimView &view, const Choice &choice) {
    // Who has handed it over may not have come to that yet. The same words.
    fillWords(view.slot.words, choice.sequence);
    target.sync();
    target.giveBits(&slotOf(choice.sequence).claimable, 1ull << choice.block);
  }

  /// One look at the ring, by one executor at a time, who keeps at it while it has nothing to do.
  /// `first`: all submissions before it are complete.
  OCCL_HOST_DEVICE void attend(uint64_t first) { look(first, nullptr); }
  /// For who has something else to do: one look, if nobody has looked for some time.
  OCCL_HOST_DEVICE void attendIfDue(uint64_t first, uint64_t now) {
    if (!hasIntake && lastLook != kTaken && now > lastLook / 2 + kLookEvery)
      attend(first);
  }
  /// What attendAndClaim() has come to with the only submission there is.
  enum class Found : uint8_t {
    Nothing,
    Claimed, // a task of it
    Ended,   // it has handed over all of its tasks, and they are finished already: it completes it
  };
  /// The same, some looks.
  OCCL_HOST_DEVICE Found attendAndClaim(uint64_t first, Choice &choice, ClaimView &view) {
    Claim claim{choice, view};
    look(first, &claim);
    if (claim.found == Found::Claimed && !owes)
      stop();
    return claim.found;
  }

  /// What it has claimed is entered nowhere.
  OCCL_HOST_DEVICE bool isOwing() const { return owes; }
  /// What it has claimed is finished.
  OCCL_HOST_DEVICE void announceOwed(const CollectiveAddresses &collective,
                                     const Submission &submission, uint64_t sequence) {
    if (!owes)
      return;
    owes = false;
    announce(collective, submission, sequence);
  }
  /// What it has claimed is not finished yet: it is a submission like any other.
  OCCL_HOST_DEVICE void openOwed(const SlotView &view, const Choice &choice) {
    if (!owes)
      return;
    const Submission submission = unpack(view.words);
    fill(view.words, submission, choice.sequence);
    target.fence();
    announceOwed(*submission.collective, submission, choice.sequence);
  }

  /// It has something else to do: another one may attend.
  OCCL_HOST_DEVICE void stop() {
    if (!hasIntake)
      return;
    if (isUntold)
      tell();
    gates.store();
    lastLook = target.now() * 2;
    target.release(&board.intake, lastLook);
    hasIntake = false;
  }

  /// Something has moved. For a lookout the others may come back.
  OCCL_HOST_DEVICE void publishProgress() {
    ++progress;
    if (target.lane() != 0)
      return;
    if (isLookout)
      target.postToHost(&lookout().moved, generation);
    else
      target.post(&board.progress[number].value, progress);
  }

  /// For whom the host asks, if it does: who has found out.
  OCCL_HOST_DEVICE void leave(uint64_t first) {
    stop();
    giveBackHanded();
    if (isLookout || isCalledOff)
      publishWaits(first, tailOf(target.look(&board.news)));
  }
  /// The last thing that a lookout does.
  OCCL_HOST_DEVICE void endLookout() {
    if (!isLookout)
      return;
    target.fenceAll();
    if (target.lane() == 0)
      target.postToHost(&lookout().left, generation);
  }

private:
  struct Claim {
    Choice &choice;
    ClaimView &view;
    Found found = Found::Nothing;
  };

  /// claim: null if it has something else to do.
  OCCL_HOST_DEVICE void look(uint64_t first, Claim *claim) {
    if (!hasIntake) {
      if (!target.tryLock(&board.intake, kTaken))
        return;
      hasIntake = true;
      gates.load();
      seen = target.look(&board.news);
      // Who had the intake may have handed something to this one.
      isHanded = handOver.hasCome(handOver.look(), handed);
    }
    if (isHanded || (!isLookout && isLeaving(seen))) // decided since it looked last
      return stop();
    const uint64_t before = tail();
    const uint32_t looks = claim == nullptr || gates.areAnyShut() || first < before ? 1 : kLooks;
    uint32_t batches = 0;
    for (uint32_t left = looks; left != 0; --left) {
      const uint64_t from = tail(), end = takeEntries(first, claim);
      if (end == from)
        continue;
      seen += end - from;
      isUntold = owes || isAllHanded;
      if (!isUntold)
        tell();
      const bool mayBeMore = end - from == Target::kEntries && ++batches < kBatches;
      left = mayBeMore ? 2 : 1;
    }
    if (gates.areAnyShut())
      gates.forEachReached([&](uint32_t slot) { openGate(slot); });
    if (tail() == before) {
      if (isUntold)
        tell();
      if (++intakes % kIntakesPerWatch == 0)
        isLookout ? keepLookout(first) : watch(first);
      return lookAtHost();
    }
    if (isUntold)
      return;
    if (!isLookout)
      publishProgress();
    lookAtHost();
  }

  /// One look at the ring, and at all that has to be known if something comes, in one trip. The new
  /// tail.
  OCCL_HOST_DEVICE uint64_t takeEntries(uint64_t first, Claim *claim) {
    const uint64_t before = tail();
    const auto takers = handOver.lookForTakers();
    const Slot &last = slotOf(before - 1);
    const uint64_t lastLeft = target.peek(&last.left), lastSequence = target.peek(&last.sequence);
    isAllHanded = false;
    return target.takeEntries(
        page.entries, before,
        [&](const uint64_t(&words)[SubmissionEntry::kWords], uint64_t sequence, uint32_t come) {
          const Submission submission = unpack(words);
          marker.mark(Moment::TakenIn, sequence, 0);
          if (gates.areAnyShut() && !submission.isStreamed) // left of one that was withdrawn
            gates.forget(sequence % kWindow);
          const bool isClear =
              first >= before || (first + 1 == before && lastSequence == first && lastLeft == 0);
          if (claim != nullptr && isClear && come == 1 && submission.numBlocks != 0 &&
              !submission.isStreamed)
            return beginAtOnce(*claim, words, submission, sequence, takers);
          fill(words, submission, sequence);
          letClaim(sequence, submission.isStreamed ? 0 : allTasks(submission.numBlocks),
                   static_cast<uint32_t>(sequence - before), come);
          if (submission.isStreamed)
            return gates.keepShut(sequence % kWindow);
          if (submission.numBlocks == 0)
            return; // withdrawn: it has nothing that may be touched any more
          announce(*submission.collective, submission, sequence);
          runner.takenIn(submission);
        });
  }

  /// Nothing else is open.
  template <class Takers>
  OCCL_HOST_DEVICE void beginAtOnce(Claim &claim, const uint64_t (&words)[SubmissionEntry::kWords],
                                    const Submission &submission, uint64_t sequence,
                                    const Takers &takers) {
    owes = submission.numBlocks == 1;
    if (owes) {
      claim.found = Found::Claimed;
      return setFresh(claim.choice, claim.view, words, sequence, 0);
    }
    const uint64_t all = allTasks(submission.numBlocks);
    const uint64_t given =
        isLookout ? 0 : handOver.give(takers, words, submission.numBlocks, sequence);
    isAllHanded = given == all;
    const uint32_t block = isAllHanded ? 0 : preferred(submission, all & ~given);
    announce(*submission.collective, submission, sequence);
    fillWords(words, sequence);
    target.sync();
    // Executors may have finished tasks already: who brings the number to zero completes it.
    const bool isEnded =
        target.addTo(&slotOf(sequence).left, submission.numBlocks) + submission.numBlocks == 0;
    setFresh(claim.choice, claim.view, words, sequence, block);
    if (isAllHanded) {
      claim.found = isEnded ? Found::Ended : Found::Nothing;
      return;
    }
    claim.found = Found::Claimed;
    const uint64_t others = all & ~given & ~(1ull << block);
    if (others != 0)
      letClaim(sequence, others, 0, 1);
    if (block != 0 && (given & 1) == 0)
      runner.takenIn(submission);
  }

  /// Of one that leaves, or its lookout's: what was handed to it in between.
  OCCL_HOST_DEVICE void giveBackHanded() {
    if (isLookout)
      return;
    if (isHanded || handOver.hasCome(handOver.look(), handed)) {
      Choice choice;
      ClaimView view;
      isHanded = true;
      takeHanded(choice, view);
      giveBack(view, choice);
    }
    handOver.end();
  }

  // Streamed submissions: with the intake.

  OCCL_HOST_DEVICE void openGate(uint32_t slot) {
    gates.forget(slot);
    const SlotView view = viewSlot(target, board.slots[slot]);
    if (view.left == 0)
      return; // it was withdrawn
    const Submission submission = unpack(view.words);
    // One that came later, and need not wait for a stream, has announced this one, too.
    if (!isAnnounced(
            target.peekAtPeer(submission.collective->announcedBy(submission.collective->rank)),
            submission.ordinal))
      announce(*submission.collective, submission, view.sequence);
    runner.takenIn(submission);
    if (target.lane() == 0)
      target.post(&board.slots[slot].progress.takenIn, target.time());
    target.giveBits(&board.slots[slot].claimable, allTasks(submission.numBlocks));
    if (!isLookout)
      publishProgress();
  }

  /// What is open: all, and of that the streamed ones.
  struct Open {
    uint32_t all, streamed;
  };
  OCCL_HOST_DEVICE Open open(uint64_t first) const {
    const uint32_t both = countOpen(
        first, [](const SlotView &view) { return 1 + (unpack(view.words).isStreamed << 16); });
    return {both & 0xffff, both >> 16};
  }
  /// All lanes together.
  OCCL_HOST_DEVICE StayFor stayFor() const {
    return static_cast<StayFor>(target.lookAtHost(&page.stayFor));
  }
  /// Whether a lookout has to stay for that when the others leave.
  OCCL_HOST_DEVICE static bool mustStay(StayFor what, const Open &open) {
    return what == StayFor::Anything ? open.all != 0
                                     : what == StayFor::Streamed && open.streamed != 0;
  }
  /// Whether nothing that is open may begin.
  OCCL_HOST_DEVICE bool isAllShut(uint64_t first) const {
    return countOpen(first, [&](const SlotView &view) {
             return uint32_t(!gates.isShut(view.sequence % kWindow));
           }) == 0;
  }
  template <class CountOf>
  OCCL_HOST_DEVICE uint32_t countOpen(uint64_t first, const CountOf &countOf) const {
    uint32_t count = 0;
    for (uint64_t s = first + target.lane(); s < tail(); s += target.numLanes()) {
      const SlotView view = viewSlot(target, slotOf(s));
      count += isOpen(view, s) ? countOf(view) : 0;
    }
    return target.sum(count);
  }

  /// The lookout: says now and then what is waited for, and leaves when nothing is open that it
  /// may have stayed for. If it need not stay any more the host tells it to leave: by itself it
  /// might just when somebody finds that one stays.
  OCCL_HOST_DEVICE void keepLookout(uint64_t first) {
    const uint64_t now = target.now();
    if (now - published > kPublishEvery) {
      published = now;
      publishWaits(first, tail());
    }
    const Open left = open(first);
    if ((stayFor() == StayFor::Streamed ? left.streamed : left.all) != 0)
      return;
    // Who submits and finds that one stays starts nobody: as in decideToLeave().
    target.storeToHostFenced(&lookout().left, generation);
    isRelieved = !target.hasEntry(page.entries, tail());
    if (!isRelieved && target.lane() == 0)
      target.postToHost(&lookout().left, 0);
  }
  OCCL_HOST_DEVICE HostPage::Lookout &lookout() const { return page.lookouts[generation % 2]; }

  /// The others of what has been taken in. A fence has followed what they are to find.
  OCCL_HOST_DEVICE void tell() {
    if (target.lane() == 0)
      target.publish(&board.news, seen);
    isUntold = false;
  }

  /// A task that nobody has had before, of a submission that came while nothing else was open.
  template <uint32_t kNumWords>
  OCCL_HOST_DEVICE static void setFresh(Choice &choice, ClaimView &view,
                                        const uint64_t (&words)[kNumWords], uint64_t sequence,
                                        uint32_t block) {
    choice = {sequence, block, 1};
    choice.isClear = true;
    view = {};
    view.slot.sequence = sequence;
    for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
      view.slot.words[i] = words[i];
  }

  /// Looks at the ring, one after the other, of who has nothing else to do.
  static constexpr uint32_t kLooks = 4;
  /// Looks that have found as many entries as they can, one after the other: with much to do it
  /// may be long until somebody looks again.
  static constexpr uint32_t kBatches = 4;
  static constexpr uint32_t kIntakesPerWatch = 4;
  /// Nanoseconds between looks at the host's word, and between looks at the ring while all
  /// executors have something to do.
  static constexpr uint64_t kLookAtHostEvery = 20'000, kLookEvery = 4'000;
  /// Nanoseconds between what a lookout says of waits.
  static constexpr uint64_t kPublishEvery = 1'000'000;

  OCCL_HOST_DEVICE static uint64_t tailOf(uint64_t news) { return news << 16 >> 16; }
  /// Some of this generation may still have to see it when the next one has come and gone.
  OCCL_HOST_DEVICE bool isLeaving(uint64_t news) const {
    return static_cast<int16_t>(static_cast<uint16_t>(news >> 48) -
                                static_cast<uint16_t>(generation)) >= 0;
  }
  OCCL_HOST_DEVICE Slot &slotOf(uint64_t sequence) const { return board.slots[sequence % kWindow]; }

  /// Whether the host wants these executors to leave. With the intake.
  OCCL_HOST_DEVICE void lookAtHost() {
    const uint64_t now = target.now();
    if (now - lookedAtHost < kLookAtHostEvery)
      return;
    lookedAtHost = now;
    if (target.lookAtHost(&page.leaveUpTo) < generation)
      return;
    isCalledOff = true;
    if (isLookout)
      return;
    target.fence(); // who sees that sees what was handed to it
    seen = (generation << 48) + tail();
    tell();
  }

  /// Which of these thread blocks this executor takes first.
  OCCL_HOST_DEVICE uint32_t preferred(const Submission &submission, uint64_t blocks) const {
    const uint64_t own = ownTasks(every, number, settings.numExecutors, submission.home) & blocks;
    return target.lowestBit(own == 0 ? blocks : own);
  }

  /// Before anybody may finish a task of it.
  OCCL_HOST_DEVICE void fill(const uint64_t (&words)[SubmissionEntry::kWords],
                             const Submission &submission, uint64_t sequence) {
    fillWords(words, sequence);
    if (target.lane() == 0)
      target.post(&slotOf(sequence).left, submission.numBlocks);
  }
  /// But for `left`.
  template <uint32_t kNumWords>
  OCCL_HOST_DEVICE void fillWords(const uint64_t (&words)[kNumWords], uint64_t sequence) {
    Slot &slot = slotOf(sequence);
    if (target.lane() == 0) {
      for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
        target.post(&slot.words[i], words[i]);
      target.post(&slot.sequence, sequence);
      target.post(&slot.progress.takenIn, target.time());
      target.post(&slot.progress.started, ~0ull);
      target.post(&slot.progress.announced, ~0ull);
    }
  }
  /// Tasks of submission `index` of `come`, once its slot is filled. A lane each, as many as there
  /// are with one fence.
  OCCL_HOST_DEVICE void letClaim(uint64_t sequence, uint64_t tasks, uint32_t index, uint32_t come) {
    const uint32_t lanes = target.numLanes();
    if (index % lanes == target.lane())
      claimable = {sequence, tasks};
    if (index + 1 != come && (index + 1) % lanes != 0)
      return;
    target.sync();
    target.fence();
    if (claimable.tasks != 0)
      target.publish(&slotOf(claimable.sequence).claimable, claimable.tasks);
    claimable.tasks = 0;
  }

  OCCL_HOST_DEVICE void announce(const CollectiveAddresses &collective,
                                 const Submission &submission, uint64_t sequence) const {
    const uint64_t word = announcement(submission.ordinal, submission.priority, sequence);
    for (uint32_t r = target.lane(); r < CollectiveWords::kMaxRanks; r += target.numLanes())
      if (uint64_t *at = collective.announcedAt[r])
        target.postToPeer(at, word);
  }

  /// Whether all should leave. Has the intake.
  OCCL_HOST_DEVICE void watch(uint64_t first) {
    // Has any executor moved something since the last watch?
    uint64_t sum = 0;
    for (uint32_t e = target.lane(); e < settings.numExecutors; e += target.numLanes())
      sum += target.peek(&board.progress[e].value);
    sum = target.sum(sum);
    const uint64_t now = target.now();
    const bool isEmpty = first >= tail();
    const bool moved = sum != target.peek(&board.watchedProgress) ||
                       generation != target.peek(&board.watchedGeneration);
    if (moved && target.lane() == 0) {
      target.post(&board.watchedProgress, sum);
      target.post(&board.watchedSince, now);
      target.post(&board.watchedGeneration, generation);
    }
    target.sync();
    // How long nothing has, and how long that may be. Submissions whose streams have not come to
    // them may wait as if there were none, but no longer than what is stuck.
    const uint64_t still = moved ? 0 : now - target.peek(&board.watchedSince);
    const uint64_t stuckLimit =
        settings.stuckLimit + (isEmpty ? 0 : (tail() - first) * settings.stuckLimitEach);
    const bool isIdle = isEmpty || (gates.areAnyShut() && still >= settings.idleLimit &&
                                    still < stuckLimit && isAllShut(first));
    if (still < (isIdle ? settings.idleLimit : stuckLimit) && now - started < settings.stayLimit)
      return;
    if (!isEmpty)
      publishWaits(first, tail());
    decideToLeave(isEmpty ? Open{} : open(first));
  }

  /// The host stores an entry, or that somebody has to stay, then reads the generation that quits;
  /// here it is the other way round, with a sequentially consistent fence between on both sides:
  /// one of the two sees the other. A lookout comes by, whatever it is.
  OCCL_HOST_DEVICE void decideToLeave(const Open &left) {
    // First say that all leave, then look at the ring once more: a submitter stores its entry
    // first, and looks then whether executors are there. One of the two sees the other.
    const bool stays = mustStay(stayFor(), left);
    if (target.lane() == 0)
      target.postToHost(&lookout().stays, stays ? generation : 0);
    target.fenceAll();
    target.storeToHostFenced(&page.quitGeneration, generation);
    if (!stays && (target.hasEntry(page.entries, tail()) || mustStay(stayFor(), left))) {
      target.storeToHostFenced(&page.quitGeneration, generation - 1);
      return;
    }
    // Nothing has come: it holds.
    seen = (generation << 48) + tail();
    tell();
    isLookout = stays;
    if (stays)
      handOver.end();
    published = target.now();
  }

  OCCL_HOST_DEVICE void publishWaits(uint64_t first, uint64_t end) const {
    for (uint64_t s = first; s < end; ++s) {
      const SlotView view = viewSlot(target, slotOf(s));
      if (!isOpen(view, s))
        continue;
      const Submission submission = unpack(view.words);
      const uint32_t slot = s % kWindow;
      // Executors have recorded the waits beside the tasks; the host reads them in its page.
      for (uint32_t b = target.lane(); b < submission.numBlocks; b += target.numLanes())
        for (uint32_t w = 0; w < WaitRecord::kWords; ++w)
          target.postToHost(&page.waits[slot][b].words[w],
                            target.peek(&board.tasks[slot][b].wait.words[w]));
      if (target.lane() == 0)
        target.postToHost(&page.missing[slot], missingFor(submission));
    }
    if (target.lane() == 0)
      target.postToHost(&page.publishedAt, target.time());
  }

  /// One lane. Ranks that have not announced it.
  OCCL_HOST_DEVICE uint64_t missingFor(const Submission &submission) const {
    const CollectiveWords &words = *submission.collective;
    uint64_t missing = 0;
    for (uint32_t r = 0; r < words.numRanks; ++r)
      if (!isAnnounced(target.peekAtPeer(words.announcedBy(r)), submission.ordinal))
        missing |= 1ull << r;
    return missing;
  }

  const Settings &settings;
  Board &board;
  HostPage &page;
  const uint64_t generation;
  const uint32_t number;
  const uint64_t every; // everyTask() of the executors
  Target &target;
  Runner &runner;
  Marker<Target> &marker;
  uint64_t seen = 0;     // of the board's news
  uint64_t lastLook = 0; // of the board's intake word
  uint64_t progress = 0;
  uint64_t started = 0, lookedAtHost = 0; // times
  uint32_t intakes = 0;
  bool hasIntake = false;
  bool isUntold = false;    // it has taken in what the others do not know of
  bool isAllHanded = false; // of the last that it has taken in: all tasks are others'
  bool owes = false;        // it has claimed the only task of a submission that is nowhere entered
  bool isCalledOff = false; // the host wants these executors to leave
  struct {
    uint64_t sequence = 0, tasks = 0;
  } claimable; // of this lane: see letClaim()
  HandOver<Target> handOver;
  bool isHanded = false; // `handed` has come to it
  uint64_t handed[Hand::kWords];
  Gates<Target> gates; // with the intake
  // Of the lookout.
  bool isLookout = false, isRelieved = false;
  uint64_t published = 0; // a time
};

} // namespace occl::cuda::resident
