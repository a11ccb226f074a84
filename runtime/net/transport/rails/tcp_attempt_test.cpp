#include "runtime/net/transport/rails/tcp_attempt.h"

#include "runtime/net/transport/rails/path_failures.h"
#include "runtime/net/transport/testing/side.h"
#include "runtime/net/transport/testing/silent.h"
#include "runtime/net/transport/testing/socket_pair.h"
#include "runtime/sync/deadline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

bool isListener(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof listens;
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

/// All listeners of this process; the test has no others.
void silenceListeners() {
  int found = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor)
    if (isListener(descriptor)) {
      ASSERT_TRUE(makeSilent(descriptor));
      ++found;
    }
  ASSERT_GT(found, 0);
}

Path loopbackPath() { return {loopback(0).host, loopback(0).host, loopback(0).host}; }

/// Two ranks that have met over loopback, step by step, in one thread. What this process remembers
/// is forgotten before and after.
class TcpAttempts : public ::testing::Test {
protected:
  struct End {
    bootstrap::Descriptor socket;
    std::unique_ptr<TransportKind> kind = tcpTransport();
    OfferBytes offer{};
    std::unique_ptr<Attempt> attempt;
    Side side;
    bool isOver = false;
  };

  void SetUp() override {
    PathFailures::ofProcess().remove(loopbackPath());
    setenv("OCCL_NSOCKS", "3", 1);
  }
  void TearDown() override {
    PathFailures::ofProcess().remove(loopbackPath());
    unsetenv("OCCL_NSOCKS");
  }
  void begin() {
    auto [first, second] = socketPair();
    ends[0].socket = std::move(first);
    ends[1].socket = std::move(second);
    for (End &end : ends) {
      const auto offered = end.kind->offer();
      ASSERT_TRUE(offered.ok());
      end.offer = *offered;
    }
    for (uint32_t rank : {0u, 1u}) {
      RankPair pair;
      pair.rank = rank;
      pair.peer = 1 - rank;
      pair.regions = ends[rank].side.regions;
      pair.silence = 30s;
      pair.socket = ends[rank].socket.get();
      auto made = ends[rank].kind->attempt(pair, ends[rank].offer, ends[1 - rank].offer);
      ASSERT_TRUE(made.ok());
      ends[rank].attempt = std::move(*made);
      ends[rank].isOver = false;
    }
  }
  void connect() {
    const AttemptBytes addresses[2] = {ends[0].attempt->address(), ends[1].attempt->address()};
    for (size_t i : {0u, 1u})
      ASSERT_TRUE(ends[i].attempt->connect(addresses[1 - i]).ok());
  }
  /// One step of both trials: whether both are over.
  bool tryOut() {
    for (End &end : ends)
      end.isOver = *end.attempt->tryOut();
    return ends[0].isOver && ends[1].isOver;
  }
  void tryOutFor(std::chrono::milliseconds time) {
    for (const Deadline until(time); !tryOut() && !until.passed();)
      std::this_thread::sleep_for(1ms);
  }
  /// What both say of it.
  std::string settle() {
    const AttemptBytes tried[2] = {ends[0].attempt->tried(), ends[1].attempt->tried()};
    for (size_t i : {0u, 1u})
      ends[i].attempt->settle(tried[1 - i]);
    EXPECT_EQ(ends[0].attempt->text(), ends[1].attempt->text());
    return ends[0].attempt->text();
  }

  End ends[2];
};

constexpr const char *kAll = "3 connections",
                     *kFailed = "as ranks have met; not all connections came about",
                     *kLeftOut =
                         "as ranks have met; not tried, as nothing has come that way lately";

TEST_F(TcpAttempts, AllThatWorkAreUsed) {
  begin();
  connect();
  tryOutFor(10s);
  EXPECT_EQ(settle(), kAll);
  EXPECT_FALSE(PathFailures::ofProcess().hasFailed(loopbackPath()));
}

/// The first step of a second one's trial is its last, on both sides, and they agree.
TEST_F(TcpAttempts, WhereNothingCameASecondOneDoesNotTry) {
  begin();
  silenceListeners();
  connect();
  tryOutFor(1800ms);
  EXPECT_FALSE(ends[0].isOver || ends[1].isOver);
  EXPECT_EQ(settle(), kFailed);
  begin();
  connect();
  EXPECT_TRUE(tryOut());
  EXPECT_EQ(settle(), kLeftOut);
  for (End &end : ends)
    EXPECT_EQ(end.attempt->finish(std::move(end.socket))->descriptors().size(), 1u);
  PathFailures::ofProcess().remove(loopbackPath());
  begin();
  connect();
  tryOutFor(10s);
  EXPECT_EQ(settle(), kAll);
}

TEST_F(TcpAttempts, ATrialThatIsCutShortIsNotRemembered) {
  begin();
  silenceListeners();
  connect();
  tryOutFor(500ms);
  EXPECT_EQ(settle(), kFailed);
  EXPECT_FALSE(PathFailures::ofProcess().hasFailed(loopbackPath()));
}

/// The kernel there answers; its process is late.
TEST_F(TcpAttempts, APeerThatOnlyIsSlowIsNotRemembered) {
  begin();
  connect();
  for (const Deadline until(1800ms); !until.passed(); std::this_thread::sleep_for(1ms))
    EXPECT_FALSE(*ends[0].attempt->tryOut());
  EXPECT_EQ(settle(), kFailed);
  EXPECT_FALSE(PathFailures::ofProcess().hasFailed(loopbackPath()));
}

/// It was so in the meantime, for another communicator.
TEST_F(TcpAttempts, OneThatWorksIsForgottenAsAFailure) {
  begin();
  PathFailures::ofProcess().addFailure(loopbackPath());
  connect();
  tryOutFor(10s);
  EXPECT_EQ(settle(), kAll);
  EXPECT_FALSE(PathFailures::ofProcess().hasFailed(loopbackPath()));
}

/// The higher rank's memory does not count: here it is that of the same process, after the lower
/// rank has said what it leaves out.
TEST_F(TcpAttempts, PathsThatTheLowerRankLeavesOutAreLeftOut) {
  PathFailures::ofProcess().addFailure(loopbackPath());
  begin();
  PathFailures::ofProcess().remove(loopbackPath());
  connect();
  EXPECT_TRUE(tryOut());
  EXPECT_EQ(settle(), kLeftOut);
}

TEST_F(TcpAttempts, AnAddressThatMakesNoSenseIsAnErrorOfBoth) {
  for (size_t i : {0u, 1u}) {
    begin();
    AttemptBytes address = ends[1 - i].attempt->address();
    address[0] = std::byte{0xff}; // the number of pairs
    EXPECT_EQ(ends[i].attempt->connect(address).code(), StatusCode::Mismatch);
  }
}

} // namespace
} // namespace occl::net
