// The host's side with a kernel whose thread blocks are threads.
#include "runtime/cuda/standby.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

constexpr uint32_t kBlocks = 3, kMaxBlocks = 5;

TEST(StandbyWords, MarksOfCallsInARowDifferAndAreNeverZero) {
  for (uint64_t ticket : {0ull, 1ull, 65533ull, 65534ull, 65535ull, 65536ull, 1ull << 40}) {
    EXPECT_NE(bellMark(ticket), 0u);
    EXPECT_NE(bellMark(ticket), bellMark(ticket + 1));
    const uint64_t word = bellWord(bellMark(ticket), 0x7fff'1234'5678);
    EXPECT_EQ(markIn(word), bellMark(ticket));
    EXPECT_EQ(valueIn(word), 0x7fff'1234'5678u);
  }
}

class StandbyBoard : public testing::Test {
protected:
  struct alignas(64) Line {
    uint64_t words[8] = {};
  };
  std::vector<Line> lines = std::vector<Line>(Standby::wordsFor(kMaxBlocks) / 8 + 1);
  Standby standby{lines[0].words, kMaxBlocks};

  bool isRung(uint32_t block, uint64_t ticket) const {
    for (const uint64_t &word : standby.bells()[block].words)
      if (markIn(loadShared(&word, std::memory_order_acquire)) != bellMark(ticket))
        return false;
    return true;
  }
  void answer(const EndWords &ended) {
    for (uint32_t b = 0; b < kBlocks; ++b)
      storeShared(&ended.words[b], ended.ticket, std::memory_order_release);
  }
  void say(uint64_t session, Presence presence) {
    storeShared(standby.presence(), presenceWord(session, presence), std::memory_order_release);
  }
};

TEST_F(StandbyBoard, OnlyAKernelThatHasEndedItsCallIsRung) {
  standby.begin(kBlocks);
  std::array<char *, 2> buffers = {reinterpret_cast<char *>(64), reinterpret_cast<char *>(128)};
  Standby::Call first = standby.call(0, buffers);
  EXPECT_FALSE(first.isTaken) << "nobody is there";
  EXPECT_FALSE(standby.call(1, buffers).isTaken) << "the call before is not over";
  Standby::Call third = standby.call(2, buffers);
  EXPECT_FALSE(third.isTaken);
  EXPECT_EQ(third.ended.ticket, first.ended.ticket + 2);
  answer(third.ended);
  Standby::Call fourth = standby.call(3, buffers);
  EXPECT_TRUE(fourth.isTaken);
  for (uint32_t b = 0; b < kBlocks; ++b) {
    EXPECT_TRUE(isRung(b, fourth.ended.ticket));
    EXPECT_EQ(valueIn(standby.bells()[b].words[0]), 64u);
    EXPECT_EQ(valueIn(standby.bells()[b].words[1]), 128u);
    EXPECT_EQ(valueIn(standby.bells()[b].words[2]), 3u);
  }
  EXPECT_FALSE(isRung(kBlocks, fourth.ended.ticket)) << "of nobody";
}

TEST_F(StandbyBoard, WhoHasLeftIsNotRungNorWhatABellCannotSay) {
  standby.begin(kBlocks);
  Standby::Call first = standby.call(0, {});
  answer(first.ended);
  say(first.ended.ticket, Presence::Gone);
  Standby::Call second = standby.call(1, {});
  EXPECT_FALSE(second.isTaken);
  answer(second.ended);
  EXPECT_FALSE(standby.call(2, {reinterpret_cast<char *>(1ull << 50), nullptr}).isTaken);
  standby.begin(kBlocks);
  EXPECT_FALSE(standby.call(0, {}).isTaken) << "another collective";
}

TEST_F(StandbyBoard, TheOthersAreRungOnlyWhenItIsKnownThatTheKernelStays) {
  for (bool stays : {false, true}) {
    standby.begin(kBlocks);
    Standby::Call first = standby.call(0, {});
    const uint64_t session = first.ended.ticket;
    answer(first.ended);
    say(session, Presence::Leaving);
    std::thread kernel([&] {
      while (!isRung(0, session + 1))
        std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(isRung(1, session + 1));
      say(session, stays ? Presence::There : Presence::Gone);
    });
    EXPECT_EQ(standby.call(1, {}).isTaken, stays);
    kernel.join();
    EXPECT_EQ(isRung(1, session + 1), stays);
  }
}

/// As in_stream_standby.cuh: each call is executed once by each thread block, by the kernel that is
/// there or by the next one, however often kernels leave.
TEST_F(StandbyBoard, EachCallIsExecutedOnceByEach) {
  constexpr uint64_t kCalls = 1000;
  constexpr uint32_t kSeed = 1;
  std::mt19937 random(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  standby.begin(kBlocks);
  std::vector<std::atomic<uint64_t>> executed(kBlocks);
  std::atomic<uint64_t> relay{0}, launches{0};
  std::vector<std::thread> kernel;
  auto block = [&](uint32_t b, EndWords ended, uint32_t patience) {
    const uint64_t session = ended.ticket;
    for (;; ++ended.ticket) {
      ++executed[b];
      storeShared(&ended.words[b], ended.ticket, std::memory_order_release);
      for (uint32_t polls = 0; !isRung(b, ended.ticket + 1); ++polls) {
        if (b != 0 && relay == session)
          return;
        if (b == 0 && polls > patience) {
          say(session, Presence::Leaving);
          threadFence(std::memory_order_seq_cst);
          bool stays = isRung(0, ended.ticket + 1);
          say(session, stays ? Presence::There : Presence::Gone);
          if (!stays)
            relay = session;
          if (!stays)
            return;
        }
        std::this_thread::yield();
      }
    }
  };
  for (uint64_t number = 0; number < kCalls; ++number) {
    for (uint32_t pause = random() % 4; pause != 0; --pause)
      std::this_thread::yield();
    Standby::Call call = standby.call(number, {});
    if (!call.isTaken) {
      for (std::thread &thread : kernel)
        thread.join();
      kernel.clear();
      ++launches;
      for (uint32_t b = 0; b < kBlocks; ++b)
        kernel.emplace_back(block, b, call.ended, random() % 3);
    }
    EndPoll end(call.ended, kBlocks);
    for (auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20); !end.isOver();) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "call " << number;
      std::this_thread::yield();
    }
    for (uint32_t b = 0; b < kBlocks; ++b)
      ASSERT_EQ(executed[b], number + 1);
  }
  for (std::thread &thread : kernel)
    thread.join();
  EXPECT_GT(launches, 1u);
  EXPECT_LT(launches, kCalls) << "some were taken by kernels that were there";
}

} // namespace
} // namespace occl::cuda
