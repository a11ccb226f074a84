// Who is let in when ranks meet, who is turned away, and how long somebody is waited for. The
// linker
// (--wrap) leads getaddrinfo here.
#include "runtime/net/rendezvous/handshake.h"

#include "runtime/net/rendezvous/rendezvous.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// What the next lookups say, before those of the system; 0: nothing.
std::atomic<int> lookupsThatFail{0};
int howTheyFail = EAI_NONAME;

} // namespace

extern "C" {
int __real_getaddrinfo(const char *node, const char *service, const addrinfo *hints,
                       addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const addrinfo *hints,
                       addrinfo **found) {
  if (lookupsThatFail > 0 && lookupsThatFail-- > 0)
    return howTheyFail;
  return __real_getaddrinfo(node, service, hints, found);
}
}

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// RFC 4231, test cases 1, 2 and 6, the last with a key that is longer than a block.
TEST(Handshake, HashIsTheStandards) {
  const struct {
    std::string key, text, hash;
  } cases[] = {{std::string(20, '\x0b'), "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
               {"Jefe", "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
               {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"}};
  for (const auto &[key, text, hash] : cases)
    EXPECT_EQ(
        hexadecimal(authenticate(std::as_bytes(std::span(key)), std::as_bytes(std::span(text)))),
        hash);
}

struct Outcome {
  Status initiator, responder;
};

Outcome shake(const Hash &initiators, const Hash &responders, const std::string &refusal = "") {
  auto listener = listenOn(loopback(0));
  Outcome outcome;
  std::thread initiator([&] {
    auto socket = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
    outcome.initiator = introduce(*socket, initiators, {Purpose::Data, 3, 5, 8, 77}, Deadline(5s));
  });
  Reception reception(*listener, responders);
  auto guest = reception.next(
      [&](const Claim &claim) {
        EXPECT_EQ(claim.from, 3u);
        EXPECT_EQ(claim.to, 5u);
        EXPECT_EQ(claim.numRanks, 8u);
        EXPECT_EQ(claim.job, 77u);
        return refusal;
      },
      Deadline(1500ms));
  outcome.responder = guest.status();
  initiator.join();
  return outcome;
}

TEST(Handshake, SameKey) {
  const Outcome outcome = shake(Hash{std::byte{1}}, Hash{std::byte{1}});
  EXPECT_TRUE(outcome.initiator.ok()) << outcome.initiator.message();
  EXPECT_TRUE(outcome.responder.ok()) << outcome.responder.message();
}

TEST(Handshake, AnotherKeyIsNoErrorOfTheResponder) {
  const Outcome outcome = shake(Hash{std::byte{1}}, Hash{std::byte{2}});
  EXPECT_EQ(outcome.initiator.code(), StatusCode::PeerFailed);
  EXPECT_EQ(outcome.responder.code(), StatusCode::Timeout);
  EXPECT_NE(outcome.responder.message().find("turned away: 1 that did not know the secret"),
            std::string::npos)
      << outcome.responder.message();
}

TEST(Handshake, BothLearnWhyAClaimIsRefused) {
  const Outcome outcome = shake(Hash{std::byte{1}}, Hash{std::byte{1}}, "rank 3 is there already");
  EXPECT_EQ(outcome.initiator.code(), StatusCode::Mismatch);
  EXPECT_EQ(outcome.initiator.message(), "rank 3 is there already");
  EXPECT_EQ(outcome.responder.message(), "rank 3 is there already");
}

/// Of a rank that is on the way to the first of these.
struct Coming {
  explicit Coming(const Descriptor &listener, const Claim &claim = {Purpose::Data, 3, 5, 8, 77})
      : thread([this, claim, address = *addressOf(listener)] {
          auto socket =
              connectAndIntroduce(std::vector{address}, Hash{std::byte{1}}, claim, Deadline(20s));
          status = socket.status();
        }) {}
  ~Coming() {
    if (thread.joinable())
      thread.join();
  }
  Status end() {
    thread.join();
    return status;
  }

private:
  Status status;
  std::thread thread;
};

StatusOr<Accepted> acceptAny(Reception &reception, std::chrono::milliseconds most = 20s) {
  return reception.next([](const Claim &) { return ""; }, Deadline(most));
}

/// Before it was heard: so it says nothing about the key.
TEST(Handshake, ADroppedRankComesAgain) {
  auto listener = listenOn(loopback(0));
  Coming rank(*listener);
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(acceptFrom(*listener, Deadline(20s)).ok());
  Reception reception(*listener, Hash{std::byte{1}});
  const auto guest = acceptAny(reception);
  EXPECT_TRUE(guest.ok()) << guest.status().message();
  const Status status = rank.end();
  EXPECT_TRUE(status.ok()) << status.message();
}

/// When its time was over just before the proof came.
TEST(Handshake, ARankWhoseProofComesTooLateComesAgain) {
  auto listener = listenOn(loopback(0));
  Coming rank(*listener);
  {
    auto socket = acceptFrom(*listener, Deadline(20s));
    ASSERT_TRUE(socket.ok());
    std::array<std::byte, 72> hello{};
    EXPECT_TRUE(receiveAll(*socket, hello, Deadline(20s)).ok());
    std::this_thread::sleep_for(700ms);
    EXPECT_TRUE(sendRecord(*socket, Hash{}, Deadline(20s)).ok());
  }
  Reception reception(*listener, Hash{std::byte{1}});
  const auto guest = acceptAny(reception);
  EXPECT_TRUE(guest.ok()) << guest.status().message();
  const Status status = rank.end();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Handshake, ARankWithAnotherKeyFailsAtOnce) {
  auto listener = listenOn(loopback(0));
  Coming rank(*listener);
  Reception reception(*listener, Hash{std::byte{2}});
  const Status responder = acceptAny(reception, 1500ms).status();
  EXPECT_NE(responder.message().find("turned away: 1 that did not know the secret"),
            std::string::npos)
      << responder.message();
  const Status status = rank.end();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_NE(status.message().find("is the secret the same"), std::string::npos) << status.message();
}

/// A rank of an older run, or of another one with the same secret.
TEST(Handshake, ARankOfAnotherJobEndsNothing) {
  auto listener = listenOn(loopback(0));
  Coming stray(*listener, {Purpose::Card, 3, 0, 4, 78});
  std::optional<Coming> own;
  Reception reception(*listener, Hash{std::byte{1}});
  const auto guest = reception.next(
      [&](const Claim &claim) {
        Reception::Refusal refusal = claim.job == 78 ? "another job" : "";
        refusal.isOfOtherJob = claim.job == 78;
        if (refusal.isOfOtherJob)
          own.emplace(*listener);
        return refusal;
      },
      Deadline(20s));
  ASSERT_TRUE(guest.ok()) << guest.status().message();
  EXPECT_EQ(own->end().message(), "");
  const Status refused = stray.end();
  EXPECT_EQ(refused.code(), StatusCode::Mismatch);
  EXPECT_EQ(refused.message(), "another job");
  EXPECT_NE(reception.turnedAway().find("turned away: 1 of another job"), std::string::npos);
}

/// Connects, and says nothing until `mayBegin` is set.
std::thread initiateLater(const Descriptor &listener, std::atomic<int> &numConnected,
                          const std::atomic<bool> &mayBegin, uint32_t from, Status &status) {
  return std::thread([&, from] {
    auto socket = connectTo(std::vector{*addressOf(listener)}, Deadline(30s));
    ++numConnected;
    mayBegin.wait(false);
    const Claim claim = {Purpose::Card, from, 0, 3, 0};
    status = introduce(*socket, Hash{std::byte{1}}, claim, Deadline(30s));
  });
}

TEST(Handshake, AGuestIsNotDroppedForTheTimeBetweenCalls) {
  auto listener = listenOn(loopback(0));
  std::atomic<int> numConnected{0};
  std::atomic<bool> mayFirst{false}, maySecond{false};
  Status first, second;
  std::thread threads[] = {initiateLater(*listener, numConnected, mayFirst, 1, first),
                           initiateLater(*listener, numConnected, maySecond, 2, second)};
  while (numConnected < 2)
    std::this_thread::yield();
  mayFirst = true;
  mayFirst.notify_all();
  Reception reception(*listener, Hash{std::byte{1}});
  const auto accept = [&] {
    return reception.next([](const Claim &) { return ""; }, Deadline(5s));
  };
  auto guest = accept();
  EXPECT_TRUE(guest.ok()) << guest.status().message();
  // Rank 0 is occupied for longer than it would wait for a guest.
  std::this_thread::sleep_for(1100ms);
  maySecond = true;
  maySecond.notify_all();
  guest = accept();
  EXPECT_TRUE(guest.ok()) << guest.status().message();
  *listener = Descriptor();
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(first.ok()) << first.message();
  EXPECT_TRUE(second.ok()) << second.message();
}

/// It hears a challenge, and nothing that depends on the key.
TEST(Handshake, AResponderThatDoesNotKnowTheKeyIsFoundOut) {
  auto listener = listenOn(loopback(0));
  Status status;
  std::thread initiator([&] {
    auto socket = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
    status = introduce(*socket, Hash{std::byte{1}}, {}, Deadline(5s));
  });
  auto socket = acceptFrom(*listener, Deadline(5s));
  ASSERT_TRUE(socket.ok());
  std::array<std::byte, 72> hello{};
  Hash challenge{}, proof{};
  std::array<std::byte, 256> answer{};
  EXPECT_TRUE(receiveAll(*socket, hello, Deadline(5s)).ok());
  EXPECT_TRUE(sendAll(*socket, challenge, Deadline(5s)).ok());
  EXPECT_TRUE(receiveAll(*socket, proof, Deadline(5s)).ok());
  std::memcpy(answer.data() + 224, proof.data(), proof.size()); // what it has heard
  EXPECT_TRUE(sendAll(*socket, answer, Deadline(5s)).ok());
  initiator.join();
  EXPECT_EQ(status.code(), StatusCode::Mismatch) << status.message();
}

/// Version 1 of the records, with another number in it.
std::array<std::byte, 72> helloOfVersion(uint32_t version) {
  std::array<std::byte, 72> hello{};
  std::memcpy(hello.data(), "OCCLNET1", 8);
  std::memcpy(hello.data() + 8, &version, sizeof version);
  return hello;
}

TEST(Handshake, AnotherVersionIsNamedByBoth) {
  auto listener = listenOn(loopback(0));
  Hash heard{};
  std::thread stranger([&] {
    auto socket = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
    EXPECT_TRUE(sendAll(*socket, helloOfVersion(1000), Deadline(5s)).ok());
    EXPECT_TRUE(receiveAll(*socket, heard, Deadline(5s)).ok());
  });
  Reception reception(*listener, Hash{std::byte{1}});
  const Status status = reception.next([](const Claim &) { return ""; }, Deadline(1500ms)).status();
  stranger.join();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_NE(status.message().find("one with version 1000 of OCCL's network protocol"),
            std::string::npos)
      << status.message();

  // What it has heard, one that connects understands.
  Status initiators;
  std::thread initiator([&] {
    auto socket = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
    initiators = introduce(*socket, Hash{std::byte{1}}, {}, Deadline(5s));
  });
  auto socket = acceptFrom(*listener, Deadline(5s));
  ASSERT_TRUE(socket.ok());
  const uint32_t version = 1000;
  std::memcpy(heard.data() + 8, &version, sizeof version);
  std::array<std::byte, 72> hello{};
  EXPECT_TRUE(receiveAll(*socket, hello, Deadline(5s)).ok());
  EXPECT_TRUE(sendAll(*socket, heard, Deadline(5s)).ok());
  initiator.join();
  EXPECT_EQ(initiators.code(), StatusCode::Mismatch);
  EXPECT_NE(initiators.message().find("speaks version 1000 of OCCL's network protocol"),
            std::string::npos)
      << initiators.message();
}

/// Of descriptors the process has those that are open, and no more.
class NoMoreDescriptors {
public:
  NoMoreDescriptors() {
    getrlimit(RLIMIT_NOFILE, &former);
    // The lowest number that is free is the first that a new one would have.
    const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(lowest);
    rlimit none = former;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &former); }

private:
  rlimit former{};
};

TEST(Handshake, WantOfDescriptorsIsWaitedOutAndTold) {
  auto listener = listenOn(loopback(0));
  auto socket = connectTo(std::vector{*addressOf(*listener)}, Deadline(5s));
  ASSERT_TRUE(socket.ok()) << socket.status().message();
  Reception reception(*listener, Hash{std::byte{1}});
  const auto next = [&] {
    return reception.next([](const Claim &) { return ""; }, Deadline(300ms)).status();
  };
  {
    const NoMoreDescriptors none;
    const Status status = next();
    EXPECT_EQ(status.code(), StatusCode::SystemError);
    EXPECT_NE(status.message().find("Too many open files"), std::string::npos) << status.message();
  }
  EXPECT_EQ(next().code(), StatusCode::Timeout) << "it is accepted, and says nothing";
}

TEST(Rendezvous, WhyNobodyCanListenIsNamed) {
  const NoMoreDescriptors none;
  const Status status = listenOn(loopback(0)).status();
  EXPECT_EQ(status.code(), StatusCode::SystemError);
  EXPECT_NE(status.message().find("Too many open files"), std::string::npos) << status.message();
}

TEST(Rendezvous, AddressesAreRead) {
  const Deadline now(0ms);
  auto address = resolve("127.0.0.1:4242", now);
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->front().text(), "127.0.0.1:4242");
  EXPECT_TRUE(address->front().isIpv4());
  address = resolve("[::1]:4242", now);
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->front().text(), "[::1]:4242");
  for (const char *wrong :
       {"", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x",
        "no such host:1", "::1:4242", "[::1]", "[fe80::1]:4242"})
    EXPECT_EQ(resolve(wrong, now).status().code(), StatusCode::InvalidArgument) << wrong;
}

/// As of a container that has just been started.
TEST(Rendezvous, ANameThatIsNotKnownYetIsLookedUpAgain) {
  for (const int how : {EAI_NONAME, EAI_AGAIN}) {
    howTheyFail = how;
    lookupsThatFail = 2;
    const auto address = resolve("127.0.0.1:4242", Deadline(20s));
    EXPECT_TRUE(address.ok()) << address.status().message();
    EXPECT_EQ(lookupsThatFail, 0);
    lookupsThatFail = 1000;
    EXPECT_EQ(resolve("127.0.0.1:4242", Deadline(300ms)).status().code(),
              StatusCode::InvalidArgument);
    EXPECT_GT(lookupsThatFail, 0) << "other errors, and the deadline, are the end";
    lookupsThatFail = 0;
  }
}

/// It may be mistyped.
TEST(Rendezvous, ANameThatIsUnknownForASecondIsSaidOnce) {
  const auto saidWithin = [](std::chrono::milliseconds time) {
    howTheyFail = EAI_NONAME;
    lookupsThatFail = 1000;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(resolve("127.0.0.1:4242", Deadline(time)).ok());
    lookupsThatFail = 0;
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(saidWithin(2s),
            std::string("occl: the address '127.0.0.1:4242' names no host so far (") +
                gai_strerror(EAI_NONAME) + "); it is looked up again until the deadline\n");
  EXPECT_EQ(saidWithin(500ms), "") << "as of a machine that has just started";
}

TEST(Rendezvous, AListenerNeedsNoName) {
  auto address = resolvePort("a-name-that-nobody-knows.invalid:4242");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->front().text(), "[::]:4242");
  address = resolvePort("127.0.0.1:4242");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(address->front().text(), "127.0.0.1:4242");
  for (const char *wrong : {"host", "host:0", "[fe80::1]:4242"})
    EXPECT_EQ(resolvePort(wrong).status().code(), StatusCode::InvalidArgument) << wrong;
}

/// For somebody who has listened.
TEST(Rendezvous, ARankThatDoesNotListenAnyMoreIsGone) {
  auto listener = listenOn(loopback(0));
  const Address address = *addressOf(*listener);
  *listener = Descriptor();
  const Status status = connectTo(std::vector{address}, Deadline(60s), 200ms).status();
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_NE(status.message().find("nobody listens any more at 127.0.0.1"), std::string::npos)
      << status.message();
}

/// Where the other side says nothing, and where nobody comes.
TEST(Rendezvous, ARankKnownToBeGoneIsNotWaitedFor) {
  const auto whyGone = [] { return goneRank(4); };
  auto listener = listenOn(loopback(0));
  const std::vector addresses = {*addressOf(*listener)};
  EXPECT_EQ(connectAndIntroduce(addresses, Hash{}, {}, {Deadline(60s), whyGone}).status().message(),
            "rank 4 has ended or given up");
  Reception reception(*listener, Hash{});
  EXPECT_EQ(
      reception.next([](const Claim &) { return ""; }, {Deadline(60s), whyGone}).status().message(),
      "rank 4 has ended or given up");
  *listener = Descriptor();
  EXPECT_EQ(connectTo(addresses, {Deadline(60s), whyGone}).status().message(),
            "rank 4 has ended or given up");
}

/// As the addresses of a name of which only one leads somewhere.
TEST(Rendezvous, AddressesAreTriedInTurn) {
  auto listener = listenOnPort(0);
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  const uint16_t port = addressOf(*listener)->port;
  Address nowhere = loopback(port);
  nowhere.host[12] = 240; // reserved
  auto socket = connectTo(std::vector{nowhere, loopback(port)}, Deadline(5s));
  ASSERT_TRUE(socket.ok()) << socket.status().message();
  EXPECT_EQ(addressOfPeer(*socket)->text(), loopback(port).text());
  *listener = Descriptor();
  const Status status = connectTo(std::vector{nowhere, loopback(port)}, Deadline(300ms)).status();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_NE(status.message().find("nor at 127.0.0.1"), std::string::npos) << status.message();
}

Meeting meetingOfTwo(const Descriptor &listener) {
  Meeting meeting;
  meeting.numRanks = 2;
  meeting.root = {*addressOf(listener)};
  meeting.secret = "a secret of this test";
  return meeting;
}

TEST(Rendezvous, SizesThatDifferAreNamedOnBothSides) {
  auto listener = listenOn(loopback(0));
  const Meeting meeting = meetingOfTwo(*listener);
  *listener = Descriptor();
  Meeting second = meeting;
  second.rank = 1;
  Card card;
  card.segmentBytes = 4096;
  Card other = card;
  other.segmentBytes = 8192;
  Status joined;
  std::thread joiner([&] { joined = meet(second, other, Deadline(5s)).status(); });
  const Status root = meet(meeting, card, Deadline(5s)).status();
  joiner.join();
  EXPECT_EQ(root.message(), "rank 1 has segment bytes 8192, rank 0 has 4096");
  EXPECT_EQ(joined.message(), root.message());
  EXPECT_EQ(joined.code(), StatusCode::Mismatch);
}

/// Both of a job meet, with another rank in the place of the second before; what that was told.
Status meetBehindAStray(const Meeting &meeting, const Meeting &second, const Meeting &stray,
                        Descriptor listener) {
  Status strayed, joined;
  std::thread others([&] {
    strayed = meet(stray, {}, Deadline(20s)).status();
    joined = meet(second, {}, Deadline(20s)).status();
  });
  const Status root = meet(meeting, {}, Deadline(20s), std::move(listener)).status();
  others.join();
  EXPECT_TRUE(root.ok()) << root.message();
  EXPECT_TRUE(joined.ok()) << joined.message();
  return strayed;
}

TEST(Rendezvous, ARankThatHasStrayedInIsSentAway) {
  auto listener = listenOn(loopback(0));
  Meeting meeting = meetingOfTwo(*listener);
  meeting.job = 5;
  Meeting second = meeting, stray = meeting;
  second.rank = stray.rank = 1;
  stray.job = 6;
  stray.numRanks = 3;
  const Status strayed = meetBehindAStray(meeting, second, stray, std::move(*listener));
  EXPECT_EQ(strayed.code(), StatusCode::Mismatch);
  EXPECT_NE(strayed.message().find("rank 1 belongs to another job than rank 0"), std::string::npos)
      << strayed.message();
}

/// As those of machines of which one was restarted after a failure of its own.
TEST(Rendezvous, RanksOfOneRunMeetThoughTheirMachinesWereStartedUnequallyOften) {
  auto listener = listenOn(loopback(0));
  Meeting meeting = meetingOfTwo(*listener);
  meeting.run = {.starts = 2, .meetings = 0};
  Meeting second = meeting, stray = meeting;
  second.rank = stray.rank = 1;
  second.run.starts = 1;
  stray.run = {.starts = 1, .meetings = 1}; // it has met rank 0 of the run before
  EXPECT_EQ(meetBehindAStray(meeting, second, stray, std::move(*listener)).message(),
            "rank 0, at : rank 1 is of another run of this job than rank 0: it had 1 communicators "
            "of this name before, rank 0 had 0");
}

} // namespace
} // namespace occl::net
