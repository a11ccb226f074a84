#include "runtime/net/transport/rails/pairs.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace occl::net {
namespace {

Address addressAt(const std::string &host) {
  Address address;
  if (host.find(':') != std::string::npos) {
    inet_pton(AF_INET6, host.c_str(), address.host.data());
    return address;
  }
  address.host[10] = address.host[11] = 0xff;
  inet_pton(AF_INET, host.c_str(), address.host.data() + 12);
  return address;
}

OfferedAddress at(const std::string &name, const std::string &host, unsigned bits,
                  uint32_t speed = 5000) {
  OfferedAddress address;
  name.copy(address.interface.data(), address.interface.size() - 1);
  address.host = addressAt(host).host;
  address.prefixBits = static_cast<uint8_t>(bits + (address.isIpv4() ? 96 : 0));
  address.speed = speed;
  return address;
}

TcpOffer offerOf(const std::vector<OfferedAddress> &addresses, bool isNamed = false,
                 uint32_t connections = 1) {
  TcpOffer offer;
  offer.isNamed = offer.isRestricted = isNamed;
  offer.connections = connections;
  for (const OfferedAddress &address : addresses)
    offer.addresses[offer.count++] = address;
  return offer;
}

/// "met eth1-ens1": names at both sides.
std::string textOf(const RailPairs &pairs, const TcpOffer &a, const TcpOffer &b) {
  std::string text;
  for (uint32_t i = 0; i < pairs.count; ++i) {
    const RailPair &pair = pairs.pairs[i];
    text += (i == 0 ? "" : " ") + (pair.isAsMet != 0 ? "met"
                                                     : a.addresses[pair.ofFirst].name() + "-" +
                                                           b.addresses[pair.ofSecond].name());
  }
  return text;
}

std::string pairsOf(const TcpOffer &a, const TcpOffer &b, const std::string &metA = "10.0.0.1",
                    const std::string &metB = "10.0.0.2") {
  const RailPairs pairs = pairRails(a, b, addressAt(metA), addressAt(metB));
  EXPECT_TRUE(fits(pairs, a, b));
  return textOf(pairs, a, b);
}

const OfferedAddress kA0 = at("eth0", "10.0.0.1", 24), kA1 = at("eth1", "10.0.1.1", 24),
                     kA2 = at("eth2", "fd01::1", 64), kB0 = at("ens0", "10.0.0.2", 24),
                     kB1 = at("ens1", "10.0.1.2", 24), kB2 = at("ens2", "fd01::2", 64);

TEST(RailPairs, OneInterfaceIsTheConnectionByWhichRanksHaveMet) {
  EXPECT_EQ(pairsOf(offerOf({kA0}), offerOf({kB0})), "met");
  EXPECT_EQ(pairsOf(offerOf({}), offerOf({})), "met");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB0})), "met");
}

TEST(RailPairs, InterfacesOfOneSubnetMakeAPair) {
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB0, kB1})), "met eth1-ens1");
  EXPECT_EQ(pairsOf(offerOf({kA1, kA0}), offerOf({kB0, kB1})), "met eth1-ens1");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB0, at("x", "10.0.2.2", 24)})), "met");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB0, at("x", "10.0.1.2", 25)})), "met");
  EXPECT_EQ(pairsOf(offerOf({kA0, at("p", "10.9.0.0", 31)}),
                    offerOf({kB0, at("q", "10.9.0.1", 31), at("r", "10.9.0.2", 31)})),
            "met p-q");
}

TEST(RailPairs, AnInterfaceOfIpv6Alone) {
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1, kA2}), offerOf({kB0, kB1, kB2})), "met eth1-ens1 eth2-ens2");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA2}), offerOf({kB0, kB2})), "met eth2-ens2");
  // Which have met by IPv6, and whose other interface has both.
  EXPECT_EQ(pairsOf(offerOf({kA1, kA2}), offerOf({kB1, kB2}), "fd01::1", "fd01::2"),
            "met eth1-ens1");
}

TEST(RailPairs, AnInterfaceWithSeveralAddressesIsOneRail) {
  EXPECT_EQ(
      pairsOf(offerOf({kA0, at("eth0", "fd02::1", 64)}), offerOf({kB0, at("ens0", "fd02::2", 64)})),
      "met");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1, at("eth1", "fd02::1", 64)}),
                    offerOf({kB0, kB1, at("ens1", "fd02::2", 64)})),
            "met eth1-ens1");
}

/// The system sends by one of them.
TEST(RailPairs, TwoInterfacesOfOneSubnetAreOneRail) {
  EXPECT_EQ(pairsOf(offerOf({kA0, at("eth1", "10.0.0.11", 24)}),
                    offerOf({kB0, at("ens1", "10.0.0.12", 24)})),
            "met");
}

/// As of bridges that each machine has.
TEST(RailPairs, AnAddressThatBothHaveIsNoRail) {
  EXPECT_EQ(pairsOf(offerOf({kA0, at("virbr0", "192.168.122.1", 24)}),
                    offerOf({kB0, at("virbr0", "192.168.122.1", 24)})),
            "met");
}

TEST(RailPairs, InterfacesOfAnotherSpeedCountOnlyIfTheyAreNamed) {
  const OfferedAddress slow = at("eth1", "10.0.1.1", 24, 1000);
  EXPECT_EQ(pairsOf(offerOf({kA0, slow}), offerOf({kB0, kB1})), "met");
  EXPECT_EQ(pairsOf(offerOf({kB0, kB1}), offerOf({kA0, slow}), "10.0.0.2", "10.0.0.1"), "met");
  EXPECT_EQ(pairsOf(offerOf({kA0, slow}, true), offerOf({kB0, kB1})), "met eth1-ens1");
  // Whose speed the system does not tell may be anything.
  EXPECT_EQ(pairsOf(offerOf({at("eth0", "10.0.0.1", 24, 0), at("eth1", "10.0.1.1", 24, 0)}),
                    offerOf({kB0, kB1})),
            "met");
  // Translated addresses: nothing is known of the one by which they have met.
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB0, kB1}), "10.0.0.1", "8.8.8.8"), "met");
}

/// Two threads do not fill more.
TEST(RailPairs, AFastInterfaceIsEnough) {
  for (const bool isNamed : {false, true}) {
    const OfferedAddress a0 = at("eth0", "10.0.0.1", 24, 100'000),
                         a1 = at("eth1", "10.0.1.1", 24, 100'000);
    EXPECT_EQ(pairsOf(offerOf({a0, a1}, isNamed), offerOf({kB0, kB1})),
              isNamed ? "met eth1-ens1" : "met");
  }
  const std::vector<OfferedAddress> three = {at("eth0", "10.0.0.1", 24, 10'000),
                                             at("eth1", "10.0.1.1", 24, 10'000),
                                             at("eth2", "fd01::1", 64, 10'000)};
  EXPECT_EQ(pairsOf(offerOf(three), offerOf({kB0, kB1, kB2})), "met eth1-ens1");
}

/// What is left out names no other.
TEST(RailPairs, InterfacesThatAreLeftOut) {
  TcpOffer a = offerOf({kA0, at("eth1", "10.0.1.1", 24, 1000)});
  a.isRestricted = 1;
  EXPECT_EQ(pairsOf(a, offerOf({kB0, kB1})), "met");
  TcpOffer without = offerOf({kA1, kA2});
  without.isRestricted = 1;
  EXPECT_EQ(pairsOf(without, offerOf({kB0, kB1, kB2})), "eth1-ens1");
}

TEST(RailPairs, NamesThatLeaveOutTheInterfaceByWhichRanksHaveMet) {
  EXPECT_EQ(pairsOf(offerOf({kA1}, true), offerOf({kB0, kB1})), "eth1-ens1");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}), offerOf({kB1}, true)), "eth1-ens1");
  EXPECT_EQ(pairsOf(offerOf({kA1}, true), offerOf({kB0})), "met") << "no other works";
}

TEST(RailPairs, SeveralConnectionsOfEachInTurn) {
  EXPECT_EQ(pairsOf(offerOf({}, false, 3), offerOf({}, false, 2)), "met met");
  EXPECT_EQ(pairsOf(offerOf({kA0, kA1}, false, 2), offerOf({kB0, kB1}, false, 8)),
            "met eth1-ens1 met eth1-ens1");
  const RailPairs most = pairRails(offerOf({kA0, kA1}, false, 8), offerOf({kB0, kB1}, false, 8),
                                   addressAt("10.0.0.1"), addressAt("10.0.0.2"));
  EXPECT_EQ(most.count, kMostRails);
}

TEST(RailPairs, FourInterfacesAtMost) {
  std::vector<OfferedAddress> a, b;
  for (int i = 0; i < 6; ++i) {
    const std::string net = "10.0." + std::to_string(i);
    a.push_back(at("eth" + std::to_string(i), net + ".1", 24));
    b.push_back(at("eth" + std::to_string(i), net + ".2", 24));
  }
  EXPECT_EQ(pairsOf(offerOf(a), offerOf(b)), "met eth1-eth1 eth2-eth2 eth3-eth3");
}

TEST(RailPairs, DataOfAnotherProcessAreChecked) {
  const TcpOffer a = offerOf({kA0}), b = offerOf({kB0});
  TcpOffer tooMany;
  tooMany.count = TcpOffer::kMost + 1;
  EXPECT_FALSE(isOffer(tooMany));
  EXPECT_TRUE(isOffer(a));
  RailPairs pairs;
  EXPECT_FALSE(fits(pairs, a, b));
  pairs.count = kMostRails + 1;
  EXPECT_FALSE(fits(pairs, a, b));
  pairs.count = 1;
  pairs.pairs[0] = {0, 0, 0};
  EXPECT_TRUE(fits(pairs, a, b));
  for (const RailPair wrong : {RailPair{1, 0, 0},
                               {0, 1, 0},
                               {RailPair::kUnknown, 0, 0},
                               {0, RailPair::kUnknown, 0},
                               {0, 0, 2},
                               {7, 0, 1}}) {
    pairs.pairs[0] = wrong;
    EXPECT_FALSE(fits(pairs, a, b));
  }
  // A prefix that is longer than an address is none.
  OfferedAddress wrong = kA0, other = kB0;
  wrong.prefixBits = other.prefixBits = 255;
  EXPECT_FALSE(wrong.reaches(other));
}

class Environment : public ::testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char *variable : {"OCCL_NSOCKS", "NCCL_NSOCKS_PERTHREAD", "NCCL_SOCKET_NTHREADS",
                                 "OCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY"})
      unsetenv(variable);
  }
};

TEST_F(Environment, Connections) {
  EXPECT_EQ(tcpOffer()->connections, 1u);
  setenv("NCCL_SOCKET_NTHREADS", "2", 1);
  EXPECT_EQ(tcpOffer()->connections, 2u);
  setenv("NCCL_NSOCKS_PERTHREAD", "3", 1);
  EXPECT_EQ(tcpOffer()->connections, 6u);
  setenv("NCCL_NSOCKS_PERTHREAD", "8", 1);
  EXPECT_EQ(tcpOffer()->connections, kMostRails);
  setenv("OCCL_NSOCKS", "2", 1);
  EXPECT_EQ(tcpOffer()->connections, 2u);
  for (const char *wrong : {"0", "9", "two", "", "-1"}) {
    setenv("OCCL_NSOCKS", wrong, 1);
    const auto offer = tcpOffer();
    ASSERT_FALSE(offer.ok()) << wrong;
    EXPECT_NE(offer.status().message().find("OCCL_NSOCKS is '" + std::string(wrong) + "'"),
              std::string::npos);
  }
}

TEST_F(Environment, NamesOfInterfaces) {
  const auto hasLoopback = [] {
    const auto offer = tcpOffer();
    for (uint32_t i = 0; i < offer->count; ++i)
      if (offer->addresses[i].name() == "lo")
        return true;
    return false;
  };
  EXPECT_FALSE(hasLoopback());
  EXPECT_EQ(tcpOffer()->isNamed, 0u);
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  EXPECT_TRUE(hasLoopback());
  EXPECT_EQ(tcpOffer()->isNamed, 1u);
  EXPECT_EQ(tcpOffer()->addresses[0].prefixBits, 96 + 8);
  EXPECT_EQ(tcpOffer()->isRestricted, 1u);
  setenv("OCCL_SOCKET_IFNAME", "^lo", 1);
  EXPECT_FALSE(hasLoopback()) << "it comes before NCCL's";
  EXPECT_EQ(tcpOffer()->isNamed, 0u);
  EXPECT_EQ(tcpOffer()->isRestricted, 1u);
  setenv("OCCL_SOCKET_IFNAME", "l", 1);
  EXPECT_TRUE(hasLoopback());
  setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  const auto offer = tcpOffer();
  for (uint32_t i = 0; i < offer->count; ++i)
    EXPECT_FALSE(offer->addresses[i].isIpv4());
}

} // namespace
} // namespace occl::net
