// What a damaged peer sends ends the connection, with the reason, and touches nothing else. And
// what becomes of the two threads where there is no memory, or no thread.
#include "runtime/net/network.h"

#include "runtime/net/testing/side_of_two.h"
#include "runtime/net/transport/tcp.h"
#include "runtime/net/transport/testing/loop.h"
#include "runtime/net/transport/testing/socket_pair.h"
#include "runtime/sync/atomic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace {

/// Of allocations of threads that are not the test's, this one fails; 0: none does.
std::atomic<int64_t> untilFailure{0};
thread_local bool isOfTest = false;

} // namespace

void *operator new(size_t bytes) {
  const bool fails = !isOfTest && untilFailure.load() > 0 && untilFailure.fetch_sub(1) == 1;
  void *block = fails ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
  return block ? block : throw std::bad_alloc();
}
// Not inlined: the compiler would not know where the block is from.
[[gnu::noinline]] void operator delete(void *block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void *block, size_t) noexcept { std::free(block); }

namespace occl::net {
namespace {

using testing::SideOfTwo;

constexpr uint64_t kArenaBytes = SideOfTwo::kArenaBytes, kId = SideOfTwo::kId;

class DamagedPeer : public ::testing::Test {
protected:
  DamagedPeer()
      : side([this](const Regions &regions) {
          auto [own, peer] = makeLoop(regions, {}, 1 << 20);
          endpoint = std::move(peer);
          return std::move(own);
        }) {}

  /// Rank 0 gets it, and does what it has to do then. Whether the connection is still up.
  bool tell(const Message &message, std::string_view text = {}) {
    EXPECT_EQ(endpoint->send(encode(message, text)), Posted::Yes);
    return serve();
  }
  bool serve() {
    while (side.network->receive(0))
      ;
    side.network->send();
    return side.network->isUp(SideOfTwo::kPeer);
  }
  /// As if rank 0 had received something of each flow, wherever the block of rank 1 is.
  void setHeads() {
    auto *heads = reinterpret_cast<uint64_t *>(side.mirror.sharedArena());
    std::fill(heads, heads + (kArenaBytes + 4096) / sizeof *heads, 1);
  }
  /// Whether rank 0 has put anything: rank 1 has no memory for it here.
  bool hasPut() {
    struct Nobody final : Sink {
      bool message(std::span<const std::byte>) override { return true; }
    } nobody;
    while (endpoint->receive(nobody))
      ;
    return endpoint->isDown();
  }

  /// What rank 0 has said of this kind since the last time.
  std::optional<MessageWithText> heard(Message::Kind kind) {
    struct Listener final : Sink {
      bool message(std::span<const std::byte> bytes) override {
        if (auto read = decode(bytes); read && read->message.kind == kind)
          last = std::move(read);
        return true;
      }
      Message::Kind kind{};
      std::optional<MessageWithText> last;
    } listener;
    listener.kind = kind;
    while (endpoint->receive(listener))
      ;
    return listener.last;
  }
  static std::string textOf(const WaitRecord &record) {
    return {reinterpret_cast<const char *>(&record), sizeof record};
  }

  std::unique_ptr<Endpoint> endpoint; // rank 1's
  SideOfTwo side;
};

TEST_F(DamagedPeer, SoundMessagesAreTaken) {
  const uint64_t last = kArenaBytes - side.binding->arenaBytes(SideOfTwo::kPeer);
  EXPECT_TRUE(tell(side.published(last / 128 * 128)));
  EXPECT_TRUE(tell({.kind = Message::Finished, .id = kId, .ordinal = 1}));
  EXPECT_EQ(side.numMismatches, 0u);
}

TEST_F(DamagedPeer, ABlockOutsideOfTheArenaIsRefused) {
  EXPECT_FALSE(tell(side.published(kArenaBytes)));
  EXPECT_NE(side.network->describeDown(SideOfTwo::kPeer).find("makes no sense"), std::string::npos)
      << side.network->describeDown(SideOfTwo::kPeer);
}

TEST_F(DamagedPeer, ABlockThatIsNotAlignedIsRefused) { EXPECT_FALSE(tell(side.published(64))); }

TEST_F(DamagedPeer, SizesThatWrapAroundAreRefused) {
  Message message = side.published(128);
  message.controlBytes = ~uint64_t{0} - 64;
  EXPECT_FALSE(tell(message));
}

TEST_F(DamagedPeer, HeadsBeyondTheArenaAreRefused) {
  Message message = side.published(0);
  message.headBytes = kArenaBytes + 1;
  EXPECT_FALSE(tell(message));
}

TEST_F(DamagedPeer, HeadsOfABlockThatIsThereAreSent) {
  EXPECT_TRUE(tell(side.published(0)));
  setHeads();
  EXPECT_TRUE(serve());
  EXPECT_TRUE(hasPut());
}

/// With these sizes it seems to fit; what the plan says of it lies behind the arena.
TEST_F(DamagedPeer, ABlockThatDoesNotFitByThePlanIsNotAccessed) {
  setHeads();
  Message message = side.published(kArenaBytes - 128);
  message.controlBytes = message.headBytes = 0;
  EXPECT_TRUE(tell(message)); // binding it is an error of the invocation
  EXPECT_FALSE(hasPut());
}

/// Before anything of it is written over that was not sent yet.
TEST_F(DamagedPeer, AHeadOfTransfersThatWereNotSentIsNamed) {
  Put put;
  put.region = kRingHeadRegion;
  put.hasWord = true;
  put.word = 64;
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_TRUE(serve());
  EXPECT_EQ(side.failure.code(), StatusCode::InternalError);
  EXPECT_NE(side.failure.message().find("rank 1 says that it has read transfers that rank 0"),
            std::string::npos)
      << side.failure.message();
}

TEST_F(DamagedPeer, HeadsOfOtherPairsAreNotItsOwn) {
  Put put;
  put.region = kRingHeadRegion;
  put.hasWord = true;
  put.wordOffset = sizeof(transport::RingPosition);
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_FALSE(serve());
}

TEST_F(DamagedPeer, RingsEndWhereTheyDo) {
  const std::byte bytes[128] = {};
  Put put;
  put.region = kRingsRegion;
  put.offset = side.mirror.tailsAndRings().size() - 64;
  put.bytes = std::span(bytes).first(64);
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_TRUE(serve());
  put.bytes = bytes;
  EXPECT_EQ(endpoint->put(put), Posted::Yes);
  EXPECT_FALSE(serve());
}

TEST_F(DamagedPeer, AnUnknownCodeOrKindEndsTheConnection) {
  EXPECT_FALSE(tell({.kind = Message::Failed, .code = 1000}, "because"));
  EXPECT_TRUE(side.failure.ok());
}

TEST_F(DamagedPeer, AFailureIsToldOnce) {
  EXPECT_TRUE(tell({.kind = Message::Failed, .code = static_cast<uint32_t>(StatusCode::Aborted)},
                   "because"));
  EXPECT_EQ(side.failure.message(), "because");
  EXPECT_TRUE(tell({.kind = Message::Failed, .code = static_cast<uint32_t>(StatusCode::Timeout)},
                   "another"));
  EXPECT_EQ(side.failure.message(), "because");
}

TEST_F(DamagedPeer, MoreIdsThanThereArePlacesEndTheConnection) {
  bool isUp = true;
  uint64_t id = 0;
  for (; isUp && id < 2 * transport::Segment::kCells; ++id) {
    Message message = side.published(0);
    message.id = 1000 + id;
    isUp = tell(message);
  }
  EXPECT_FALSE(isUp);
  EXPECT_GE(id, transport::Segment::kCells / 2);
}

TEST_F(DamagedPeer, AQuestionIsAnsweredWhenTheRankHasLooked) {
  transport::SegmentHeader &header = side.own.header();
  EXPECT_TRUE(tell({.kind = Message::Ask, .ordinal = 5}));
  EXPECT_FALSE(heard(Message::Waits)) << "it has not looked yet";
  const transport::WaitEdge edge = {kId, 3, 1, 2, transport::WaitReason::Data, 1, 0, 0};
  header.waitEdges.publish(std::span(&edge, 1));
  header.reportsAnswered.store(side.own.words().reportsAsked.load());
  EXPECT_TRUE(serve());
  const auto answer = heard(Message::Waits);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->message.ordinal, 5u);
  WaitRecord record;
  ASSERT_EQ(answer->text.size(), sizeof record);
  std::memcpy(&record, answer->text.data(), sizeof record);
  EXPECT_EQ(record.collective, kId);
  EXPECT_EQ(record.ordinal, 3u);
  EXPECT_EQ(record.reason, static_cast<uint32_t>(transport::WaitReason::Data));
  EXPECT_FALSE(side.network->hasOpen() && !serve());
  EXPECT_FALSE(heard(Message::Waits)) << "once";
}

/// Of a rank on which nobody looks.
TEST_F(DamagedPeer, AQuestionIsAnsweredAllTheSame) {
  EXPECT_TRUE(tell({.kind = Message::Ask, .ordinal = 1}));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool isAnswered = false;
  while (!isAnswered && std::chrono::steady_clock::now() < end) {
    EXPECT_TRUE(serve());
    isAnswered = heard(Message::Waits).has_value();
  }
  EXPECT_TRUE(isAnswered);
}

/// What a rank has answered stays until it is asked again.
TEST_F(DamagedPeer, AnAnswerIsOfTheLastQuestion) {
  const auto &header = side.mirror.header();
  const auto ask = [&] {
    const uint32_t number = side.mirror.words().askForReport();
    EXPECT_TRUE(serve());
    const auto question = heard(Message::Ask);
    EXPECT_TRUE(question && question->message.ordinal == number);
    return number;
  };
  const uint32_t first = ask();
  WaitRecord record;
  record.collective = kId;
  record.peer = 1;
  EXPECT_FALSE(header.hasAnswered(first));
  EXPECT_TRUE(tell({.kind = Message::Waits, .ordinal = first}, textOf(record)));
  EXPECT_TRUE(header.hasAnswered(first));
  EXPECT_EQ(header.waitEdges.read().edges.size(), 1u);
  const uint32_t second = ask();
  EXPECT_TRUE(header.waitEdges.read().edges.empty());
  EXPECT_TRUE(tell({.kind = Message::Waits, .ordinal = first}, textOf(record)));
  EXPECT_FALSE(header.hasAnswered(second)) << "that was late";
  EXPECT_TRUE(header.waitEdges.read().edges.empty());
}

TEST_F(DamagedPeer, WaitsOfAnUnknownKindOrRankEndTheConnection) {
  WaitRecord record;
  record.peer = 2;
  EXPECT_FALSE(tell({.kind = Message::Waits}, textOf(record)));
}

TEST_F(DamagedPeer, WaitsForNoReasonEndTheConnection) {
  WaitRecord record;
  record.reason = transport::kNumWaitReasons;
  EXPECT_FALSE(tell({.kind = Message::Waits}, textOf(record)));
}

TEST_F(DamagedPeer, APartOfAWaitEndsTheConnection) {
  EXPECT_FALSE(tell({.kind = Message::Waits}, "half of one"));
}

TEST_F(DamagedPeer, ADivisionIsWrittenToTheMirror) {
  DivisionRecord record;
  record.published = 2;
  record.done = 1;
  record.colour = -3;
  record.offer = 99;
  EXPECT_TRUE(
      tell({.kind = Message::Divide}, {reinterpret_cast<const char *>(&record), sizeof record}));
  const transport::SplitRecord &mirrored = side.mirror.header().split;
  EXPECT_EQ(mirrored.published.load(), 2u);
  EXPECT_EQ(mirrored.done.load(), 1u);
  EXPECT_EQ(mirrored.abandoned.load(), 0u);
  EXPECT_EQ(mirrored.colour.load(), -3);
  EXPECT_EQ(mirrored.offer.load(), 99u);
}

TEST_F(DamagedPeer, AShrinkRecordIsWrittenToTheMirror) {
  transport::ShrinkRecord record;
  record.call = 1;
  record.attempt = 3;
  record.port = 4711;
  EXPECT_TRUE(
      tell({.kind = Message::Shrink}, {reinterpret_cast<const char *>(&record), sizeof record}));
  const auto mirrored = side.mirror.header().shrinkRecord.load();
  ASSERT_TRUE(mirrored);
  EXPECT_EQ(mirrored->attempt, 3u);
  EXPECT_EQ(mirrored->port, 4711u);
}

TEST_F(DamagedPeer, APartOfAShrinkRecordEndsTheConnection) {
  EXPECT_FALSE(tell({.kind = Message::Shrink}, "half of one"));
}

/// Once for each change, also after a failure.
TEST_F(DamagedPeer, ShrinkRecordsAreToldAfterAFailure) {
  EXPECT_TRUE(serve());
  EXPECT_FALSE(heard(Message::Shrink));
  side.failure = {StatusCode::PeerFailed, "a rank is gone"};
  transport::ShrinkRecord record;
  for (record.attempt = 1; record.attempt < 3; ++record.attempt) {
    side.own.header().shrinkRecord.store(record);
    EXPECT_TRUE(serve());
    EXPECT_TRUE(heard(Message::Shrink));
    EXPECT_TRUE(serve());
    EXPECT_FALSE(heard(Message::Shrink));
  }
}

TEST_F(DamagedPeer, AVoterIsCalledWhenARecordHasCome) {
  int numCalls = 0;
  side.network->setVoter([&]() -> std::chrono::nanoseconds {
    ++numCalls;
    return std::chrono::hours(1);
  });
  EXPECT_TRUE(serve());
  EXPECT_TRUE(serve());
  EXPECT_EQ(numCalls, 1);
  const transport::ShrinkRecord record;
  EXPECT_TRUE(
      tell({.kind = Message::Shrink}, {reinterpret_cast<const char *>(&record), sizeof record}));
  EXPECT_EQ(numCalls, 2);
  side.network->setVoter(nullptr);
  EXPECT_TRUE(serve());
  EXPECT_EQ(numCalls, 2);
}

TEST_F(DamagedPeer, APartOfADivisionEndsTheConnection) {
  EXPECT_FALSE(tell({.kind = Message::Divide}, "half of one"));
}

/// Each of the three counters, once.
TEST_F(DamagedPeer, ADivisionIsToldWheneverACounterGrows) {
  transport::SplitRecord &own = side.own.header().split;
  EXPECT_TRUE(serve());
  EXPECT_FALSE(heard(Message::Divide));
  for (auto *counter : {&own.published, &own.done, &own.abandoned}) {
    counter->store(1);
    EXPECT_TRUE(serve());
    EXPECT_TRUE(heard(Message::Divide));
    EXPECT_TRUE(serve());
    EXPECT_FALSE(heard(Message::Divide));
  }
}

TEST_F(DamagedPeer, OtherTraitsAreTold) {
  Message message = side.published(0);
  message.count = 3;
  EXPECT_TRUE(tell(message));
  EXPECT_EQ(side.numMismatches, 1u);
}

/// Both have come by the time that this rank looks.
TEST(Network, OfTwoDisagreementsTheFirstIsTold) {
  auto [first, second] = socketPair();
  SideOfTwo side([&, socket = &first](const Regions &regions) {
    return makeTcpEndpoint(std::move(*socket), regions, std::chrono::seconds(30));
  });
  const auto peer = makeTcpEndpoint(std::move(second), {}, std::chrono::seconds(30));
  side.open(kId + 1);
  Message early = side.published(0), late = side.published(kArenaBytes / 2);
  early.count = 3;
  late.id = kId + 1;
  late.count = 4;
  EXPECT_EQ(peer->send(encode(early)), Posted::Yes);
  EXPECT_EQ(peer->send(encode(late)), Posted::Yes);
  EXPECT_TRUE(peer->flush());
  side.network->receive(0);
  EXPECT_EQ(side.numMismatches, 1u);
  EXPECT_EQ(side.lastMismatch.count, 3u);
}

/// Rank 0 with its two threads, and rank 1's end of the connection.
class WithThreads {
public:
  explicit WithThreads(std::pair<Descriptor, Descriptor> sockets = socketPair())
      : side([&](const Regions &regions) {
          return makeTcpEndpoint(std::move(sockets.first), regions, std::chrono::seconds(30));
        }),
        peer(makeTcpEndpoint(std::move(sockets.second), {}, std::chrono::seconds(30))) {
    side.network->attach(side.own, {[this] { return failure(); },
                                    [this](const Status &cause) {
                                      std::lock_guard lock(mutex);
                                      first = first.ok() ? cause : first;
                                    }});
  }
  ~WithThreads() { side.network->stop(); }

  Status start() { return side.network->start(*bootstrap::SharedBell::makePrivate()); }
  /// The first one that is told within some time.
  Status awaitFailure() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (failure().ok() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    return failure();
  }
  Status failure() {
    std::lock_guard lock(mutex);
    return first;
  }

  SideOfTwo side;
  const std::unique_ptr<Endpoint> peer;

private:
  std::mutex mutex;
  Status first;
};

/// While it lives threads have large stacks, for so many of which there are addresses.
class RoomForThreads {
public:
  explicit RoomForThreads(uint64_t number) {
    constexpr uint64_t kStack = 1 << 30;
    pthread_getattr_default_np(&former);
    pthread_attr_t large = former;
    pthread_attr_setstacksize(&large, kStack);
    pthread_setattr_default_np(&large);
    getrlimit(RLIMIT_AS, &formerLimit);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = formerLimit;
    limit.rlim_cur =
        pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + number * kStack + kStack / 2;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~RoomForThreads() {
    setrlimit(RLIMIT_AS, &formerLimit);
    pthread_setattr_default_np(&former);
  }

private:
  pthread_attr_t former;
  rlimit formerLimit{};
};

TEST(Threads, WhereThereIsNoneStartingThemIsAnError) {
  for (const uint64_t room : {0, 1}) {
    WithThreads ranks;
    Status status;
    {
      const RoomForThreads some(room);
      status = ranks.start();
    }
    EXPECT_EQ(status.code(), StatusCode::SystemError) << room;
    EXPECT_NE(status.message().find("starting a thread"), std::string::npos) << status.message();
    EXPECT_TRUE(ranks.start().ok()) << "now there are some";
  }
}

std::set<std::string> threadsOfProcess() {
  std::set<std::string> paths;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
    paths.insert(entry.path().string());
  return paths;
}

/// A bit for each signal.
uint64_t blockedBy(const std::string &thread) {
  std::ifstream status(thread + "/status");
  uint64_t blocked = 0;
  for (std::string word; status >> word && word != "SigBlk:";) {
  }
  status >> std::hex >> blocked;
  return blocked;
}

TEST(Threads, TakeNoSignalsOfTheProgram) {
  const std::set<std::string> before = threadsOfProcess();
  WithThreads ranks;
  ASSERT_TRUE(ranks.start().ok());
  int found = 0;
  for (const std::string &path : threadsOfProcess()) {
    if (before.contains(path))
      continue;
    ++found;
    uint64_t blocked = blockedBy(path);
    // Until it has begun a thread takes no signal at all.
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         (blocked >> (SIGSEGV - 1) & 1) != 0 && std::chrono::steady_clock::now() < end;)
      blocked = blockedBy(path);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD})
      EXPECT_TRUE(blocked >> (signal - 1) & 1) << signal;
    EXPECT_FALSE(blocked >> (SIGSEGV - 1) & 1) << "a fault of its own";
  }
  EXPECT_EQ(found, 2);
}

/// What has come may be lost then, so the communicator fails; the process goes on.
TEST(Threads, WithoutMemoryTheCommunicatorFails) {
  isOfTest = true;
  const std::string because = "a cause that is too long for a short string";
  int numWithout = 0;
  for (int64_t failing = 1; failing <= 12; ++failing) {
    WithThreads ranks;
    untilFailure = failing;
    ASSERT_TRUE(ranks.start().ok());
    EXPECT_EQ(ranks.peer->send(encode(ranks.side.published(0))), Posted::Yes);
    const Message failed = {.kind = Message::Failed,
                            .code = static_cast<uint32_t>(StatusCode::Aborted)};
    EXPECT_EQ(ranks.peer->send(encode(failed, because)), Posted::Yes);
    EXPECT_TRUE(ranks.peer->flush());
    const Status failure = ranks.awaitFailure();
    untilFailure = 0;
    const bool isWithout = failure.message() == outOfMemory().message();
    numWithout += isWithout;
    EXPECT_TRUE(isWithout || failure.message() == because) << failing << ": " << failure.message();
  }
  isOfTest = false;
  EXPECT_GT(numWithout, 3);
}

} // namespace
} // namespace occl::net
