#include "runtime/cuda/resident/submission_side.h"

#include <mutex>

namespace occl::cuda::resident {

std::optional<uint64_t> SubmissionSide::enter(const Submission &submission) {
  std::lock_guard lock(mutex);
  const uint64_t sequence = next.load(std::memory_order_relaxed);
  if (sequence >= kWindow && !isComplete(sequence - kWindow))
    return std::nullopt;
  const uint32_t slot = sequence % kWindow;
  const SubmissionEntry entry = pack(submission, sequence);
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    storeShared(&page.entries[slot].words[i], entry.words[i], std::memory_order_release);
  next.store(sequence + 1, std::memory_order_release);
  return sequence;
}

void SubmissionSide::startIfQuit() {
  // They store that they quit, then look for an entry: one of the two sees the other.
  threadFence(std::memory_order_seq_cst);
  uint64_t generation = started.load(std::memory_order_relaxed);
  if (loadShared(&page.quitGeneration, std::memory_order_acquire) != generation || isAborted())
    return;
  // Who counts up starts them.
  if (started.compare_exchange_strong(generation, generation + 1, std::memory_order_acq_rel))
    start(generation + 1);
}

void SubmissionSide::restartIfOpen() {
  if (hasQuit() && anyOpen())
    startIfQuit();
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
  for (uint64_t s = oldestOpen(); s < end; ++s) {
    if (isComplete(s))
      continue;
    for (uint32_t b = 0; b < kMaxTasks; ++b) {
      auto word = [&](uint32_t i) {
        return loadShared(&page.waits[s % kWindow][b].words[i], std::memory_order_relaxed);
      };
      const uint64_t place = word(0), obstacle = word(1);
      if (place >> 32 != ((s + 1) & 0xffffffff))
        continue;
      tasks.push_back({s, b, static_cast<uint32_t>(place),
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
