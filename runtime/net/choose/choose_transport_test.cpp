#include "runtime/net/choose/choose_transport.h"

#include "runtime/net/transport/nccl_net/testing/over_nccl_net.h"
#include "runtime/net/transport/testing/socket_pair.h"

#include <gtest/gtest.h>

#include <chrono>
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
      requests[rank].push_back({peer, rank, peer, std::move(socket), regions});
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

const AllowedTransports kBoth = {"verbs", "tcp"}, kTcp = {"tcp"}, kVerbs = {"verbs"};
/// One of which a context is made for each communicator.
const std::string kPlugin = testPlugin(12);
const AllowedTransports kPluginOrTcp = {kPlugin, "tcp"};

/// What two ranks come to, who must come to the same. "" if they do not.
std::string howTwo(const AllowedTransports &ofFirst, const AllowedTransports &ofSecond) {
  const Ranks ranks({ofFirst, ofSecond});
  std::string how[2];
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(ranks.results[r]->ok()) << ranks.results[r]->status().message();
    if (!ranks.results[r]->ok())
      return "";
    how[r] = (**ranks.results[r])[0].how;
  }
  EXPECT_EQ(how[0], how[1]);
  return how[0];
}

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

TEST(ChooseTransport, SeveralConnections) {
  setenv("OCCL_NSOCKS", "3", 1);
  const Ranks ranks({kTcp, kTcp, kTcp});
  unsetenv("OCCL_NSOCKS");
  for (uint32_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(ranks.results[r]->ok()) << ranks.results[r]->status().message();
    for (const Connected &connected : **ranks.results[r]) {
      EXPECT_EQ(connected.how, "TCP (3 connections)");
      EXPECT_EQ(connected.endpoint->descriptors().size(), 3u);
    }
  }
}

TEST(ChooseTransport, ASettingThatMakesNoSenseIsNamedByBoth) {
  setenv("OCCL_NSOCKS", "many", 1);
  const Ranks ranks({kTcp, kTcp});
  unsetenv("OCCL_NSOCKS");
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_FALSE(ranks.results[r]->ok());
    EXPECT_NE(ranks.results[r]->status().message().find("OCCL_NSOCKS is 'many'"),
              std::string::npos);
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

TEST(ChooseTransport, APluginOfNccl) {
  EXPECT_EQ(howTwo(kPluginOrTcp, kPluginOrTcp),
            "NCCL's network plugin (OCCL's plugin of tests version 12, device sock0)");
}

TEST(ChooseTransport, TheListOfTheLowerRankCounts) {
  EXPECT_EQ(howTwo({"tcp", kPlugin}, kPluginOrTcp), "TCP (as OCCL_NET says)");
  EXPECT_EQ(howTwo(kPluginOrTcp, {"tcp", kPlugin}).substr(0, 6), "NCCL's");
}

TEST(ChooseTransport, ARankWithoutAPluginIsReachedByTheNextTransport) {
  const AllowedTransports noPlugin = {"ncclnet:./libnccl-net-missing.so", "tcp"};
  for (const std::string &how : {howTwo(kPluginOrTcp, noPlugin), howTwo(noPlugin, kPluginOrTcp)}) {
    EXPECT_EQ(how.substr(0, 5), "TCP (") << how;
    EXPECT_NE(how.find("ncclnet: rank "), std::string::npos) << how;
    EXPECT_NE(how.find("libnccl-net-missing.so"), std::string::npos) << how;
  }
  const Ranks ranks({{kPlugin}, {noPlugin.front()}});
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_FALSE(ranks.results[r]->ok());
    EXPECT_NE(ranks.results[r]->status().message().find("libnccl-net-missing.so"),
              std::string::npos);
  }
}

/// Whatever function fails, both take the next, and say which.
TEST(ChooseTransport, APluginThatFailsIsNamedWithItsFunction) {
  for (const std::string function :
       {"init", "devices", "getProperties", "listen", "connect", "accept", "regMr"}) {
    const TestPluginMood mood("fails=" + function);
    const std::string how = howTwo(kPluginOrTcp, kPluginOrTcp);
    EXPECT_EQ(how.substr(0, 5), "TCP (") << how;
    EXPECT_NE(how.find("plugin of tests: " + function + "() has failed with"), std::string::npos)
        << how;
  }
}

TEST(ChooseTransport, APluginWithoutADeviceIsNotUsed) {
  for (const auto &[words, why] : {std::pair("devices=0", "has no device that can be used"),
                                   std::pair("bytes=4000", "moves 4000 bytes at a time")}) {
    const TestPluginMood mood(words);
    const std::string how = howTwo(kPluginOrTcp, kPluginOrTcp);
    EXPECT_EQ(how.substr(0, 5), "TCP (") << how;
    EXPECT_NE(how.find(why), std::string::npos) << how;
  }
}

/// All pairs are tried at a time.
TEST(ChooseTransport, ANetworkThatLosesEverythingIsLeftOnce) {
  const TestPluginMood mood("swallows");
  const auto begin = std::chrono::steady_clock::now();
  const Ranks ranks({kPluginOrTcp, kPluginOrTcp, kPluginOrTcp, kPluginOrTcp});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s);
  for (const auto &result : ranks.results) {
    ASSERT_TRUE(result->ok()) << result->status().message();
    for (const Connected &connected : **result) {
      EXPECT_EQ(connected.how.substr(0, 5), "TCP (");
      EXPECT_NE(connected.how.find("nothing has come over"), std::string::npos) << connected.how;
    }
  }
}

TEST(ChooseTransport, RanksOfAMachineUseItsDevicesInTurn) {
  const TestPluginMood mood("devices=2");
  const Ranks ranks({{kPlugin}, {kPlugin}, {kPlugin}});
  for (uint32_t r = 0; r < 3; ++r) {
    ASSERT_TRUE(ranks.results[r]->ok()) << ranks.results[r]->status().message();
    for (const Connected &connected : **ranks.results[r])
      EXPECT_NE(connected.how.find("device sock" + std::to_string(r % 2)), std::string::npos)
          << connected.how;
  }
}

class Environment : public ::testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    unsetenv("OCCL_NET");
    for (const char *ofNccl : {"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE"})
      unsetenv(ofNccl);
  }
};

TEST_F(Environment, AllowsWhatItNamesInThatOrder) {
  for (const char *text : {"verbs", "tcp", "verbs,tcp", "tcp,verbs", "ncclnet", "ncclnet:ofi",
                           "verbs,ncclnet:/opt/a b/libnccl-net.so,tcp"}) {
    setenv("OCCL_NET", text, 1);
    const auto allowed = transportsOfEnvironment();
    ASSERT_TRUE(allowed.ok()) << text;
    std::string joined;
    for (const std::string &one : *allowed)
      joined += (joined.empty() ? "" : ",") + one;
    EXPECT_EQ(joined, text);
  }
}

TEST_F(Environment, RefusesWhatIsNoList) {
  for (const char *text : {"", "rdma", "tcp,tcp", "ncclnet:a,ncclnet:b", "tcp,", ",tcp", "tcp:1",
                           "verbs tcp", "TCP"}) {
    setenv("OCCL_NET", text, 1);
    const auto wrong = transportsOfEnvironment();
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(wrong.status().code(), StatusCode::InvalidArgument);
    EXPECT_NE(wrong.status().message().find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST_F(Environment, NcclsVariableCountsIfThereIsNone) {
  EXPECT_EQ(*transportsOfEnvironment(), kBoth);
  setenv("NCCL_NET_PLUGIN", "ofi,other", 1);
  EXPECT_EQ(*transportsOfEnvironment(), (AllowedTransports{"ncclnet:ofi", "verbs", "tcp"}));
  for (const char *none : {"none", "None", ""}) {
    setenv("NCCL_NET_PLUGIN", none, 1);
    EXPECT_EQ(*transportsOfEnvironment(), kBoth);
  }
  setenv("NCCL_NET_PLUGIN", "ofi", 1);
  setenv("OCCL_NET", "tcp", 1);
  EXPECT_EQ(*transportsOfEnvironment(), kTcp);
}

TEST_F(Environment, AsNcclsVariablesSay) {
  setenv("NCCL_IB_DISABLE", "1", 1);
  EXPECT_EQ(*transportsOfEnvironment(), kTcp);
  setenv("NCCL_IB_DISABLE", "0", 1);
  EXPECT_EQ(*transportsOfEnvironment(), kBoth);
  setenv("NCCL_NET", "IB", 1);
  EXPECT_EQ(*transportsOfEnvironment(), (AllowedTransports{"verbs"}));
  setenv("NCCL_NET", "socket", 1);
  EXPECT_EQ(*transportsOfEnvironment(), kTcp);
  setenv("NCCL_NET", "AWS Libfabric", 1);
  EXPECT_EQ(*transportsOfEnvironment(), (AllowedTransports{"ncclnet"}));
  setenv("NCCL_NET_PLUGIN", "ofi", 1);
  EXPECT_EQ(*transportsOfEnvironment(), (AllowedTransports{"ncclnet:ofi"}));
  setenv("OCCL_NET", "tcp", 1);
  EXPECT_EQ(*transportsOfEnvironment(), kTcp);
}

TEST_F(Environment, APluginIsNamedByItsEntry) {
  EXPECT_STREQ(ncclNetPluginOf("ncclnet:ofi"), "ofi");
  EXPECT_STREQ(ncclNetPluginOf("ncclnet"), "");
  EXPECT_EQ(ncclNetPluginOf("verbs"), nullptr);
}

} // namespace
} // namespace occl::net
