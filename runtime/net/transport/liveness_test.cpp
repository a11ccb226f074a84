// When a machine counts as gone, by what the kernel says of a connection.
#include "runtime/net/transport/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

namespace {

tcp_info said{}; // by the kernel, of any connection

} // namespace

// The linker leads getsockopt() here (--wrap).
extern "C" int __wrap_getsockopt(int, int level, int option, void *value, socklen_t *size) {
  EXPECT_EQ(level, IPPROTO_TCP);
  EXPECT_EQ(option, TCP_INFO);
  std::memcpy(value, &said, std::min<size_t>(*size, sizeof said));
  return 0;
}

namespace occl::net {
namespace {

using namespace std::chrono_literals;

class LivenessTest : public ::testing::Test {
protected:
  void SetUp() override { EXPECT_FALSE(isGone(0, 0, 0)); }

  static constexpr auto kSilence = 20ms;
  static constexpr uint32_t kLongAgo = 100000; // milliseconds, longer than a test takes

  /// Some time after the last look, which is longer than the silence that is allowed.
  bool isGone(uint32_t retransmits, uint32_t probes, uint32_t lastAnswer) {
    std::this_thread::sleep_for(2 * kSilence);
    said = {};
    said.tcpi_retransmits = static_cast<__u8>(retransmits);
    said.tcpi_probes = static_cast<__u8>(probes);
    said.tcpi_last_ack_recv = lastAnswer;
    return liveness.whyGone().has_value();
  }

  Liveness liveness{-1, kSilence};
};

TEST_F(LivenessTest, AMachineThatLeavesTwoQuestionsUnansweredIsGone) {
  EXPECT_FALSE(isGone(0, 0, kLongAgo)); // nothing was asked
  EXPECT_FALSE(isGone(1, 0, kLongAgo));
  EXPECT_TRUE(isGone(2, 0, kLongAgo));
}

TEST_F(LivenessTest, ProbesAreQuestionsToo) {
  EXPECT_FALSE(isGone(0, 1, kLongAgo));
  EXPECT_TRUE(isGone(0, 2, kLongAgo));
}

TEST_F(LivenessTest, OneQuestionWithoutAnAnswerIsNothing) {
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(isGone(1, 0, kLongAgo));
}

/// As of a stopped process whose buffers are full: its kernel answers, and takes nothing, so what
/// was sent to it goes on being repeated.
TEST_F(LivenessTest, AnswersCountThoughRepetitionsGoOn) {
  for (uint32_t number = 1; number < 20; number += 2) {
    EXPECT_FALSE(isGone(number, 0, 0)); // it has answered just now
    EXPECT_FALSE(isGone(number, 0, kLongAgo)) << "that question has its answer";
    EXPECT_FALSE(isGone(number + 1, 0, kLongAgo)) << "one was left unanswered";
  }
}

TEST_F(LivenessTest, AMachineThatAnswersNoMoreIsGone) {
  EXPECT_FALSE(isGone(1, 0, 0));
  EXPECT_FALSE(isGone(2, 0, kLongAgo));
  EXPECT_TRUE(isGone(3, 0, kLongAgo));
}

/// Two questions may go unanswered within a fraction of a second.
TEST(Liveness, AMachineIsSilentOnlyOnceItHasNotAnsweredForASecond) {
  Liveness liveness{-1, 100s};
  said = {};
  liveness.whyGone();
  EXPECT_FALSE(liveness.isSilent());
  const auto begin = SteadyClock::now();
  said.tcpi_last_ack_recv = 100000;
  for (said.tcpi_retransmits = 1; said.tcpi_retransmits <= 3; ++said.tcpi_retransmits)
    liveness.whyGone();
  const bool wasSilent = liveness.isSilent();
  EXPECT_TRUE(!wasSilent || SteadyClock::now() - begin >= 1s);
  std::this_thread::sleep_for(1100ms);
  liveness.whyGone();
  EXPECT_TRUE(liveness.isSilent());
}

} // namespace
} // namespace occl::net
