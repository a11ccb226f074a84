// Users who may lock little memory. This process itself never opens a device: each test does all in
// children. For `make verbs`.
#include "runtime/net/transport/testing/traffic.h"
#include "runtime/net/transport/verbs/testing/over_verbs.h"
#include "runtime/net/transport/verbs/verbs_endpoint.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::net {
namespace {

constexpr uint64_t kWithoutExtents = 4 << 20; // what two ends need
constexpr uint64_t kTooLittle = 64 << 10;

int statusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

/// Exits with what the body returns: 0 if all is well.
pid_t startAsUserWhoMayLock(uint64_t bytes, const std::function<int()> &body) {
  const pid_t child = fork();
  if (child != 0)
    return child;
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
    _exit(100);
  _exit(body());
}

class LockedMemory : public ::testing::Test {
protected:
  void SetUp() override {
    if (!std::getenv("OCCL_REQUIRE_VERBS"))
      GTEST_SKIP() << "this is for make verbs";
  }
};

TEST_F(LockedMemory, MemoryThatCannotBeRegisteredGoesInFrames) {
  const pid_t child = startAsUserWhoMayLock(kWithoutExtents, [] {
    Side a, b;
    overVerbs(a, b);
    if (!a.endpoint || !b.endpoint)
      return 2;
    converse(a, b, 300);
    const auto &endpoint = static_cast<const VerbsEndpoint &>(*a.endpoint);
    return HasFailure() || endpoint.bytesWritten() != 0 ? 1 : 0;
  });
  EXPECT_EQ(statusOf(child), 0);
}

TEST_F(LockedMemory, TooLittleIsAnErrorThatSaysSo) {
  const pid_t child = startAsUserWhoMayLock(kTooLittle, [] {
    const auto made = VerbsEndpoint::make(rdmaPorts().ports.front(), {}, kVerbsSilence);
    return made.ok() || made.status().message().find("ulimit -l") == std::string::npos ? 1 : 0;
  });
  EXPECT_EQ(statusOf(child), 0);
}

/// A step that fails on one side alone: both take TCP, and know why.
TEST_F(LockedMemory, TooLittleOnOneSideIsTcpOnBoth) {
  auto sockets = socketPair();
  const auto isTcp = [](const StatusOr<Connected> &connected) {
    return connected.ok() && connected->how.starts_with("TCP (verbs: rank 1: ") &&
           connected->how.find("ulimit -l") != std::string::npos;
  };
  const pid_t first = fork();
  if (first == 0) {
    Side side;
    _exit(!isTcp(connectSide(std::move(sockets.first), side, 0, {"verbs", "tcp"})));
  }
  const pid_t second = startAsUserWhoMayLock(kTooLittle, [&] {
    Side side;
    return isTcp(connectSide(std::move(sockets.second), side, 1, {"verbs", "tcp"})) ? 0 : 1;
  });
  EXPECT_EQ(statusOf(first), 0);
  EXPECT_EQ(statusOf(second), 0);
}

} // namespace
} // namespace occl::net
