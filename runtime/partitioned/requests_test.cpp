// Requests of ranks without workers: nothing runs but what a call runs itself. And what a damaged
// peer may have written.
#include "runtime/partitioned/requests.h"

#include "runtime/control/testing/thread_fabrics.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace occl::partitioned {
namespace {

constexpr uint64_t kArenaBytes = 1 << 16;

struct Rank {
  Rank(std::unique_ptr<daemon::Fabric> fabric, std::shared_ptr<bootstrap::SharedBell> bell)
      : device(makeDevice(std::move(bell))), core(device, std::move(fabric), daemon::Options{}),
        requests(core) {
    device->board.attach(core.place);
  }
  ~Rank() { device->board.detach(core.place); }

  static std::shared_ptr<daemon::Device> makeDevice(std::shared_ptr<bootstrap::SharedBell> bell) {
    daemon::DeviceOptions options;
    options.workers = 0;
    options.preemption = true;
    return *daemon::Device::start(options, std::move(bell));
  }

  std::shared_ptr<daemon::Device> device;
  daemon::Core core;
  Requests requests;
};

/// Two ranks, from 0 to 1.
struct World {
  World() {
    auto made = daemon::testing::makeThreadFabrics(2, kArenaBytes);
    EXPECT_TRUE(made.ok()) << made.status().message();
    for (uint32_t r = 0; r < 2; ++r)
      ranks.push_back(std::make_unique<Rank>(std::move(made->fabrics[r]), made->bells[r]));
  }
  StatusOr<Request *> tryMake(bool isSend, uint64_t partitions, uint64_t count, uint64_t tag = 0) {
    Terms terms;
    terms.tag = tag;
    terms.isSend = isSend;
    terms.peer = isSend ? 1 : 0;
    terms.shape = {partitions, count, DataType::Int32, 1};
    terms.buffer = reinterpret_cast<char *>(isSend ? source.data() : target.data());
    return ranks[isSend ? 0 : 1]->requests.make(terms);
  }
  Request *make(bool isSend, uint64_t partitions, uint64_t count, uint64_t tag = 0) {
    auto made = tryMake(isSend, partitions, count, tag);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : nullptr;
  }
  Requests &sender() { return ranks[0]->requests; }
  Requests &receiver() { return ranks[1]->requests; }

  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<int32_t> source = std::vector<int32_t>(20, 7), target = std::vector<int32_t>(20);
};

class RequestsTest : public testing::Test, protected World {};

/// One look moves what is ready, and matches what the peer has told.
TEST_F(RequestsTest, ArrivedMakesProgressByItself) {
  Request *receive = make(false, 4, 5), *send = make(true, 5, 4);
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(receiver().start(*receive).ok());
    ASSERT_TRUE(sender().start(*send).ok());
    EXPECT_FALSE(*receiver().arrived(*receive, 0));
    ASSERT_TRUE(sender().ready(*send, {0, 2}).ok());
    EXPECT_TRUE(*receiver().arrived(*receive, 0));
    EXPECT_FALSE(*receiver().arrived(*receive, 1));
    ASSERT_TRUE(sender().ready(*send, {2, 5}).ok());
    EXPECT_EQ(sender().test(*send).code(), StatusCode::InProgress);
    EXPECT_TRUE(*receiver().arrived(*receive, 3));
    EXPECT_TRUE(sender().test(*send).ok());
    EXPECT_TRUE(receiver().test(*receive).ok());
  }
  EXPECT_EQ(target, source);
  EXPECT_TRUE(sender().release(*send).ok());
  EXPECT_TRUE(receiver().release(*receive).ok());
}

/// A receive of nothing waits for no mark, so it may be ahead of its send.
TEST_F(RequestsTest, NothingMayArriveEpochsBeforeItIsSent) {
  Request *send = make(true, 0, 5), *receive = make(false, 0, 4);
  for (int epoch = 0; epoch < 5; ++epoch) {
    ASSERT_TRUE(receiver().start(*receive).ok());
    EXPECT_TRUE(receiver().wait(*receive).ok());
  }
  for (int epoch = 0; epoch < 5; ++epoch) {
    ASSERT_TRUE(sender().start(*send).ok());
    EXPECT_TRUE(sender().wait(*send).ok());
  }
}

/// With several pieces of a message, too.
TEST_F(RequestsTest, TestMakesProgressByItself) {
  source.assign(1 << 20, 3);
  target.assign(1 << 20, 0);
  Request *send = make(true, 1, 1 << 20), *receive = make(false, 2, 1 << 19);
  ASSERT_TRUE(receiver().start(*receive).ok());
  ASSERT_TRUE(sender().start(*send).ok());
  ASSERT_TRUE(sender().ready(*send, {0, 1}).ok());
  int looks = 0;
  while (receiver().test(*receive).code() == StatusCode::InProgress)
    ASSERT_LT(++looks, 100);
  EXPECT_TRUE(sender().test(*send).ok());
  EXPECT_EQ(target, source);
}

/// More notices than their ring holds: a receive whose epoch is over has been told of, so that the
/// sender needs nobody's help any more.
TEST_F(RequestsTest, RequestsThatAreOverHaveBeenTold) {
  for (int i = 0; i < 100; ++i) // 32 notices fit
    make(false, 4, 5, 1);
  Request &receive = *make(false, 4, 5), &send = *make(true, 5, 4);
  ASSERT_TRUE(sender().start(send).ok());
  ASSERT_TRUE(sender().ready(send, {0, 5}).ok());
  ASSERT_TRUE(receiver().start(receive).ok());
  int turns = 0;
  while (receiver().test(receive).code() == StatusCode::InProgress) {
    ASSERT_LT(++turns, 100);
    EXPECT_EQ(sender().test(send).code(), StatusCode::InProgress);
  }
  EXPECT_GT(turns, 1);
  EXPECT_TRUE(sender().test(send).ok());
}

/// Words are not used again before the peer has let go.
TEST_F(RequestsTest, WordsOfWhatIsFreed) {
  Request *send = make(true, 4, 5), *receive = make(false, 4, 5);
  sender().tidy();
  receiver().tidy();
  const Header *words = send->party.header;
  ASSERT_TRUE(sender().release(*send).ok());
  Request *second = make(true, 4, 5);
  EXPECT_NE(second->party.header, words) << "the receive still refers to them";
  ASSERT_TRUE(receiver().release(*receive).ok());
  Request *third = make(true, 4, 5);
  EXPECT_EQ(third->party.header, words);
  EXPECT_EQ(words->started.load(), 0u);
}

/// Of what nobody has matched: the peer lets go as soon as it hears.
TEST_F(RequestsTest, WordsOfWhatIsFreedUnmatched) {
  make(false, 1, 1); // of this pair and tag 0: matches the first
  Request *first = make(true, 1, 1), *second = make(true, 4, 5);
  const Header *words = second->party.header;
  ASSERT_TRUE(sender().release(*second).ok());
  EXPECT_NE(make(true, 4, 5)->party.header, words);
  receiver().tidy();
  EXPECT_EQ(make(true, 4, 5)->party.header, words);
  EXPECT_TRUE(sender().release(*first).ok());
}

/// Each notice that is wrong ends the communicator, with a text that says so.
TEST_F(RequestsTest, DamagedNotices) {
  const Notice sound{.kind = Notice::Made,
                     .serial = 1,
                     .isSend = 1,
                     .tag = 0,
                     .partitions = 20,
                     .count = 1,
                     .type = 1,
                     .perMessage = 1};
  const std::function<void(Notice &)> damages[] = {
      [](Notice &notice) { notice.kind = 99; },
      [](Notice &notice) { notice.kind = 0; },
      [](Notice &notice) { notice.partitions = kMostPartitions + 1; },
      [](Notice &notice) { notice.count = ~uint64_t{0}; },
      [](Notice &notice) { notice.type = 200; },
      [](Notice &notice) { notice.type = 1 << 8; },
      [](Notice &notice) { notice.perMessage = 0; },
      [](Notice &notice) { notice.block = 64; },
      [](Notice &notice) { notice.block = uint64_t{1} << 40; },
      [](Notice &notice) { notice.block = transport::Segment::kPartitionedWordsBytes - 128; },
  };
  for (const auto &damage : damages) {
    World world;
    Notice notice = sound;
    damage(notice);
    transfer::RingSource ring(world.ranks[0]->core.fabric->own().noticesTo(1));
    ring.write(&notice, sizeof notice);
    ring.publish();
    const auto made = world.tryMake(false, 20, 1);
    ASSERT_FALSE(made.ok()) << &damage - damages;
    EXPECT_EQ(made.status().code(), StatusCode::InternalError);
    EXPECT_NE(made.status().message().find("the notices of rank 0 of its partitioned requests are "
                                           "damaged"),
              std::string::npos);
  }
  // What can come once comes twice.
  const Notice freed{.kind = Notice::Freed, .serial = 1};
  for (const std::vector<Notice> &notices :
       {std::vector{sound, sound}, std::vector{sound, freed, freed}}) {
    World world;
    transfer::RingSource ring(world.ranks[0]->core.fabric->own().noticesTo(1));
    for (const Notice &notice : notices)
      ring.write(&notice, sizeof notice);
    ring.publish();
    EXPECT_EQ(world.tryMake(false, 20, 1).status().code(), StatusCode::InternalError);
  }
  // As it is, it matches.
  transfer::RingSource ring(ranks[0]->core.fabric->own().noticesTo(1));
  ring.write(&sound, sizeof sound);
  ring.publish();
  EXPECT_NE(make(false, 20, 1)->party.counterpart.load(), nullptr);
}

TEST_F(RequestsTest, DamagedPositionsOfNotices) {
  ranks[0]->core.fabric->own().noticesTo(1).tail->bytes = 77;
  EXPECT_EQ(tryMake(false, 20, 1).status().code(), StatusCode::InternalError);
}

/// A word of an epoch that has not begun is not believed.
TEST_F(RequestsTest, AWordBeyondTheEpoch) {
  Request *send = make(true, 4, 5), *receive = make(false, 4, 5);
  ASSERT_TRUE(receiver().start(*receive).ok());
  MessageWords(send->party.header, 4)[2] = 9;
  const auto arrived = receiver().arrived(*receive, 0);
  EXPECT_EQ(arrived.status().code(), StatusCode::InternalError);
  EXPECT_NE(arrived.status().message().find("a word of rank 0 is of an epoch beyond this one"),
            std::string::npos);
  EXPECT_FALSE(receiver().wait(*receive).ok());
}

TEST_F(RequestsTest, AnEndBeyondTheEpoch) {
  Request *send = make(true, 4, 5), *receive = make(false, 4, 5);
  ASSERT_TRUE(sender().start(*send).ok());
  receive->party.header->received = 2;
  EXPECT_EQ(sender().wait(*send).code(), StatusCode::InternalError);
}

/// The pairing alone: sends of rank 0 to rank 1, of which both know what the other one has told.
class MatchingTest : public testing::Test {
protected:
  struct Side {
    Side(daemon::Fabric &fabric, Doorbell &bell, bool isSend)
        : matching(fabric, bell), isSend(isSend) {}
    Party &add(uint64_t tag) {
      parties.push_back(std::unique_ptr<Party>(
          new Party{isSend, isSend ? 1u : 0u, tag, {1, 1, DataType::Int32, 1}, 0}));
      EXPECT_TRUE(matching.add(*parties.back()).ok());
      return *parties.back();
    }
    Matching matching;
    const bool isSend;
    std::vector<std::unique_ptr<Party>> parties;
  };
  MatchingTest() : made(std::move(*daemon::testing::makeThreadFabrics(2, kArenaBytes))) {}
  void look() {
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_TRUE(sender.matching.lookAtAll().ok());
      EXPECT_TRUE(receiver.matching.lookAtAll().ok());
    }
  }
  void expectPair(Party &send, Party &receive) {
    look();
    const Counterpart *there = send.counterpart.load(), *here = receive.counterpart.load();
    ASSERT_TRUE(there && here);
    EXPECT_EQ(there->serial, receive.serial);
    EXPECT_EQ(here->serial, send.serial);
  }
  void expectOpenTags(size_t number) {
    look();
    EXPECT_EQ(sender.matching.numOpenTags(), number);
    EXPECT_EQ(receiver.matching.numOpenTags(), number);
  }

  daemon::testing::ThreadFabrics made;
  Side sender{*made.fabrics[0], made.bells[0]->bell(), true},
      receiver{*made.fabrics[1], made.bells[1]->bell(), false};
};

/// A program may take a new tag for each request.
TEST_F(MatchingTest, NothingIsKeptOfTagsWhoseRequestsAreAllMatched) {
  for (uint64_t tag = 0; tag < 20; ++tag) {
    Party *send = tag % 2 == 0 ? &sender.add(tag) : nullptr;
    Party &receive = receiver.add(tag);
    expectPair(send ? *send : sender.add(tag), receive);
  }
  expectOpenTags(0);
  Party &waits = sender.add(77);
  expectOpenTags(1);
  expectPair(waits, receiver.add(77));
  expectOpenTags(0);
}

/// Pairs go on as they would have, whatever was freed before the peer's came.
TEST_F(MatchingTest, AForgottenTagPairsAsBefore) {
  expectPair(sender.add(5), receiver.add(5));
  sender.matching.remove(sender.add(5));
  sender.matching.remove(sender.add(5));
  expectOpenTags(1);
  receiver.add(5);
  expectOpenTags(1);
  Party &gone = receiver.add(5);
  expectOpenTags(0);
  EXPECT_TRUE(gone.counterpart.load()->isFreed.load());
  for (const auto &party : receiver.parties)
    receiver.matching.remove(*party);
  Party &receive = receiver.add(5);
  expectOpenTags(1);
  expectPair(sender.add(5), receive);
  expectOpenTags(0);
}

} // namespace
} // namespace occl::partitioned
