#include "runtime/net/transport/rails/connecting.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;
using Expected = std::array<bool, kMostRails>;

RailSecret secretOf(const RailHost &host, unsigned key = 1) {
  RailSecret secret;
  secret.key.fill(static_cast<std::byte>(key));
  secret.token = host.token();
  secret.first = 3;
  secret.second = 5;
  return secret;
}

struct Both {
  bool calls = false, hosts = false;
};

/// What both come to within this time.
Both advance(RailCaller &caller, RailHost &host, const RailSecret &ofHost, const Expected &expected,
             std::chrono::milliseconds time = 10000ms) {
  Both done;
  for (const Deadline end(time); !(done.calls && done.hosts) && !end.passed();
       std::this_thread::sleep_for(100us)) {
    done.calls = caller.advance();
    done.hosts = host.advance(ofHost, expected);
  }
  return done;
}

class Connecting : public ::testing::Test {
protected:
  Connecting() : host(std::move(*RailHost::listen())) {}
  Address there() const { return loopback(host.port()); }

  RailHost host;
};

TEST_F(Connecting, EachBecomesTheSameConnectionOnBothSides) {
  const RailSecret secret = secretOf(host);
  RailCaller caller(secret);
  for (uint32_t index : {1u, 4u, 7u})
    caller.call(index, loopback(0), there());
  const Expected expected = {false, true, false, false, true, false, false, true};
  const Both done = advance(caller, host, secret, expected);
  ASSERT_TRUE(done.calls && done.hosts);
  for (uint32_t i = 0; i < kMostRails; ++i) {
    ASSERT_EQ(caller.sockets[i].valid(), expected[i]);
    ASSERT_EQ(host.sockets[i].valid(), expected[i]);
    if (expected[i]) {
      EXPECT_EQ(*addressOf(caller.sockets[i]), *addressOfPeer(host.sockets[i]));
    }
  }
}

TEST_F(Connecting, WhoDoesNotKnowTheKeyOrTheTokenIsTurnedAway) {
  RailSecret otherToken = secretOf(host), otherRank = secretOf(host);
  otherToken.token[0] ^= std::byte{1};
  otherRank.first = 4;
  for (const RailSecret &wrong : {secretOf(host, 2), otherToken, otherRank}) {
    RailCaller caller(wrong);
    caller.call(1, loopback(0), there());
    const Both done = advance(caller, host, secretOf(host), {false, true}, 500ms);
    EXPECT_TRUE(done.calls);
    EXPECT_FALSE(done.hosts);
    EXPECT_FALSE(caller.sockets[1].valid());
    EXPECT_FALSE(host.sockets[1].valid());
  }
}

TEST_F(Connecting, AnIndexCountsOnceAndOnlyIfItIsExpected) {
  const RailSecret secret = secretOf(host);
  RailCaller caller(secret);
  caller.call(1, loopback(0), there());
  ASSERT_TRUE(advance(caller, host, secret, {false, true}).hosts);
  const Address before = *addressOfPeer(host.sockets[1]);
  RailCaller again(secret);
  again.call(1, loopback(0), there());
  again.call(2, loopback(0), there());
  EXPECT_TRUE(advance(again, host, secret, {false, true}).calls);
  EXPECT_FALSE(again.sockets[1].valid());
  EXPECT_FALSE(again.sockets[2].valid());
  EXPECT_EQ(*addressOfPeer(host.sockets[1]), before);
}

TEST_F(Connecting, StrangersDoNotKeepOthersOut) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 40; ++i)
    strangers.push_back(std::move(*connectTo(std::vector{there()}, Deadline(5s))));
  for (size_t i = 0; i < strangers.size(); i += 2)
    ASSERT_EQ(send(strangers[i].get(), "GET / HTTP/1.1", 14, MSG_NOSIGNAL), 14);
  const RailSecret secret = secretOf(host);
  RailCaller caller(secret);
  caller.call(1, loopback(0), there());
  const Both done = advance(caller, host, secret, {false, true}, 1900ms); // the trial has 2 s
  EXPECT_TRUE(done.calls && done.hosts);
  EXPECT_TRUE(caller.sockets[1].valid() && host.sockets[1].valid());
}

/// Who answers has to prove himself, too.
TEST_F(Connecting, WhoAnswersWithoutTheKeyIsNone) {
  const auto listener = listenOn(loopback(0));
  RailCaller caller(secretOf(host));
  caller.call(1, loopback(0), *addressOf(*listener));
  const auto guest = acceptFrom(*listener, Deadline(5s));
  ASSERT_TRUE(guest.ok());
  const Hash answer{};
  ASSERT_TRUE(sendRecord(*guest, answer, Deadline(5s)).ok());
  for (const Deadline end(5s); !caller.advance() && !end.passed();)
    std::this_thread::sleep_for(100us);
  EXPECT_TRUE(caller.advance());
  EXPECT_FALSE(caller.sockets[1].valid());
}

TEST_F(Connecting, NobodyAtThatPort) {
  RailCaller caller(secretOf(host));
  const uint16_t port = addressOf(*listenOn(loopback(0)))->port; // closed again
  caller.call(1, loopback(0), loopback(port));
  for (const Deadline end(5s); !caller.advance() && !end.passed();)
    std::this_thread::sleep_for(100us);
  EXPECT_TRUE(caller.advance());
  EXPECT_FALSE(caller.sockets[1].valid());
}

} // namespace
} // namespace occl::net
