// What the host and the executors of a resident daemon share. An executor is a thread block of the
// daemon's kernel, or in tests a thread of the host. Words and plain structures only; the
// host's side is in submission_side.h.
//
// A submission has a sequence number and with it a slot of the window, until it is complete. The
// host writes an entry of the ring; some executor takes it in, which fills the slot; its thread
// blocks, the tasks, are claimed bit by bit, or handed to executors that have nothing to do; who
// finishes the last one writes the completion word.
//
// A streamed submission is taken in like any other, but begins only when its stream has reached it,
// which the stream says in a gate, a word of the host; and its stream is held until the completion
// word says so. A stream that is held, or will be, must not need another launch: as long as any
// such submission is open, one executor, the lookout, stays when all others leave, and goes on
// alone. The next generation runs beside it, in another stream, until it sees that. The host may
// say that nobody need stay, as no stream waits yet, or that somebody must whatever is open, as
// streams wait for something else (StayFor).
//
// Scheduling is in choosing.h (which task comes next), executor.h (a visit), intake.h (submissions,
// and leaving) and hand_over.h.
#pragma once

#include "plan/model/chunking.h"
#include "runtime/exec/step/invocation.h"
#include "runtime/sched/policy/policy.h"

#include <cstdint>

namespace occl::cuda {
struct PartGates;
}

namespace occl::cuda::resident {

/// Submissions in flight, a power of two of at most 256.
inline constexpr uint32_t kWindow = 256;
/// Thread blocks of a collective on one rank: the bits of a word.
inline constexpr uint32_t kMaxTasks = 64;
inline constexpr uint32_t kMaxExecutors = 64;
/// Words that different executors write lie so far apart.
inline constexpr uint32_t kApart = 128;

/// What is counted of one thread block of a collective on one rank, over all its invocations: words
/// that any executor adds to. Times are nanoseconds of the device.
struct alignas(kApart) BlockCounts {
  static constexpr uint32_t kReasons = 6;

  uint64_t visits, moves, preemptions, slices, runningNs;
  uint64_t queueLengths, longestQueue; // tasks that might have been chosen, at each visit
  /// By interpreter::BlockReason: waits that are over, and from the first look that found
  /// something missing to the one before it was there.
  uint64_t waits[kReasons], waitNs[kReasons];
  /// Thread block 0 has them for all, over the invocations that are complete: what Progress says,
  /// since they were taken in. What was not known to be announced is when it is complete.
  uint64_t startNs, announceNs;
};

/// Where a visit of a collective's thread block stores what others are to know. An executor may
/// have a copy.
struct CollectiveAddresses {
  static constexpr uint32_t kMaxRanks = 8;

  /// Invocations that are complete on this rank.
  uint64_t *done = nullptr;
  /// By thread block; or null: nothing is counted.
  BlockCounts *counts = nullptr;
  /// In rank r's memory: this rank's announcement there.
  uint64_t *announcedAt[kMaxRanks] = {};
  /// Of a partitioned collective; else null.
  const PartGates *parts = nullptr;
};

/// What scheduling needs to know of a collective; the runner's part follows it. In
/// memory of the device, complete before the first submission names it. Words of other ranks are
/// written over the link, and own ones are read.
struct alignas(4096) CollectiveWords : CollectiveAddresses {

  uint32_t rank = 0, numRanks = 1;
  /// announcement() of rank r, announcedStride bytes apart.
  uint64_t *announced = nullptr;
  uint64_t announcedStride = sizeof(uint64_t);

  OCCL_HOST_DEVICE uint64_t *announcedBy(uint32_t r) const {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(announced) + r * announcedStride);
  }
};

/// What a rank announces: which invocation has come, how urgent it is, when it came.
OCCL_HOST_DEVICE constexpr uint64_t announcement(uint64_t ordinal, uint8_t priority,
                                                 uint64_t sequence) {
  return (ordinal + 1) << 32 | uint64_t(priority) << 24 | (sequence & 0xffffff);
}
OCCL_HOST_DEVICE constexpr bool isAnnounced(uint64_t word, uint64_t ordinal) {
  // Ordinals repeat themselves here: what counts is how far apart they are.
  return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - static_cast<uint32_t>(ordinal)) >
         0;
}

struct Submission {
  CollectiveWords *collective = nullptr;
  char *input = nullptr, *output = nullptr;
  uint64_t ordinal = 0;  // of the collective, below 2^40
  uint8_t numBlocks = 0; // at most kMaxTasks; 0: was withdrawn
  uint8_t priority = 0;  // larger is more urgent
  /// It begins when its gate says so, and a stream waits for its completion.
  bool isStreamed = false;
  /// Below kHomes: which executors the thread blocks prefer, see ownTasks().
  uint8_t home = 0;
};

/// Collectives begin at different executors, so that those of few thread blocks spread over all.
inline constexpr uint32_t kHomes = 16;
/// On all ranks the same, so that the thread blocks that exchange something stand in equal queues.
OCCL_HOST_DEVICE constexpr uint8_t homeOf(uint32_t agreedNumber) {
  return static_cast<uint8_t>(agreedNumber * 5 % kHomes);
}
/// All thread blocks of a collective that has so many.
OCCL_HOST_DEVICE constexpr uint64_t allTasks(uint32_t numBlocks) {
  return numBlocks == kMaxTasks ? ~0ull : (1ull << numBlocks) - 1;
}
/// The thread blocks 0, numExecutors, 2 * numExecutors and so on.
OCCL_HOST_DEVICE constexpr uint64_t everyTask(uint32_t numExecutors) {
  uint64_t tasks = 0;
  for (uint32_t b = 0; b < kMaxTasks; b += numExecutors)
    tasks |= 1ull << b;
  return tasks;
}
/// The first thread block that an executor prefers: 0 is that of home's first one, and so on.
OCCL_HOST_DEVICE constexpr uint32_t firstOwnTask(uint32_t executor, uint32_t numExecutors,
                                                 uint32_t home) {
  const uint32_t first =
      numExecutors < kHomes ? home % numExecutors : home * (numExecutors / kHomes);
  return executor < first ? executor + numExecutors - first : executor - first;
}
/// All that it prefers.
OCCL_HOST_DEVICE constexpr uint64_t ownTasks(uint64_t every, uint32_t executor,
                                             uint32_t numExecutors, uint32_t home) {
  return every << firstOwnTask(executor, numExecutors, home);
}

/// As it crosses from host to device: each word has 48 bits of a submission and a mark of the turn,
/// so an entry is read with one trip and no order among its words. A ring begins with zeros.
struct alignas(32) SubmissionEntry {
  static constexpr uint32_t kWords = 4;
  uint64_t words[kWords];
};

OCCL_HOST_DEVICE constexpr uint64_t turnMark(uint64_t sequence) {
  return (sequence / kWindow + 1) << 48;
}
OCCL_HOST_DEVICE constexpr bool isOfTurn(uint64_t word, uint64_t sequence) {
  return ((word ^ turnMark(sequence)) >> 48) == 0;
}

/// Below a collective's address: thread blocks, whether it is streamed, home.
inline constexpr uint32_t kStreamedShift = 7, kHomeShift = 8;
static_assert(kMaxTasks < 1u << kStreamedShift && kHomes << kHomeShift <= alignof(CollectiveWords));

/// Of the first word of an entry.
OCCL_HOST_DEVICE constexpr uint32_t homeIn(uint64_t word) {
  return static_cast<uint32_t>(word >> kHomeShift) % kHomes;
}

/// The words of an entry.
inline SubmissionEntry pack(const Submission &submission, uint64_t sequence) {
  auto address = [](const auto *pointer) { return reinterpret_cast<uint64_t>(pointer); };
  const uint64_t payload[] = {address(submission.collective) | submission.numBlocks |
                                  uint64_t(submission.isStreamed) << kStreamedShift |
                                  uint64_t(submission.home) << kHomeShift,
                              address(submission.input), address(submission.output),
                              submission.ordinal | uint64_t(submission.priority) << 40};
  SubmissionEntry entry;
  for (uint32_t i = 0; i < SubmissionEntry::kWords; ++i)
    entry.words[i] = payload[i] << 16 >> 16 | turnMark(sequence);
  return entry;
}

OCCL_HOST_DEVICE inline Submission unpack(const uint64_t (&words)[SubmissionEntry::kWords]) {
  constexpr uint64_t kInAlignment = alignof(CollectiveWords) - 1;
  auto payload = [&](uint32_t i) { return words[i] << 16 >> 16; };
  Submission submission;
  submission.collective = reinterpret_cast<CollectiveWords *>(payload(0) & ~kInAlignment);
  submission.numBlocks = static_cast<uint8_t>(payload(0) & ((1u << kStreamedShift) - 1));
  submission.isStreamed = (payload(0) >> kStreamedShift & 1) != 0;
  submission.home = static_cast<uint8_t>((payload(0) & kInAlignment) >> kHomeShift);
  submission.input = reinterpret_cast<char *>(payload(1));
  submission.output = reinterpret_cast<char *>(payload(2));
  submission.ordinal = payload(3) << 24 >> 24;
  submission.priority = static_cast<uint8_t>(payload(3) >> 40);
  return submission;
}

/// What a task was seen to wait for: words, since host and executors share them.
struct WaitRecord {
  static constexpr uint32_t kWords = 3;
  /// sequence + 1, instruction; reason, peer, what; since when.
  uint64_t words[kWords] = {};
};

/// When a submission went on, in the device's time; ~0: not yet.
struct Progress {
  /// By an executor; or when its stream had reached it.
  uint64_t takenIn;
  /// Thread block 0 was visited, and that all ranks had announced it was known then.
  uint64_t started, announced;
};

/// A submission on the device.
struct alignas(kApart) Slot {
  uint64_t claimable = 0;                       // bit b: thread block b may be claimed
  uint64_t left = 0;                            // thread blocks that are not finished: see fill()
  uint64_t sequence = 0;                        // whose it is
  uint64_t words[SubmissionEntry::kWords] = {}; // the submission
  Progress progress = {};
};

/// The dynamic part of a task.
struct alignas(32) TaskState {
  interpreter::BlockContext context;
  uint64_t savedFor = 0; // sequence + 1 of whose context that is
  WaitRecord wait;       // the first word 0: none
};

/// A task as who has the intake hands it to an executor: hand_over.h. Each word has 48 bits and the
/// turn of this executor, so that it is read with one trip and no order among its words.
struct alignas(kApart) Hand {
  static constexpr uint32_t kWords = SubmissionEntry::kWords + 1;
  /// Those of the submission's entry; then its sequence, and above that the thread block.
  uint64_t words[kWords];
};
/// Of one generation of executors; zero at first.
struct Hands {
  Hand hands[kMaxExecutors];
  /// By executor, its own word: the turn of what it awaits, plus HandOver::kAwaits; 0: nothing.
  alignas(kApart) uint64_t awaited[kMaxExecutors];
};

struct ProgressWord {
  alignas(kApart) uint64_t value;
};

/// In memory of the device, zero at first; survives a quit.
struct Board {
  /// Entries taken in, and in the upper 16 bits the generation that is to leave (the low bits of
  /// its number). Written under the intake lock. Not ordered before what may be claimed: who sees
  /// it too early looks again.
  alignas(kApart) uint64_t news;
  /// kTaken while an executor takes entries in and watches over quitting; else twice the time of
  /// the last look at the ring.
  alignas(kApart) uint64_t intake;
  /// Under the intake lock: streamed submissions whose gate has not been seen open, by slot as
  /// bits, and their number.
  uint64_t gated[kWindow / 64], numGated;
  /// The last generation that has begun.
  alignas(kApart) uint64_t begun;
  /// Under the intake lock: the progress last seen, when it was, in which generation.
  alignas(kApart) uint64_t watchedProgress, watchedSince, watchedGeneration;
  /// By executor: visits that moved.
  ProgressWord progress[kMaxExecutors];
  /// By generation % 2, as two of them may overlap.
  Hands hands[2];
  Slot slots[kWindow];
  TaskState tasks[kWindow][kMaxTasks];
};

/// What executors count.
enum class Count : uint32_t {
  Visits,
  Moves,       // visits that did a slice
  Preemptions, // blocked for its budget, while others wait
  ContextLoads,
  ContextSaves,
  ImageLoads, // static parts that were not near the executor
  Finished,   // thread blocks
  Handed,     // visits of what an executor was handed
};
inline constexpr uint32_t kNumCounts = 8;

/// What a lookout stays for, as long as it is open.
enum class StayFor : uint64_t {
  Streamed, // what a stream waits for, or will
  Nothing,
  Anything
};

/// In memory of the host that the device sees too; zero at first.
struct HostPage {
  /// Executors of generations up to this one leave. kForGood: all there will ever be.
  alignas(kApart) uint64_t leaveUpTo;
  /// A StayFor.
  uint64_t stayFor;
  /// The last generation of executors that has decided to leave.
  alignas(kApart) uint64_t quitGeneration;
  /// The ring of submissions.
  alignas(kApart) SubmissionEntry entries[kWindow];
  /// By slot: sequence + 1 of the last submission there that is complete.
  alignas(kApart) uint64_t completions[kWindow];
  /// By slot: sequence + 1 of the last streamed submission there that its stream has reached.
  alignas(kApart) uint64_t gates[kWindow];
  /// The last generation that has begun.
  alignas(kApart) uint64_t begun;
  /// By generation % 2, as two of them may overlap: the last one of which an executor stayed as
  /// lookout, 0 if the last one left whole; of which the lookout has moved something; of which it
  /// has left.
  struct alignas(kApart) Lookout {
    uint64_t stays, moved, left;
  } lookouts[2];
  /// As of the last time the executor left, or behind them the lookout, by generation % 2.
  struct alignas(kApart) Counts {
    uint64_t values[kNumCounts];
  } counts[kMaxExecutors + 2];
  /// Of submissions that were open when executors last left: what their tasks waited for, as of
  /// the device's time `publishedAt`, and the ranks that have not announced them.
  alignas(kApart) WaitRecord waits[kWindow][kMaxTasks];
  uint64_t missing[kWindow];
  uint64_t publishedAt;
};
inline constexpr uint64_t kForGood = ~0ull;
/// Board::intake: somebody has it.
inline constexpr uint64_t kTaken = 1;

/// How executors behave; times in nanoseconds.
struct Settings {
  uint32_t numExecutors = 1;
  bool preemption = true;
  scheduler::OrderPolicy order = scheduler::OrderPolicy::Priority;
  /// How long a blocked task is polled; if there is no other one, `budgetAlone`. What some rank has
  /// not announced is looked at once if there are others.
  scheduler::BudgetPolicy budget = scheduler::BudgetPolicy::FrontHeavy;
  scheduler::BudgetLimits budgetLimits = {2'000, 5'000};
  uint64_t budgetAlone = 50'000;
  /// Without a task of its own for so long an executor helps others; between two looks of an
  /// executor at what some rank had not announced.
  uint64_t helpAfter = 50'000, settleEvery = 2'000;
  /// Nothing open, or nothing moved, for so long: all leave. Also after `stayLimit`, whatever there
  /// is to do: who waits for the whole device gets his turn.
  uint64_t idleLimit = 200'000, stuckLimit = 2'000'000, stayLimit = 20'000'000;
  /// What each open submission adds to the second.
  uint64_t stuckLimitEach = 0;
};

} // namespace occl::cuda::resident
