// What becomes of endpoints over a network plugin when processes end, stop and fork. This process
// loads no plugin: whoever was made by fork() after that may not use one, so each rank is a child.
#include "runtime/control/shm/mapping.h"
#include "runtime/net/transport/nccl_net/plugin.h"
#include "runtime/net/transport/nccl_net/testing/over_nccl_net.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// Its status is 0 if nothing was wrong.
pid_t start(const std::function<void()> &body) {
  const pid_t child = fork();
  if (child != 0)
    return child;
  body();
  std::fflush(nullptr);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

int statusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

std::span<const std::byte> bytesOf(const std::string &text) {
  return std::as_bytes(std::span(text));
}

/// Two ranks, each in a process that has the other's socket closed.
class NcclNetProcesses : public ::testing::TestWithParam<int> {
protected:
  pid_t startRank(uint32_t rank, const std::function<void(Side &)> &body) {
    return start([&] {
      (rank == 0 ? sockets.second : sockets.first) = Descriptor();
      Side side;
      auto connected = connectSide(std::move(rank == 0 ? sockets.first : sockets.second), side,
                                   rank, {testPlugin(GetParam())});
      ASSERT_TRUE(connected.ok()) << connected.status().message();
      side.endpoint = std::move(connected->endpoint);
      body(side);
    });
  }
  void TearDown() override {
    close(toChildren[0]);
    close(toChildren[1]);
  }
  /// Until end() of whoever has that.
  void awaitEnd() {
    char byte = 0;
    (void)!read(toChildren[0], &byte, 1);
  }
  void end() { (void)!write(toChildren[1], "xx", 2); }

  std::pair<Descriptor, Descriptor> sockets = socketPair();
  int toChildren[2] = {-1, -1};
  NcclNetProcesses() { EXPECT_EQ(pipe(toChildren), 0); }
};

TEST_P(NcclNetProcesses, AKilledProcessIsNoticed) {
  const pid_t killed = startRank(1, [](Side &side) {
    side.endpoint->send(bytesOf("last"));
    while (!(side.endpoint->flush() && side.endpoint->isDelivered()))
      side.poll();
    kill(getpid(), SIGKILL);
  });
  const pid_t other = startRank(0, [](Side &side) {
    EXPECT_TRUE(side.await([&] { return side.endpoint->isDown(); }));
    EXPECT_EQ(side.endpoint->whyDown(), "closed by the peer");
    EXPECT_EQ(side.messages, std::vector<std::string>{"last"});
    EXPECT_EQ(side.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1}), Posted::Down);
  });
  sockets = {};
  EXPECT_EQ(statusOf(killed), 100 + SIGKILL);
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_EQ(statusOf(other), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - ended, kNcclNetSilence);
}

/// It holds up whoever sends to it, and is not taken for dead.
TEST_P(NcclNetProcesses, AStoppedProcessGoesOn) {
  const pid_t stopped = startRank(1, [](Side &side) {
    EXPECT_TRUE(side.await([&] {
      side.poll();
      return !side.messages.empty() && side.messages.back() == "end";
    }));
    EXPECT_EQ(side.word(1, 8), side.word(1, 16));
  });
  const pid_t other = startRank(0, [&](Side &side) {
    kill(stopped, SIGSTOP);
    std::vector<std::byte> bytes(kMaxPut);
    uint64_t taken = 0;
    const auto put = [&] {
      const Posted posted = side.endpoint->put({.region = 1,
                                                .offset = 64,
                                                .bytes = bytes,
                                                .hasWord = true,
                                                .wordOffset = 8,
                                                .word = taken + 1});
      taken += posted == Posted::Yes;
      side.poll();
      return posted;
    };
    for (auto since = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - since < 500ms;)
      if (put() == Posted::Yes)
        since = std::chrono::steady_clock::now();
    side.endpoint->checkPeer();
    EXPECT_EQ(put(), Posted::Full);
    EXPECT_FALSE(side.endpoint->isDown()) << side.endpoint->whyDown();
    EXPECT_FALSE(side.endpoint->isDelivered());
    kill(stopped, SIGCONT);
    const auto post = [&](auto &&what) {
      bool isTaken = false; // once
      EXPECT_TRUE(side.await([&] {
        isTaken = isTaken || what() == Posted::Yes;
        side.poll();
        return isTaken;
      }));
    };
    post([&] {
      return side.endpoint->put({.region = 1, .hasWord = true, .wordOffset = 16, .word = taken});
    });
    post([&] { return side.endpoint->send(bytesOf("end")); });
    EXPECT_TRUE(side.await([&] {
      side.poll();
      return side.endpoint->isDelivered();
    }));
  });
  sockets = {};
  EXPECT_EQ(statusOf(other), 0);
  EXPECT_EQ(statusOf(stopped), 0);
}

/// A child made by fork() has copies of all descriptors, also those of the plugin, and lives on
/// when its parent is killed.
TEST_P(NcclNetProcesses, AChildThatLivesOnHidesNoEnd) {
  const pid_t killed = startRank(1, [&](Side &) {
    if (fork() != 0)
      kill(getpid(), SIGKILL);
    awaitEnd();
  });
  const pid_t other = startRank(
      0, [](Side &side) { EXPECT_TRUE(side.await([&] { return side.endpoint->isDown(); })); });
  sockets = {};
  EXPECT_EQ(statusOf(killed), 100 + SIGKILL);
  EXPECT_EQ(statusOf(other), 0);
  end();
}

/// Its copy of an endpoint does nothing, and the parent's goes on.
TEST_P(NcclNetProcesses, AForkedChildCallsNothingOfThePlugin) {
  const pid_t other = startRank(1, [](Side &side) {
    EXPECT_TRUE(side.await([&] {
      side.poll();
      return side.word(0, 8) == 2;
    }));
    EXPECT_EQ(side.word(0, 16), 0u);
  });
  const pid_t forking = startRank(0, [&](Side &side) {
    EXPECT_EQ(side.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1}), Posted::Yes);
    side.poll();
    const pid_t child = start([&] {
      EXPECT_TRUE(side.endpoint->isDown());
      EXPECT_NE(side.endpoint->whyDown().find("fork()"), std::string::npos);
      EXPECT_EQ(side.endpoint->put({.hasWord = true, .wordOffset = 16, .word = 9}), Posted::Down);
      EXPECT_TRUE(side.endpoint->flush());
      EXPECT_TRUE(side.endpoint->isDelivered());
      EXPECT_FALSE(side.endpoint->receive(side));
      side.endpoint->checkPeer();
      // The endpoint's memory is not in the child, so something else may be at its addresses.
      std::vector<bootstrap::Mapping> others;
      for (int i = 0; i < 256; ++i)
        others.push_back(std::move(*bootstrap::Mapping::anonymous(16 << 10)));
      side.endpoint.reset();
      for (bootstrap::Mapping &other : others)
        other.get()[0] = std::byte{1};
      const auto loaded = loadNcclNet(ncclNetPluginOf(testPlugin(GetParam())));
      ASSERT_FALSE(loaded.ok());
      EXPECT_NE(loaded.status().message().find("fork()"), std::string::npos);
    });
    EXPECT_EQ(statusOf(child), 0);
    EXPECT_EQ(side.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 2}), Posted::Yes);
    EXPECT_TRUE(side.await([&] {
      side.poll();
      return side.endpoint->isDelivered();
    }));
  });
  sockets = {};
  EXPECT_EQ(statusOf(forking), 0);
  EXPECT_EQ(statusOf(other), 0);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclNetProcesses, ::testing::Values(8, 10, 12));

/// Before version 11 a plugin is initialized once a process.
TEST(NcclNetInit, OnceAProcessBeforeContexts) {
  for (const auto &[version, expected] : {std::pair(8, 1), {9, 1}, {10, 1}, {11, 3}, {12, 3}}) {
    const pid_t child = start([version = version, expected = expected] {
      setenv("OCCL_DEBUG", "info", 1);
      ::testing::internal::CaptureStderr();
      const auto plugin = loadNcclNet(ncclNetPluginOf(testPlugin(version)));
      ASSERT_TRUE(plugin.ok()) << plugin.status().message();
      for (int i = 0; i < 3; ++i) {
        void *context = nullptr;
        EXPECT_EQ((*plugin)->init(&context), nccl::kSuccess);
        EXPECT_EQ(context != nullptr, version >= 11);
        EXPECT_EQ((*plugin)->finalize(context), nccl::kSuccess);
      }
      const std::string said = ::testing::internal::GetCapturedStderr();
      int count = 0;
      for (size_t at = said.find("is initialized"); at != std::string::npos;
           at = said.find("is initialized", at + 1))
        ++count;
      EXPECT_EQ(count, expected) << said;
    });
    EXPECT_EQ(statusOf(child), 0) << version;
  }
}

/// A plugin logs, and is heard where OCCL_DEBUG says so.
TEST(NcclNetInit, LogsOfThePluginAreShownIfAskedFor) {
  for (const char *debug : {"info", "warn", ""}) {
    const pid_t child = start([debug] {
      setenv("OCCL_DEBUG", debug, 1);
      ::testing::internal::CaptureStderr();
      const auto plugin = loadNcclNet(ncclNetPluginOf(testPlugin(12)));
      void *context = nullptr;
      EXPECT_EQ((*plugin)->init(&context), nccl::kSuccess);
      (*plugin)->finalize(context);
      const std::string said = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(said.find("occl: network plugin: ") == 0, std::string(debug) == "info") << said;
      EXPECT_EQ(said.empty(), std::string(debug) != "info") << said;
    });
    EXPECT_EQ(statusOf(child), 0);
  }
}

} // namespace
} // namespace occl::net
