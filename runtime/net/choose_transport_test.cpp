#include "runtime/net/choose_transport.h"

#include "runtime/net/transport/testing/socket_pair.h"

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

/// As many ranks as there are in `allowed`, each on a machine of its own, and what each comes to.
struct Ranks {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::optional<StatusOr<std::vector<Connected>>>> results;

  explicit Ranks(const std::vector<AllowedTransports> &allowed)
      : memory(allowed.size(), std::vector<std::byte>(4096)), results(allowed.size()) {
    std::vector<std::vector<ConnectRequest>> requests(allowed.size());
    const auto add = [&](uint32_t rank, uint32_t peer, Descriptor socket) {
      Regions regions;
      regions[0] = memory[rank];
      requests[rank].push_back({peer, 0, 0, std::move(socket), regions});
    };
    for (uint32_t a = 0; a < allowed.size(); ++a)
      for (uint32_t b = a + 1; b < allowed.size(); ++b) {
        auto [ofA, ofB] = socketPair();
        add(a, b, std::move(ofA));
        add(b, a, std::move(ofB));
      }
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < allowed.size(); ++r)
      threads.emplace_back([&, r] {
        results[r].emplace(
            connectEndpoints(r, std::move(requests[r]), 30s, allowed[r], Deadline(20s)));
      });
    for (std::thread &thread : threads)
      thread.join();
  }
};

constexpr AllowedTransports kBoth = {true, true}, kTcp = {false, true}, kVerbs = {true, false};

TEST(ChooseTransport, TcpToWhoeverMayNotUseRdma) {
  const Ranks ranks({kBoth, kTcp, kBoth, kTcp});
  for (uint32_t r = 0; r < 4; ++r) {
    ASSERT_TRUE(ranks.results[r]->ok()) << ranks.results[r]->status().message();
    const std::vector<Connected> &connected = **ranks.results[r];
    ASSERT_EQ(connected.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const uint32_t peer = static_cast<uint32_t>(i) + (i >= r);
      if (r % 2 == 1 || peer % 2 == 1) {
        EXPECT_EQ(connected[i].how.substr(0, 4), "TCP ") << connected[i].how;
      }
    }
  }
}

TEST(ChooseTransport, NothingInCommonIsAnErrorOfBothThatNamesBoth) {
  const Ranks ranks({kVerbs, kTcp});
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_FALSE(ranks.results[r]->ok());
    const std::string &text = ranks.results[r]->status().message();
    EXPECT_NE(text.find("rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find("OCCL_NET"), std::string::npos) << text;
  }
}

TEST(ChooseTransport, APeerThatGoesIsAnErrorThatNamesIt) {
  auto sockets = socketPair();
  sockets.second = Descriptor();
  std::vector<ConnectRequest> requests;
  requests.push_back({7, 0, 0, std::move(sockets.first), {}});
  const auto connected = connectEndpoints(0, std::move(requests), 30s, kBoth, Deadline(20s));
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.status().code(), StatusCode::PeerFailed);
  EXPECT_NE(connected.status().message().find("rank 7"), std::string::npos);
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
