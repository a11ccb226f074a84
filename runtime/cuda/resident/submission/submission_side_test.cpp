#include "runtime/cuda/resident/submission/submission_side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

using namespace occl;
using namespace occl::cuda::resident;

namespace {

class SubmissionSideTest : public testing::Test {
protected:
  Submission someSubmission(uint32_t ordinal) {
    Submission submission;
    submission.collective = &words;
    submission.ordinal = ordinal;
    submission.numBlocks = 1;
    return submission;
  }
  void complete(uint64_t request) { page->completions[request % kWindow] = request + 1; }
  void quit(uint64_t generation) { page->quitGeneration = generation; }

  /// Something streamed is open, and of the first executors one has stayed for it.
  void submitToALookout() {
    Submission streamed = someSubmission(0);
    streamed.isStreamed = true;
    ASSERT_EQ(side.submit(streamed), 0u);
    page->begun = 1;
    page->lookouts[1].stays = 1;
    quit(1);
  }

  CollectiveWords words;
  std::unique_ptr<HostPage> page = std::make_unique<HostPage>();
  std::vector<uint64_t> starts;
  bool wasBeside = false;
  SubmissionSide side{*page, [this](uint64_t generation, bool beside) {
                        starts.push_back(generation);
                        wasBeside = beside;
                      }};
};

TEST(SubmissionEntry, HoldsASubmissionAndItsTurn) {
  auto *collective = reinterpret_cast<CollectiveWords *>(0x7fff'1234'5000);
  Submission submission{collective,
                        reinterpret_cast<char *>(0x7f00'0000'0001),
                        reinterpret_cast<char *>(0x10),
                        0xffff'fffe,
                        64,
                        200,
                        true,
                        13};
  for (uint64_t sequence : {uint64_t(0), uint64_t(kWindow - 1), uint64_t(kWindow),
                            uint64_t(kWindow) * 65535, uint64_t(kWindow) * 65536 + 3}) {
    SubmissionEntry entry = pack(submission, sequence);
    for (uint64_t word : entry.words) {
      EXPECT_TRUE(isOfTurn(word, sequence));
      EXPECT_FALSE(isOfTurn(word, sequence + kWindow));
    }
    Submission read = unpack(entry.words);
    EXPECT_EQ(read.collective, submission.collective);
    EXPECT_EQ(read.input, submission.input);
    EXPECT_EQ(read.output, submission.output);
    EXPECT_EQ(read.ordinal, submission.ordinal);
    EXPECT_EQ(read.numBlocks, submission.numBlocks);
    EXPECT_EQ(read.priority, submission.priority);
    EXPECT_TRUE(read.isStreamed);
    EXPECT_EQ(read.home, submission.home);
    EXPECT_EQ(homeIn(entry.words[0]), submission.home);
  }
  EXPECT_FALSE(isOfTurn(0, 0)) << "an empty ring has no entry";
}

TEST(OwnTasks, EveryThreadBlockIsPreferredByOneExecutor) {
  for (uint32_t executors = 1; executors <= kMaxExecutors; ++executors)
    for (uint32_t home = 0; home < kHomes; ++home) {
      uint64_t all = 0;
      for (uint32_t e = 0; e < executors; ++e) {
        const uint64_t own = ownTasks(everyTask(executors), e, executors, home);
        EXPECT_EQ(all & own, 0u) << e << " of " << executors << ", home " << home;
        all |= own;
      }
      EXPECT_EQ(all, ~0ull) << executors << " executors, home " << home;
    }
}

/// Small collectives, all of which begin with thread block 0, are not all the same executor's.
TEST(OwnTasks, CollectivesOfFewThreadBlocksAreSpreadOverAllExecutors) {
  for (uint32_t executors : {4u, 16u, 32u, 64u}) {
    std::vector<uint32_t> tasks(executors);
    for (uint32_t collective = 0; collective < 96; ++collective)
      for (uint32_t e = 0; e < executors; ++e)
        tasks[e] += static_cast<uint32_t>(std::popcount(
            ownTasks(everyTask(executors), e, executors, homeOf(collective)) & 15)); // 4 blocks
    const auto [least, most] = std::ranges::minmax(tasks);
    EXPECT_EQ(least, most) << executors;
  }
}

TEST(Announcement, SaysWhichInvocationHasCome) {
  EXPECT_FALSE(isAnnounced(0, 0));
  EXPECT_TRUE(isAnnounced(announcement(0, 3, 7), 0));
  EXPECT_FALSE(isAnnounced(announcement(0, 3, 7), 1));
  EXPECT_TRUE(isAnnounced(announcement(5, 0, 7), 1)) << "later ones have come, too";
}

TEST_F(SubmissionSideTest, StartsExecutorsWhenTheyHaveQuitAndNotBefore) {
  ASSERT_EQ(side.submit(someSubmission(0)), 0u);
  EXPECT_EQ(starts, std::vector<uint64_t>{1});
  ASSERT_EQ(side.submit(someSubmission(1)), 1u);
  EXPECT_EQ(starts, std::vector<uint64_t>{1});
  quit(1);
  ASSERT_EQ(side.submit(someSubmission(2)), 2u);
  EXPECT_EQ(starts, (std::vector<uint64_t>{1, 2}));
}

TEST_F(SubmissionSideTest, ExecutorsThatQuitWithSomethingOpenStartAgain) {
  ASSERT_EQ(side.submit(someSubmission(0)), 0u);
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 1u) << "they are there";
  quit(1);
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 2u);
  quit(2);
  complete(0);
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 2u) << "nothing is open";
}

TEST_F(SubmissionSideTest, AFullWindowRefusesUntilItsOldestIsComplete) {
  for (uint32_t i = 0; i < kWindow; ++i)
    ASSERT_EQ(side.submit(someSubmission(i)), i);
  complete(1);
  EXPECT_FALSE(side.submit(someSubmission(kWindow)));
  complete(0);
  EXPECT_EQ(side.submit(someSubmission(kWindow)), kWindow);
  EXPECT_EQ(side.submit(someSubmission(kWindow + 1)), kWindow + 1);
  EXPECT_FALSE(side.submit(someSubmission(kWindow + 2)));
  EXPECT_TRUE(side.isComplete(0));
  EXPECT_TRUE(side.isComplete(1));
  EXPECT_FALSE(side.isComplete(kWindow));
}

TEST_F(SubmissionSideTest, NobodyIsStartedAfterAnAbort) {
  side.abort();
  EXPECT_TRUE(side.isAborted());
  ASSERT_EQ(side.submit(someSubmission(0)), 0u);
  EXPECT_TRUE(starts.empty());
}

TEST_F(SubmissionSideTest, OpenTasksAreThoseOfOpenSubmissions) {
  for (uint32_t i = 0; i < 3; ++i)
    ASSERT_EQ(side.submit(someSubmission(i)), i);
  auto waitsFor = [&](uint64_t request, uint32_t block, uint32_t peer) {
    page->waits[request][block] = {
        {(request + 1) << 32 | 4,
         uint64_t(interpreter::BlockReason::Data) << 56 | uint64_t(peer) << 32 | 9}};
  };
  waitsFor(0, 0, 1);
  waitsFor(2, 5, 3);
  page->waits[1][0].words[0] = 99ull << 32; // of an earlier tenant of the slot
  complete(0);
  std::vector<OpenTask> tasks = side.openTasks();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].request, 2u);
  EXPECT_EQ(tasks[0].block, 5u);
  EXPECT_EQ(tasks[0].instruction, 4u);
  EXPECT_EQ(tasks[0].reason, interpreter::BlockReason::Data);
  EXPECT_EQ(tasks[0].what, 9u);
  EXPECT_EQ(tasks[0].peer, 3u);
}

/// The executor that stays for streams is enough until it moves something.
TEST_F(SubmissionSideTest, ALookoutThatMovesNothingIsLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(submitToALookout());
  EXPECT_TRUE(side.hasLookout());
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 1u);
  page->lookouts[1].moved = 1;
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_TRUE(wasBeside);
  EXPECT_TRUE(side.isStartPending());
  EXPECT_TRUE(side.hasLookout()) << "until others have begun";
  page->begun = 2;
  EXPECT_FALSE(side.hasLookout());
  quit(2);
  page->lookouts[0].stays = 2;
  page->lookouts[0].left = 2;
  EXPECT_FALSE(side.hasLookout());
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 3u);
  EXPECT_FALSE(wasBeside);
}

/// In strict mode, while no stream waits: nobody need stay.
TEST_F(SubmissionSideTest, ALookoutThatNeedNotStayIsDismissed) {
  ASSERT_NO_FATAL_FAILURE(submitToALookout());
  side.restartIfOpen();
  EXPECT_EQ(page->leaveUpTo, 0u);
  side.stayFor(StayFor::Nothing);
  side.restartIfOpen();
  EXPECT_EQ(page->leaveUpTo, 1u);
  EXPECT_EQ(starts.size(), 1u) << "that needs no launch";
  page->lookouts[1].left = 1;
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_FALSE(wasBeside);
}

/// While streams wait they come again at once.
TEST_F(SubmissionSideTest, ExecutorsDoNotStayAwayWhileStreamsWait) {
  SubmissionSide strict(
      *page, [this](uint64_t generation, bool) { starts.push_back(generation); },
      std::chrono::hours(1));
  strict.stayFor(StayFor::Anything);
  Submission streamed = someSubmission(0);
  streamed.isStreamed = true; // and its stream has not come
  ASSERT_EQ(strict.submit(streamed), 0u);
  strict.hold();
  quit(1);
  strict.resume();
  EXPECT_EQ(starts.size(), 2u);
}

/// Somebody needs one just when it has been dismissed.
TEST_F(SubmissionSideTest, ALookoutThatIsDismissedDoesNotCount) {
  ASSERT_NO_FATAL_FAILURE(submitToALookout());
  side.stayFor(StayFor::Nothing);
  side.restartIfOpen();
  side.stayFor(StayFor::Anything);
  EXPECT_TRUE(side.ensureLookout());
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_TRUE(wasBeside) << "it may still be there";
}

/// It had said that it leaves, others were started behind it, and it stays.
TEST_F(SubmissionSideTest, ALookoutThatOthersWaitBehindIsDismissed) {
  ASSERT_NO_FATAL_FAILURE(submitToALookout());
  page->lookouts[1].stays = 0;
  side.startIfQuit();
  EXPECT_EQ(starts.size(), 2u);
  EXPECT_FALSE(wasBeside);
  page->lookouts[1].stays = 1;
  side.restartIfOpen();
  EXPECT_EQ(page->leaveUpTo, 0u);
  side.stayFor(StayFor::Nothing);
  side.restartIfOpen();
  EXPECT_EQ(page->leaveUpTo, 1u);
}

TEST_F(SubmissionSideTest, AnAbortIsNotTakenBack) {
  ASSERT_NO_FATAL_FAILURE(submitToALookout());
  side.abort();
  side.stayFor(StayFor::Nothing);
  side.restartIfOpen();
  side.hold();
  EXPECT_EQ(page->leaveUpTo, kForGood);
}

TEST_F(SubmissionSideTest, SomebodyStaysOrIsStartedForWhatIsOpen) {
  side.ensureLookout();
  EXPECT_TRUE(starts.empty()) << "nothing is open";
  ASSERT_EQ(side.submit(someSubmission(0)), 0u);
  side.ensureLookout();
  EXPECT_EQ(starts.size(), 1u) << "they are there";
  page->begun = 1;
  quit(1);
  side.ensureLookout();
  EXPECT_EQ(starts.size(), 2u);
  page->begun = 2;
  page->lookouts[0].stays = 2;
  quit(2);
  side.ensureLookout();
  EXPECT_EQ(starts.size(), 2u) << "one has stayed";
  side.ensureStarted();
  EXPECT_EQ(starts.size(), 3u) << "for what has been submitted";
}

/// Executors that have left with something open stay away for a while, and as long as no stream has
/// reached anything.
TEST_F(SubmissionSideTest, ExecutorsStayAway) {
  constexpr auto kAway = std::chrono::milliseconds(20);
  SubmissionSide strict(
      *page, [this](uint64_t generation, bool) { starts.push_back(generation); }, kAway);
  strict.stayFor(StayFor::Nothing);
  Submission streamed = someSubmission(0);
  streamed.isStreamed = true;
  ASSERT_EQ(strict.submit(streamed), 0u);
  quit(1);
  const auto begin = std::chrono::steady_clock::now();
  strict.restartIfOpen();
  std::this_thread::sleep_for(2 * kAway);
  strict.restartIfOpen();
  EXPECT_EQ(starts.size(), 1u) << "nothing may begin";
  *strict.gateOf(0) = 1;
  strict.restartIfOpen();
  EXPECT_EQ(starts.size(), 2u);
  quit(2);
  while (starts.size() == 2 && std::chrono::steady_clock::now() < begin + std::chrono::seconds(10))
    strict.restartIfOpen();
  EXPECT_EQ(starts.size(), 3u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 3 * kAway);
  quit(3);
  ASSERT_EQ(strict.submit(someSubmission(1)), 1u);
  EXPECT_EQ(starts.size(), 4u) << "at once for what is submitted";
}

/// Its stream may still come by, and must not be taken for another one's.
TEST_F(SubmissionSideTest, TheSlotOfOneThatWasWithdrawnIsFreeWhenItsStreamHasComeBy) {
  Submission streamed = someSubmission(0);
  streamed.isStreamed = true;
  ASSERT_EQ(side.submit(streamed), 0u);
  for (uint32_t i = 1; i < kWindow; ++i)
    ASSERT_EQ(side.submit(someSubmission(i)), i);
  side.releaseStream(0);
  EXPECT_TRUE(side.isComplete(0));
  *side.gateOf(0) = 1;
  EXPECT_FALSE(side.submit(someSubmission(kWindow))) << "executors may still have it";
  *side.gateOf(0) = 0;
  side.withdraw(0);
  EXPECT_FALSE(side.submit(someSubmission(kWindow)));
  *side.gateOf(0) = 1;
  EXPECT_EQ(side.submit(someSubmission(kWindow)), kWindow);
}

/// While it is held nothing starts, and what was submitted meanwhile starts afterwards.
TEST_F(SubmissionSideTest, NothingStartsWhileItIsHeld) {
  auto first = side.submit(someSubmission(0));
  ASSERT_TRUE(first);
  ASSERT_EQ(starts.size(), 1u);
  side.hold();
  EXPECT_EQ(page->leaveUpTo, 1u) << "the executors that run are to leave";
  quit(1); // they were about to
  auto second = side.submit(someSubmission(1));
  ASSERT_TRUE(second);
  side.restartIfOpen();
  EXPECT_EQ(starts.size(), 1u);
  side.withdraw(*first);
  EXPECT_TRUE(side.isComplete(*first));
  EXPECT_FALSE(side.isComplete(*second));
  EXPECT_EQ(unpack(page->entries[*first].words).numBlocks, 0u);
  EXPECT_TRUE(isOfTurn(page->entries[*first].words[0], *first));
  side.resume();
  EXPECT_EQ(starts, (std::vector<uint64_t>{1, 2}));
}

TEST_F(SubmissionSideTest, AfterAHoldWithNothingOpenTheNextSubmissionStarts) {
  auto first = side.submit(someSubmission(0));
  side.hold();
  complete(*first);
  side.resume();
  EXPECT_EQ(starts.size(), 1u);
  ASSERT_TRUE(side.submit(someSubmission(1)));
  EXPECT_EQ(starts, (std::vector<uint64_t>{1, 2}));
}

} // namespace
