// The host's half of the protocol with executors: entries in a ring, starts of generations, and
// words that say who has left.
#include "runtime/cuda/resident/submission/submission_side.h"

#include "runtime/sync/clock.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <mutex>

namespace occl::cuda::resident {

std::optional<uint64_t> SubmissionSide::enter(const Submission &submission) {
  std::lock_guard lock(mutex);
  const uint64_t sequence = next.load(std::memory_order_relaxed);
  const uint32_t slot = sequence % kWindow;
  if (sequence >= kWindow && !isComplete(sequence - kWindow))
    return std::nullopt;
  // Of one that was withdrawn the stream may still be on its way to the gate.
  if (isReleased[slot] || (isStreamed[slot] && !isReached(sequence - kWindow)))
    return std::nullopt;
  isStreamed[slot] = submission.isStreamed;
  // Executors take an entry whose words all bear the turn.
  const SubmissionEntry entry = pack(submission, sequence);
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    storeShared(&page.entries[slot].words[i], entry.words[i], std::memory_order_release);
  next.store(sequence + 1, std::memory_order_release);
  return sequence;
}

void SubmissionSide::startIfQuit() {
  // They store that they quit, then look for an entry: one of the two sees the other.
  threadFence(std::memory_order_seq_cst);
  if (!hasQuit() || isAborted())
    return;
  // Whoever is at it has seen the entry or leaves it to restartIfOpen().
  std::unique_lock lock(starting, std::try_to_lock);
  if (lock && !isHeld && hasQuit())
    startNext();
}

void SubmissionSide::ensureStarted() {
  threadFence(std::memory_order_seq_cst); // as in startIfQuit()
  std::lock_guard lock(starting);
  if (!isHeld && !isAborted() && hasQuit())
    startNext();
}

bool SubmissionSide::ensureLookout() {
  using namespace std::chrono_literals;
  threadFence(std::memory_order_seq_cst); // as in startIfQuit()
  for (Deadline deadline(1s);; sleepFor(100us)) {
    std::lock_guard lock(starting);
    if (isHeld && !deadline.passed())
      continue;
    // One that has been called off does not stay.
    const bool stays = staysOf(starts()) && !isCalledOff(starts());
    if (!isHeld && !isAborted() && hasQuit() && !stays && anyOpen())
      startNext();
    return !isHeld;
  }
}

/// A lookout that need not stay any more leaves without waiting for the next generation: a launch
/// may wait for what waits for the lookout. So does one that others have been launched behind, in
/// the same stream, as it seemed to have left, too.
void SubmissionSide::dismissLookout() {
  if (!needsNoLookout() || !hasLookout())
    return;
  std::unique_lock lock(starting, std::try_to_lock);
  if (!lock || isHeld || !needsNoLookout())
    return;
  // Whoever needs one from now on comes with the lock, and sees what is stored here. But not what
  // executors are about to say: one that will stay, and has not quit yet, counts for others.
  const uint64_t last = starts();
  if (staysOf(last)) {
    if (hasQuit())
      callOff(last);
  } else if (isStartPending() && staysOf(last - 1)) {
    callOff(last - 1);
  }
}

/// Never takes anything back.
void SubmissionSide::callOff(uint64_t upTo) {
  uint64_t before = loadShared(&page.leaveUpTo, std::memory_order_relaxed);
  while (before < upTo && !exchangeShared(&page.leaveUpTo, before, upTo))
    ;
}

/// Under the lock `starting`; those of the last generation have left, but for a lookout.
void SubmissionSide::startNext() {
  const uint64_t generation = started.load(std::memory_order_relaxed) + 1;
  const bool beside = staysOf(generation - 1);
  started.store(generation, std::memory_order_release);
  start(generation, beside);
}

void SubmissionSide::hold() {
  std::lock_guard lock(starting);
  isHeld = true;
  callOff(started.load(std::memory_order_relaxed));
}

void SubmissionSide::releaseStream(uint64_t request) {
  std::lock_guard lock(mutex);
  isReleased[request % kWindow] = true;
  storeShared(completionOf(request), request + 1, std::memory_order_release);
}

void SubmissionSide::withdraw(uint64_t request) {
  std::lock_guard lock(mutex);
  isReleased[request % kWindow] = false;
  SubmissionEntry &entry = page.entries[request % kWindow];
  const SubmissionEntry nothing = pack({}, request);
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    storeShared(&entry.words[i], nothing.words[i], std::memory_order_release);
  storeShared(&page.completions[request % kWindow], request + 1, std::memory_order_release);
}

void SubmissionSide::resume() {
  {
    std::lock_guard lock(starting);
    isHeld = false;
    storeShared(&page.quitGeneration, started.load(std::memory_order_relaxed),
                std::memory_order_release);
  }
  threadFence(std::memory_order_seq_cst);
  restartIfOpen();
}

void SubmissionSide::restartIfOpen() {
  if (!anyOpen())
    return;
  dismissLookout();
  if (!hasQuit())
    return;
  const uint64_t generation = started.load(std::memory_order_relaxed);
  if (hasLookout()) {
    // One that moves nothing is enough.
    if (loadShared(&page.lookouts[generation % 2].moved, std::memory_order_relaxed) != generation)
      return;
  } else if (needsNoLookout() && !isTimeToLook()) {
    return;
  }
  startIfQuit();
}

/// Whether executors that have left with something open should look again.
bool SubmissionSide::isTimeToLook() {
  if (away.count() == 0)
    return true;
  const int64_t now = SteadyClock::now().time_since_epoch().count();
  const uint64_t generation = starts();
  if (goneGeneration.load(std::memory_order_acquire) != generation) {
    goneSince.store(now, std::memory_order_relaxed);
    goneGeneration.store(generation, std::memory_order_release);
  }
  return now - goneSince.load(std::memory_order_relaxed) >= away.count() && mayAnyBegin();
}

bool SubmissionSide::mayAnyBegin() const {
  const uint64_t end = next.load(std::memory_order_acquire);
  for (uint64_t s = oldestOpen(); s < end; ++s) {
    const uint64_t word =
        loadShared(&page.entries[s % kWindow].words[0], std::memory_order_relaxed);
    if (!isComplete(s) && ((word >> kStreamedShift & 1) == 0 || isReached(s)))
      return true;
  }
  return false;
}

bool SubmissionSide::hasLookout() const {
  const uint64_t last = starts();
  return staysOf(last) || (isStartPending() && staysOf(last - 1));
}

bool SubmissionSide::staysOf(uint64_t generation) const {
  const HostPage::Lookout &lookout = page.lookouts[generation % 2];
  return generation != 0 && loadShared(&lookout.stays, std::memory_order_acquire) == generation &&
         loadShared(&lookout.left, std::memory_order_acquire) != generation;
}

uint64_t SubmissionSide::oldestOpen() const {
  uint64_t sequence = oldest.load(std::memory_order_relaxed);
  const uint64_t end = next.load(std::memory_order_acquire);
  while (sequence < end && isComplete(sequence))
    ++sequence;
  oldest.store(sequence, std::memory_order_relaxed); // only a place to begin at
  return sequence;
}

bool SubmissionSide::anyOpen() const { return oldestOpen() < next.load(std::memory_order_acquire); }

std::vector<OpenTask> SubmissionSide::openTasks() const {
  std::vector<OpenTask> tasks;
  const uint64_t end = next.load(std::memory_order_acquire);
  const uint64_t seenAt = loadShared(&page.publishedAt, std::memory_order_relaxed);
  for (uint64_t s = oldestOpen(); s < end; ++s) {
    if (isComplete(s))
      continue;
    for (uint32_t b = 0; b < kMaxTasks; ++b) {
      auto word = [&](uint32_t i) {
        return loadShared(&page.waits[s % kWindow][b].words[i], std::memory_order_relaxed);
      };
      const uint64_t place = word(0), obstacle = word(1), since = word(2);
      // The words are of an earlier request in the slot.
      if (place >> 32 != ((s + 1) & 0xffffffff))
        continue;
      tasks.push_back({s, b, static_cast<uint32_t>(place), seenAt > since ? seenAt - since : 0,
                       static_cast<interpreter::BlockReason>(obstacle >> 56),
                       static_cast<uint32_t>(obstacle),
                       static_cast<uint32_t>(obstacle >> 32 & 0xffffff)});
    }
  }
  return tasks;
}

uint64_t SubmissionSide::total(Count what) const {
  uint64_t sum = 0;
  for (const HostPage::Counts &counts : page.counts)
    sum += loadShared(&counts.values[static_cast<uint32_t>(what)], std::memory_order_relaxed);
  return sum;
}

} // namespace occl::cuda::resident
