#include "runtime/net/transport/rails/connecting.h"

#include "runtime/net/rendezvous/socket.h"
#include "runtime/net/transport/testing/silent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
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
  Connecting() : host(std::move(*RailHost::listen(std::vector{loopback(0)}))) {}
  Address there() const { return loopback(host.portAt(loopback(0))); }

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

TEST_F(Connecting, APeerWithoutTheKeyOrTheTokenIsTurnedAway) {
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
TEST_F(Connecting, AnAnswerWithoutTheKeyIsNone) {
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

TEST_F(Connecting, ACallIsUnansweredOnceNoKernelHasAnsweredForLong) {
  const auto listener = listenOn(loopback(0));
  ASSERT_TRUE(makeSilent(listener->get()));
  const Address silent = *addressOf(*listener);
  RailCaller caller(secretOf(host));
  const auto isUnanswered = [&](uint32_t index) { return caller.isUnanswered(index); };
  caller.call(1, loopback(0), silent);
  caller.call(2, loopback(0), there()); // the kernel answers, and nobody else does
  EXPECT_FALSE(caller.advance());
  EXPECT_FALSE(isUnanswered(1) || isUnanswered(2) || isUnanswered(3));
  for (const Deadline end(10s); !isUnanswered(1) && !end.passed();) {
    EXPECT_FALSE(caller.advance());
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(isUnanswered(1));
  EXPECT_FALSE(isUnanswered(2) || isUnanswered(3));
}

// --- Where it listens.

/// Whether somebody listens there.
bool isListening(const Address &from, const Address &to) {
  const auto socket = beginConnect(from, to);
  if (!socket.ok())
    return false;
  for (const Deadline end(5s); !end.passed(); std::this_thread::sleep_for(1ms))
    if (const auto connected = isConnected(*socket); !connected.ok() || *connected)
      return connected.ok();
  return false;
}

Address local(uint8_t last) {
  Address address = loopback(0);
  address.host[15] = last;
  return address;
}

TEST(RailHost, ListensAtTheAddressesGivenAndAtNoOther) {
  const std::vector given = {local(2), local(3), local(2)};
  const auto host = RailHost::listen(given);
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->portAt(local(1)), 0);
  for (uint8_t listens : {2, 3})
    for (uint8_t last = 1; last < 5; ++last) {
      Address to = local(last);
      to.port = host->portAt(local(listens));
      ASSERT_NE(to.port, 0);
      const bool isGiven =
          last == listens || (last == 5 - listens && to.port == host->portAt(local(last)));
      EXPECT_EQ(isListening(local(1), to), isGiven) << to.text();
    }
}

TEST(RailHost, AnAddressOfAnotherMachineIsLeftOut) {
  Address foreign = local(1);
  foreign.host[12] = 192, foreign.host[13] = 0, foreign.host[14] = 2; // TEST-NET-1
  const auto some = RailHost::listen(std::vector{foreign, local(2)});
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->portAt(foreign), 0);
  EXPECT_NE(some->portAt(local(2)), 0);
  EXPECT_FALSE(RailHost::listen(std::vector{foreign}).ok());
}

TEST(RailHost, AllAddressesAreNone) {
  Address any = local(0);
  any.host[12] = 0;
  EXPECT_EQ(any.text(), "0.0.0.0:0");
  EXPECT_FALSE(RailHost::listen(std::vector{any, Address()}).ok());
}

/// Of IPv6; nothing if the machine has none.
std::optional<Address> linkLocal() {
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return std::nullopt;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> given(all, freeifaddrs);
  for (const ifaddrs *each = all; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET6 || !(each->ifa_flags & IFF_UP))
      continue;
    const auto *ipv6 = reinterpret_cast<const sockaddr_in6 *>(each->ifa_addr);
    Address address;
    std::memcpy(address.host.data(), &ipv6->sin6_addr, address.host.size());
    if (IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr))
      return address;
  }
  return std::nullopt;
}

TEST(RailHost, ListensAtALinkLocalAddressByItsInterface) {
  const auto own = linkLocal();
  if (!own)
    GTEST_SKIP() << "this machine has no link-local address";
  auto host = RailHost::listen(std::vector{*own});
  ASSERT_TRUE(host.ok()) << host.status().message();
  Address to = *own;
  to.port = host->portAt(*own);
  EXPECT_TRUE(isListening(*own, to));
}

// --- Strangers.

TEST(RailHost, StrangersAtOneAddressAreNotInTheWayOfAnother) {
  auto host = RailHost::listen(std::vector{local(2), local(3)});
  ASSERT_TRUE(host.ok());
  std::vector<Descriptor> strangers;
  Address crowded = local(2), other = local(3);
  crowded.port = host->portAt(crowded);
  other.port = host->portAt(other);
  for (int i = 0; i < 300; ++i)
    strangers.push_back(std::move(*beginConnect(local(1), crowded)));
  const RailSecret secret = secretOf(*host);
  RailCaller caller(secret);
  caller.call(1, local(1), other);
  // The strangers have half a second each, and there are more than there are places.
  const Both done = advance(caller, *host, secret, {false, true}, 1900ms);
  EXPECT_TRUE(done.calls && done.hosts);
}

TEST_F(Connecting, MoreWhoSayNothingThanThereArePlacesDoNotKeepOthersOut) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i)
    strangers.push_back(std::move(*beginConnect(loopback(0), there())));
  const RailSecret secret = secretOf(host);
  RailCaller caller(secret);
  caller.call(1, loopback(0), there());
  const Both done = advance(caller, host, secret, {false, true}, 1900ms); // the trial has 2 s
  EXPECT_TRUE(done.calls && done.hosts);
}

/// What a caller has said to somebody, who answers nothing.
std::vector<std::byte> helloOf(const RailSecret &secret, uint32_t index) {
  const auto listener = listenOn(loopback(0));
  RailCaller caller(secret);
  caller.call(index, loopback(0), *addressOf(*listener));
  const auto guest = acceptFrom(*listener, Deadline(5s));
  EXPECT_FALSE(caller.advance());
  std::vector<std::byte> hello(256);
  const ssize_t got = recv(guest->get(), hello.data(), hello.size(), 0);
  hello.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return hello;
}

/// Until it is closed by the other side; what came before that.
std::string heardUntilClosed(const Descriptor &socket, RailHost &host, const RailSecret &secret) {
  std::string heard;
  for (const Deadline end(5s); !end.passed(); std::this_thread::sleep_for(1ms)) {
    host.advance(secret, {false, true});
    char bytes[64];
    const ssize_t got = recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0)
      heard.append(bytes, static_cast<size_t>(got));
    else if (got == 0 || errno == ECONNRESET)
      return heard;
  }
  return "it is not closed";
}

/// Bytes that are no hello, of this host: each is closed without an answer, and the place is free.
TEST_F(Connecting, AHelloThatIsWrongOrReplayedIsClosedAndTakesNoPlace) {
  const RailSecret secret = secretOf(host);
  RailSecret before = secret; // of an attempt before this one
  before.token[31] ^= std::byte{1};
  std::vector<std::vector<std::byte>> wrong = {helloOf(before, 1), helloOf(secret, 2),
                                               helloOf(secret, 1), helloOf(secret, 1)};
  ASSERT_EQ(wrong[0].size(), 56u);
  wrong[2].back() ^= std::byte{1};
  wrong[3][8] = std::byte{0xff}; // its index
  wrong.emplace_back(4096, std::byte{0xff});
  for (const auto &bytes : wrong) {
    const auto stranger = connectTo(std::vector{there()}, Deadline(5s));
    ASSERT_EQ(send(stranger->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(heardUntilClosed(*stranger, host, secret), "");
    EXPECT_FALSE(host.sockets[1].valid());
  }
  RailCaller caller(secret);
  caller.call(1, loopback(0), there());
  EXPECT_TRUE(advance(caller, host, secret, {false, true}).hosts);
}

/// The first is who he says he is; whoever has listened and says the same comes too late.
TEST_F(Connecting, AHelloThatIsRepeatedOnASecondConnectionIsClosed) {
  const RailSecret secret = secretOf(host);
  const auto hello = helloOf(secret, 1);
  const auto first = connectTo(std::vector{there()}, Deadline(5s)),
             second = connectTo(std::vector{there()}, Deadline(5s));
  ASSERT_EQ(send(first->get(), hello.data(), hello.size(), MSG_NOSIGNAL), 56);
  for (const Deadline end(5s); !host.advance(secret, {false, true}) && !end.passed();)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(send(second->get(), hello.data(), hello.size(), MSG_NOSIGNAL), 56);
  EXPECT_EQ(heardUntilClosed(*second, host, secret), "");
  EXPECT_EQ(*addressOfPeer(host.sockets[1]), *addressOf(*first));
}

/// Byte by byte, never to its end: dropped after its time, whatever comes.
TEST_F(Connecting, AHelloThatComesTooSlowlyIsClosed) {
  const RailSecret secret = secretOf(host);
  const auto hello = helloOf(secret, 1);
  const auto slow = connectTo(std::vector{there()}, Deadline(5s));
  bool isClosed = false;
  for (size_t i = 0; i + 1 < hello.size() && !isClosed; ++i) {
    isClosed = send(slow->get(), &hello[i], 1, MSG_NOSIGNAL) < 0;
    for (int wait = 0; wait < 40; ++wait, std::this_thread::sleep_for(1ms))
      host.advance(secret, {false, true});
  }
  EXPECT_TRUE(isClosed);
}

// --- fork().

/// Nothing of a trial stays open because a child was made in the middle of it, and lives on.
TEST_F(Connecting, AChildMadeInTheMiddleKeepsNoConnection) {
  const RailSecret secret = secretOf(host);
  auto caller = std::make_optional<RailCaller>(secret);
  caller->call(1, loopback(0), there());
  const Descriptor guest = std::move(*connectTo(std::vector{there()}, Deadline(5s)));
  for (int i = 0; i < 10; ++i, std::this_thread::sleep_for(1ms))
    host.advance(secret, {false, true}); // has accepted both, and heard nothing
  int untilEnd[2], begun[2];
  ASSERT_TRUE(pipe(untilEnd) == 0 && pipe(begun) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(untilEnd[1]);
    char byte = 0;
    (void)!write(begun[1], &byte, 1);
    (void)!read(untilEnd[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(begun[0], &byte, 1), 1); // fork() returns before the child has closed anything
  const Address listener = there();
  ASSERT_TRUE(advance(*caller, host, secret, {false, true}).hosts);
  const Descriptor ofHost = std::move(host.sockets[1]);
  caller.reset();
  EXPECT_EQ(recv(ofHost.get(), &byte, 1, MSG_DONTWAIT), 0) << "the caller's end is open";
  { const RailHost ended = std::move(host); }
  EXPECT_FALSE(isListening(loopback(0), listener)) << "the listener is open";
  const ssize_t got = recv(guest.get(), &byte, 1, MSG_DONTWAIT);
  EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "the host's end of a stranger is open";
  for (const int end : {untilEnd[0], untilEnd[1], begun[0], begun[1]})
    close(end);
  waitpid(child, nullptr, 0);
}

} // namespace
} // namespace occl::net
