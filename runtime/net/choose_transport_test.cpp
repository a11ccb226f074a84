#include "runtime/net/choose_transport.h"

#include "runtime/net/rendezvous/socket.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// Two ranks, and what each comes to.
struct Two {
  std::vector<std::byte> memory[2] = {std::vector<std::byte>(4096), std::vector<std::byte>(4096)};
  std::optional<StatusOr<Connected>> results[2];

  Two(AllowedTransports first, AllowedTransports second) {
    auto listener = listenOn(loopback(0));
    const Deadline deadline(20s);
    Descriptor sockets[2];
    sockets[0] = std::move(*connectTo(std::vector{*addressOf(*listener)}, deadline));
    sockets[1] = std::move(*acceptFrom(*listener, deadline));
    std::vector<std::thread> ranks;
    for (uint32_t r = 0; r < 2; ++r)
      ranks.emplace_back([&, r] {
        Regions regions;
        regions[0] = memory[r];
        results[r].emplace(connectEndpoint(
            std::move(sockets[r]), {r, 1 - r, regions, 30s, r == 0 ? first : second}, deadline));
      });
    for (std::thread &rank : ranks)
      rank.join();
  }
  const StatusOr<Connected> &of(uint32_t rank) const { return *results[rank]; }
};

TEST(ChooseTransport, TcpIfOneRankMayNotUseRdma) {
  const Two two({true, true}, {false, true});
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_TRUE(two.of(r).ok()) << two.of(r).status().message();
    EXPECT_EQ(two.of(r)->how.substr(0, 4), "TCP ") << two.of(r)->how;
  }
}

TEST(ChooseTransport, NothingInCommonIsAnErrorOfBothThatNamesBoth) {
  const Two two({true, false}, {false, true});
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_FALSE(two.of(r).ok());
    const std::string &text = two.of(r).status().message();
    EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("OCCL_NET"), std::string::npos) << text;
  }
}

TEST(ChooseTransport, APeerThatGoesIsAnErrorNotAnotherTransport) {
  auto listener = listenOn(loopback(0));
  const Deadline deadline(20s);
  auto here = connectTo(std::vector{*addressOf(*listener)}, deadline);
  { auto there = acceptFrom(*listener, deadline); }
  const auto connected = connectEndpoint(std::move(*here), {0, 1, {}, 30s, {}}, deadline);
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.status().code(), StatusCode::PeerFailed);
}

TEST(ChooseTransport, TheEnvironmentAllowsWhatItNames) {
  const auto allowed = [](const char *text) {
    setenv("OCCL_NET", text, 1);
    return transportsOfEnvironment();
  };
  EXPECT_TRUE(allowed("verbs")->verbs);
  EXPECT_FALSE(allowed("verbs")->tcp);
  EXPECT_FALSE(allowed("tcp")->verbs);
  EXPECT_TRUE(allowed("verbs,tcp")->tcp);
  const auto wrong = allowed("rdma");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), StatusCode::InvalidArgument);
  EXPECT_NE(wrong.status().message().find("'rdma'"), std::string::npos);
  unsetenv("OCCL_NET");
  EXPECT_TRUE(transportsOfEnvironment()->verbs && transportsOfEnvironment()->tcp);
}

} // namespace
} // namespace occl::net
