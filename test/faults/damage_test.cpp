// A rank that is damaged writes to whatever shared memory it can write, again and again. The others
// neither crash nor hang: each call ends in time. Where only control data was damaged, and not what
// says where data lies or when it is there, a call that returns success has the right result.
//
// OCCL_DAMAGE_TRIALS: how many of the random ones.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/control/records/segment.h"
#include "test/faults/shared_files.h"
#include "test/faults/shared_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;
using faults::Piece;
using transport::AnnounceCell;
using transport::AnnounceTable;
using transport::Segment;
using transport::SegmentHeader;

constexpr uint32_t kRanks = 3, kDamaged = 1;
constexpr uint64_t kPage = 4096;
/// Of each call, however much is wrong: many times the deadline.
constexpr auto kInTime = 20s * kSlowness;

/// Bytes that a damaged rank writes to.
struct Target {
  std::byte *begin = nullptr;
  uint64_t bytes = 0;
};

/// What this process maps of segments and doorbells, and may write.
std::vector<Piece> writablePieces(bool own) {
  std::vector<Piece> pieces;
  for (const Piece &piece : faults::listPieces("memfd:occl-segment"))
    if (piece.isWritable && (faults::rankOf(piece.file) == kDamaged) == own)
      pieces.push_back(piece);
  return pieces;
}

uint64_t roundUp(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

/// Of the own segment, by what lies where (runtime/control/records/segment.h).
Target inOwn(uint64_t from, uint64_t bytes) {
  for (const Piece &piece : writablePieces(true))
    if (piece.offset <= from && from + bytes <= piece.offset + piece.bytes)
      return {piece.begin + (from - piece.offset), bytes};
  return {};
}

std::vector<Target> ownHeader() { return {inOwn(0, sizeof(SegmentHeader))}; }
/// Sizes and what else is said once and for all.
std::vector<Target> ownIdentity() { return {inOwn(0, 56)}; }
std::vector<Target> ownIndex() {
  return {inOwn(roundUp(sizeof(SegmentHeader)), AnnounceTable::indexBytes(Segment::kCells))};
}
/// Those that are used.
std::vector<Target> ownCells() {
  return {
      inOwn(roundUp(sizeof(SegmentHeader)) + roundUp(AnnounceTable::indexBytes(Segment::kCells)),
            8 * sizeof(AnnounceCell))};
}
std::vector<Target> ownArena() {
  return {inOwn(roundUp(sizeof(SegmentHeader)) +
                    roundUp(AnnounceTable::indexBytes(Segment::kCells)) +
                    roundUp(sizeof(AnnounceCell) * uint64_t{Segment::kCells}) +
                    Segment::kPartitionedBytes + Segment::kTailsBytes + Segment::kRingsBytes,
                64 << 10)};
}
/// Of transfers: the tails, and the rings to the first ranks.
std::vector<Target> ownRings() {
  const uint64_t tails =
      Segment::bytesFor(0) - kPage - 3 * Segment::kTailsBytes - Segment::kRingsBytes;
  return {inOwn(tails, Segment::kTailsBytes), inOwn(tails + Segment::kTailsBytes, 512 << 10)};
}
/// Heads of the others' transfers.
std::vector<Target> headsOfOthers() {
  std::vector<Target> targets;
  for (const Piece &piece : writablePieces(false))
    targets.push_back({piece.begin + piece.bytes - kPage - Segment::kTailsBytes, kPage});
  return targets;
}
/// The begin and the end of everything that may be written of the others' segments.
std::vector<Target> segmentsOfOthers() {
  std::vector<Target> targets;
  for (const Piece &piece : writablePieces(false)) {
    uint64_t bytes = std::min<uint64_t>(piece.bytes, 256 << 10);
    targets.push_back({piece.begin, bytes});
    targets.push_back({piece.begin + piece.bytes - kPage, kPage});
  }
  return targets;
}
/// Where it lies if it may be written.
std::vector<Target> indexesOfOthers() {
  std::vector<Target> targets;
  const uint64_t begin = roundUp(sizeof(SegmentHeader));
  for (const Piece &piece : writablePieces(false))
    if (piece.offset <= begin && begin < piece.offset + piece.bytes)
      targets.push_back(
          {piece.begin + (begin - piece.offset), AnnounceTable::indexBytes(Segment::kCells)});
  return targets;
}
/// Only the last page: words that say that something has failed, is asked, or decided.
std::vector<Target> wordsOfOthers() {
  std::vector<Target> targets;
  for (const Piece &piece : writablePieces(false))
    targets.push_back({piece.begin + piece.bytes - kPage, kPage});
  return targets;
}
std::vector<Target> doorbells() {
  std::vector<Target> targets;
  for (const Piece &piece : faults::listPieces("memfd:occl-bell"))
    if (piece.isWritable)
      targets.push_back({piece.begin, piece.bytes});
  return targets;
}

enum class Pattern { Zeros, Ones, Words, Bits, Far };

/// Of a rank that no rule binds: a thread sanitizer says nothing of these stores, and all of what
/// the library itself does beside them.
[[gnu::no_sanitize_thread]] void overwrite(std::byte *at, uint64_t word) {
  *reinterpret_cast<volatile uint64_t *>(at) = word;
}
[[gnu::no_sanitize_thread]] uint64_t wordAt(const std::byte *at) {
  return *reinterpret_cast<const volatile uint64_t *>(at);
}

/// Overwrites all of the target at once, or words and bits here and there. It is whole words.
void damage(const Target &target, Pattern pattern, std::mt19937_64 &random) {
  const uint64_t numWords = target.bytes / sizeof(uint64_t);
  if (pattern == Pattern::Words || pattern == Pattern::Bits) {
    for (int i = 0; i < 64; ++i) {
      std::byte *at = target.begin + random() % numWords * sizeof(uint64_t);
      // Small numbers are more often nearly right.
      overwrite(at, pattern == Pattern::Bits ? wordAt(at) ^ 1ull << random() % 64
                                             : random() >> random() % 64);
    }
    return;
  }
  // Far: each word alone would lead out of all memory.
  const uint64_t word = pattern == Pattern::Far    ? uint64_t{1} << 44
                        : pattern == Pattern::Ones ? ~uint64_t{0}
                                                   : 0;
  for (uint64_t i = 0; i < numWords; ++i)
    overwrite(target.begin + i * sizeof word, word);
}

struct Trial {
  std::function<std::vector<Target>()> targets;
  Pattern pattern = Pattern::Ones;
  uint64_t seed = 0;
  /// Nothing is damaged that leads to data.
  bool areResultsRight = false;
  /// In heap buffers, with direct stores.
  bool isDirect = false;
};

plan::Plan inLines(plan::Plan plan) {
  plan.protocol = plan::Protocol::LL128;
  return plan;
}

std::vector<Job> makeJobs(uint32_t numRanks, uint64_t firstId) {
  std::vector<Job> jobs;
  jobs.emplace_back(firstId, handleOf(ringAllReduce(numRanks)), 30);
  jobs.emplace_back(firstId + 1, handleOf(twoShotAllReduce(numRanks)), 100000);
  jobs.emplace_back(firstId + 2, handleOf(inLines(oneShotAllReduce(numRanks))), 30);
  return jobs;
}

/// Calls, each of which must end in time.
class Clocked {
public:
  occlResult_t operator()(const char *what, const std::function<occlResult_t()> &call) {
    auto begin = std::chrono::steady_clock::now();
    occlResult_t result = call();
    if (std::chrono::steady_clock::now() - begin > kInTime && late.empty())
      late = std::string(what) + " took too long";
    return result;
  }
  std::string late;
};

/// A group in which numbers go along the ring of ranks, some of them where they lie.
occlResult_t passOn(occlComm_t comm, uint32_t rank, std::string &wrong) {
  const uint32_t next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
  std::vector<std::vector<uint32_t>> sent, got, expected;
  for (uint64_t count : {10, 30000, 200, 0, 15000}) {
    sent.emplace_back(count, rank + 1);
    expected.emplace_back(count, before + 1);
    got.emplace_back(count);
  }
  occlGroupStart();
  for (size_t i = 0; i < sent.size(); ++i) {
    occlSend(sent[i].data(), sent[i].size(), occlInt32, next, comm, nullptr);
    occlRecv(got[i].data(), got[i].size(), occlInt32, before, comm, nullptr);
  }
  const occlResult_t result = occlGroupEnd();
  if (result == occlSuccess && got != expected)
    wrong = "wrong data from rank " + std::to_string(before);
  return result;
}

/// Rounds of collectives that are started in different orders, each round under ids of its own, and
/// of one that is called, until the first error, after which the rest of the interface is used,
/// too.
std::string live(const Trial &trial, occlComm_t comm, uint32_t rank, std::atomic<bool> *hasBegun) {
  constexpr int kRounds = 40, kFirstDamaged = 2;
  Clocked call;
  std::string wrong;
  bool isLost = false;
  // Buffers outlive the communicator: after an error what else was submitted is not waited for.
  std::list<std::vector<Job>> rounds;
  for (int round = 0; round < kRounds && !isLost && wrong.empty() && call.late.empty(); ++round) {
    std::vector<Job> &jobs =
        rounds.emplace_back(makeJobs(kRanks, static_cast<uint64_t>(round) * 3));
    std::vector<occlRequest_t> requests;
    for (uint32_t j : latinOrder(static_cast<uint32_t>(jobs.size()), rank, 0)) {
      occlRequest_t request = 0;
      if (call("occlStart", [&] { return jobs[j].submit(comm, rank, &request); }) == occlSuccess)
        requests.push_back(request);
      else
        isLost = true;
    }
    if (hasBegun && round >= kFirstDamaged)
      hasBegun->store(true);
    for (occlRequest_t request : requests)
      if (!isLost)
        isLost |= call("occlWait", [&] { return occlWait(comm, request); }) != occlSuccess;
    if (!isLost && trial.areResultsRight)
      wrong = checkAll(jobs, rank);
    if (isLost)
      break;
    Job &called = jobs[static_cast<size_t>(round) % jobs.size()];
    called.clear(rank);
    isLost = call("occlCall", [&] { return called.run(comm, rank); }) != occlSuccess;
    if (!isLost && trial.areResultsRight && wrong.empty())
      wrong = called.check(rank);
    std::string wrongTransfer;
    if (!isLost)
      isLost |=
          call("occlGroupEnd", [&] { return passOn(comm, rank, wrongTransfer); }) != occlSuccess;
    if (trial.areResultsRight)
      wrong += wrongTransfer;
  }
  call("occlCommReport", [&] { return reportOf(comm), occlSuccess; });
  occlComm_t smaller = nullptr;
  occlConfig_t config = withTimeout(500);
  call("occlCommShrink", [&] { return occlCommShrink(comm, nullptr, 0, &config, &smaller); });
  if (smaller)
    call("occlCommDestroy", [&] { return occlCommDestroy(smaller); });
  call("occlCommDestroy", [&] { return occlCommDestroy(comm); });
  return !wrong.empty() ? wrong : call.late;
}

/// The damaged rank does its part meanwhile, as far as it can.
std::string liveDamaged(const Trial &trial, occlComm_t comm) {
  std::mt19937_64 random(trial.seed);
  const std::vector<Target> targets = trial.targets();
  std::atomic<bool> hasBegun{false};
  std::thread damaging([&] {
    while (!hasBegun.load())
      std::this_thread::yield();
    for (;;) {
      for (const Target &target : targets)
        if (target.begin)
          damage(target, trial.pattern, random);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    }
  });
  live(trial, comm, kDamaged, &hasBegun);
  _exit(0); // the thread goes on until then
}

void run(const Trial &trial) {
  std::string name = jobName("damage");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlConfig_t config = withTimeout(500);
    config.arenaBytes = 1 << 20;
    config.heapBytes = 1 << 20;
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), &config) != occlSuccess)
      return std::string("occlCommInitRank: ") + occlGetLastError();
    return rank == kDamaged ? liveDamaged(trial, comm) : live(trial, comm, rank, nullptr);
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    if (r != kDamaged) {
      EXPECT_EQ(processes.join(r), 0) << "rank " << r << " (-1: killed by a signal), seed "
                                      << trial.seed << ": " << processes.wrong(r);
    }
  processes.kill(kDamaged);
  processes.join(kDamaged);
}

void runWithEachPattern(std::vector<Target> (*targets)(), bool areResultsRight) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (Pattern pattern : {Pattern::Zeros, Pattern::Ones, Pattern::Words, Pattern::Bits})
    run({targets, pattern, seed, areResultsRight});
}

TEST(Damage, SizesInTheOwnHeader) {
  for (Pattern pattern : {Pattern::Far, Pattern::Ones})
    run({ownIdentity, pattern, 1, true});
}
TEST(Damage, IndexesOfOthers) {
  for (uint64_t seed = 1; seed <= 4; ++seed)
    run({indexesOfOthers, Pattern::Ones, seed, true});
}
TEST(Damage, TheOwnHeader) { runWithEachPattern(ownHeader, true); }
TEST(Damage, TheOwnIndex) { runWithEachPattern(ownIndex, true); }
TEST(Damage, WordsOfOthers) { runWithEachPattern(wordsOfOthers, true); }
TEST(Damage, Doorbells) { runWithEachPattern(doorbells, true); }
TEST(Damage, TheOwnCells) { runWithEachPattern(ownCells, false); }
TEST(Damage, TheOwnArena) { runWithEachPattern(ownArena, false); }
TEST(Damage, TheOwnRings) { runWithEachPattern(ownRings, false); }
TEST(Damage, HeadsOfOthers) { runWithEachPattern(headsOfOthers, false); }
TEST(Damage, AllThatCanBeWrittenOfOthers) { runWithEachPattern(segmentsOfOthers, false); }

TEST(Damage, AnythingAtRandom) {
  const char *given = std::getenv("OCCL_DAMAGE_TRIALS");
  const uint64_t trials = given ? std::strtoull(given, nullptr, 10) : 6;
  std::random_device device;
  for (uint64_t trial = 0; trial < trials && !::testing::Test::HasFailure(); ++trial) {
    const uint64_t seed = device();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    auto targets = [seed] {
      std::mt19937_64 random(seed);
      std::vector<Target> all;
      for (auto *some : {ownHeader, ownIndex, ownCells, ownRings, ownArena, segmentsOfOthers,
                         headsOfOthers, wordsOfOthers, doorbells})
        if (random() % 2 == 0)
          for (const Target &target : some())
            all.push_back(target);
      return all;
    };
    run({targets, static_cast<Pattern>(seed % 4), seed});
  }
}

/// After an error each call is one, and ends in time; "" or what is wrong.
std::string expectFailed(occlComm_t comm, uint32_t rank, std::vector<Job> &jobs,
                         const std::vector<occlRequest_t> &requests) {
  Clocked call;
  std::string well;
  auto fails = [&](const char *what, const std::function<occlResult_t()> &made) {
    occlResult_t result = call(what, made);
    if (result == occlSuccess || result == occlInProgress || result == occlAgain)
      well = well.empty() ? std::string(what) + " after an error: " + std::to_string(result) : well;
  };
  for (occlRequest_t request : requests)
    fails("occlWait", [&] { return occlWait(comm, request); });
  for (int i = 0; i < 300 && well.empty() && call.late.empty(); ++i) {
    Job &job = jobs[static_cast<size_t>(i) % jobs.size()];
    occlRequest_t request = 0;
    fails("occlTest", [&] { return occlTest(comm, requests.front()); });
    fails("occlWait", [&] { return occlWait(comm, requests.back()); });
    fails("occlStart", [&] {
      occlResult_t result = job.submit(comm, rank, &request);
      return result == occlSuccess ? occlWait(comm, request), result : result;
    });
    fails("occlCall", [&] { return job.run(comm, rank); });
    std::this_thread::sleep_for(30us); // not in step with the damage
  }
  return well.empty() ? call.late : well;
}

/// A damaged rank says that all have failed, and takes it back, again and again.
TEST(Damage, FailuresAreNotTakenBack) {
  InSharedMemory<std::atomic<uint32_t>> submitted;
  const std::string name = jobName("taken-back");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    std::vector<Job> jobs = makeJobs(kRanks, 0);
    occlConfig_t config = withTimeout(500);
    config.arenaBytes = 1 << 20;
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), &config) != occlSuccess)
      return lastError("occlCommInitRank");
    if (rank == kDamaged) {
      while (submitted->load() < kRanks - 1)
        std::this_thread::yield();
      const std::vector<Target> words = wordsOfOthers();
      for (uint32_t i = 0;; ++i) {
        // Mostly all is well again; else there is a rank, or what is none.
        const uint32_t failedBy = i % 4 != 0 ? 0 : i % 8 != 0 ? 1 + i / 8 % kRanks : ~0u;
        for (const Target &page : words) // failedBy is the first word there
          std::atomic_ref(*reinterpret_cast<uint32_t *>(page.begin)).store(failedBy);
        std::this_thread::sleep_for(50us);
      }
    }
    std::vector<occlRequest_t> requests(jobs.size());
    for (size_t j = 0; j < jobs.size(); ++j)
      if (jobs[j].submit(comm, rank, &requests[j]) != occlSuccess)
        return lastError("occlStart");
    submitted->fetch_add(1);
    std::string wrong = expectFailed(comm, rank, jobs, requests);
    occlCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    if (r != kDamaged) {
      EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
    }
  processes.kill(kDamaged);
  processes.join(kDamaged);
}

constexpr uint64_t kArena = 1 << 20, kHeap = 1 << 20;
/// Of a segment: heads are as many as tails, of transfers and of notices.
constexpr uint64_t kShared = kArena + 2 * Segment::kTailsBytes + kPage;

/// Bytes that `rank` maps of the segments of others, and may write; ~0 if header or tables are
/// among them.
uint64_t writableOfOthers(uint32_t rank) {
  uint64_t bytes = 0;
  for (const Piece &piece : faults::listPieces("memfd:occl-segment"))
    if (piece.isWritable && faults::rankOf(piece.file) != rank) {
      if (piece.offset < Segment::bytesFor(0) - kPage - Segment::kTailsBytes)
        return ~uint64_t{0};
      bytes += piece.bytes;
    }
  return bytes;
}

/// By what it has called.
std::string checkWritable(occlComm_t comm, uint32_t rank) {
  if (uint64_t bytes = writableOfOthers(rank); bytes != (kRanks - 1) * kShared)
    return "writable of the others' segments: " + std::to_string(bytes);
  uint32_t wholeBells = 0; // the own one
  for (const Piece &piece : faults::listPieces("memfd:occl-bell"))
    wholeBells += piece.isWritable && piece.bytes > kPage;
  if (wholeBells > 1)
    return "what the devices of others say beside their doorbells is writable";
  constexpr uint64_t kCount = 30;
  void *buffers[2] = {};
  for (void *&buffer : buffers)
    if (occlMemAlloc(comm, kCount * sizeof(float), &buffer) != occlSuccess)
      return lastError("occlMemAlloc");
  PlanHandle plan = handleOf(directAllReduce(kRanks));
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.plan = plan.get();
  call.sendBuffer = buffers[0];
  call.recvBuffer = buffers[1];
  call.count = kCount;
  if (occlCall(comm, &call, nullptr) != occlSuccess)
    return lastError("occlCall");
  // It stores to the output of each rank.
  if (uint64_t bytes = writableOfOthers(rank); bytes != (kRanks - 1) * (kShared + kHeap))
    return "writable with direct access: " + std::to_string(bytes);
  return {};
}

occlConfig_t withMemory() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.arenaBytes = kArena;
  config.heapBytes = kHeap;
  return config;
}

TEST(Damage, OnlySharedPagesOfOthersCanBeWritten) {
  inProcesses(kRanks, "writable", checkWritable, withMemory());
}

TEST(Damage, NorMoreOfADividedCommunicator) {
  const auto divide = [](occlComm_t comm, uint32_t rank) -> std::string {
    const occlConfig_t config = withMemory();
    occlComm_t divided = nullptr;
    if (occlCommSplit(comm, 0, 0, &config, &divided) != occlSuccess)
      return lastError("occlCommSplit");
    const uint64_t bytes = writableOfOthers(rank);
    occlCommDestroy(divided);
    return bytes == 2 * (kRanks - 1) * kShared ? "" : "writable of both: " + std::to_string(bytes);
  };
  inProcesses(kRanks, "divided", divide, withMemory());
}

} // namespace
} // namespace occl::communicator::testing
