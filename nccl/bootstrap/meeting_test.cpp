// How ranks decide: every order of what happens, without sockets and clocks.
#include "nccl/bootstrap/meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace occl::nccl;

namespace {

const MachineId kHere = hashOf("here"), kThere = hashOf("there");
constexpr int32_t kRootsProcess = 1; // rank 1's
constexpr auto kPatience = std::chrono::seconds(2);

struct Ranks {
  explicit Ranks(uint32_t numRanks) : numRanks(numRanks), inbox(numRanks) {}

  void say(FromRankKind kind, uint32_t rank, int32_t result = ncclSuccess, int version = 22809) {
    FromRank message{};
    message.kind = kind;
    message.machine = machines.empty() ? kHere : machines[rank];
    message.process = static_cast<int32_t>(rank);
    message.numRanks = numRanks;
    message.rank = rank;
    message.version = version;
    message.result = result;
    message.host = "host" + std::to_string(rank);
    message.wish = wish;
    message.text = std::string("its reason");
    message.id.internal[0] = static_cast<char>('a' + rank);
    wasTaken = meeting.receive(message, now, send());
  }
  Meeting::Send send() {
    return [this](uint32_t rank, const FromRoot &message) {
      inbox.at(rank).push_back(message);
      order.push_back(rank);
    };
  }
  /// What all ranks were told last.
  bool allHave(FromRootKind kind) const {
    return std::all_of(inbox.begin(), inbox.end(), [&](const auto &messages) {
      return !messages.empty() && messages.back().kind == kind;
    });
  }
  std::string text(uint32_t rank) const { return inbox[rank].back().text.str(); }

  uint32_t numRanks;
  std::vector<MachineId> machines;
  std::string wish;
  Meeting meeting{kHere, kRootsProcess, kPatience};
  Meeting::Clock::time_point now{};
  std::vector<std::vector<FromRoot>> inbox;
  std::vector<uint32_t> order; // in which they were told
  bool wasTaken = false;
};

std::vector<uint32_t> anyOrder(uint32_t numRanks, std::mt19937 &random) {
  std::vector<uint32_t> order(numRanks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

} // namespace

TEST(Meeting, OfOneMachineIsLocalWhenAllAreThere) {
  Ranks ranks(3);
  ranks.say(FromRankKind::Hello, 2);
  ranks.say(FromRankKind::Hello, 0);
  EXPECT_FALSE(ranks.meeting.deadline()); // ranks may come when they like
  EXPECT_TRUE(ranks.inbox[0].empty());
  EXPECT_FALSE(ranks.meeting.isOver());
  ranks.say(FromRankKind::Hello, 1);
  EXPECT_TRUE(ranks.allHave(FromRootKind::Local));
  EXPECT_EQ(ranks.order, (std::vector<uint32_t>{0, 2, 1})); // whose process is the root, at the end
  EXPECT_TRUE(ranks.meeting.isOver());
}

TEST(Meeting, OfSeveralMachinesOrWishesGoesElsewhereInAnyOrder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Ranks ranks(4);
    if (round % 2)
      ranks.machines = {kHere, kHere, kThere, kHere};
    else
      ranks.wish = "more than there may be";
    const std::vector<uint32_t> order = anyOrder(4, random);
    for (uint32_t rank : order) {
      ranks.say(FromRankKind::Hello, rank);
      // Those that are asked answer sooner or later.
      if (random() % 2 && !ranks.inbox[rank].empty())
        ranks.say(FromRankKind::Prepared, rank);
    }
    EXPECT_TRUE(ranks.meeting.deadline());
    for (uint32_t rank : order)
      if (ranks.inbox[rank].back().kind == FromRootKind::Prepare)
        ranks.say(FromRankKind::Prepared, rank);
    ASSERT_TRUE(ranks.allHave(FromRootKind::Init));
    for (const auto &messages : ranks.inbox) {
      EXPECT_EQ(messages.size(), 2u);                 // each of them once
      EXPECT_EQ(messages.back().id.internal[0], 'a'); // rank 0's
    }
    for (uint32_t rank : order) {
      EXPECT_FALSE(ranks.meeting.isOver());
      ranks.say(FromRankKind::Done, rank);
    }
    EXPECT_TRUE(ranks.allHave(FromRootKind::Ready));
    EXPECT_TRUE(ranks.meeting.isOver());
    EXPECT_FALSE(ranks.meeting.deadline());
  }
}

/// Whichever rank lacks the other library, or has another version of it.
TEST(Meeting, OfSeveralMachinesWithoutAnotherNcclIsOcclsInAnyOrder) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Ranks ranks(4);
    ranks.machines = {kThere, kHere, kThere, kHere};
    const std::vector<uint32_t> order = anyOrder(4, random);
    const auto prepared = [&](uint32_t rank) {
      const bool isOne = rank == order[0] || (rank == order[1] && random() % 2 == 0);
      ranks.say(FromRankKind::Prepared, rank,
                isOne && round % 2 == 0 ? ncclSystemError : ncclSuccess,
                isOne && round % 2 != 0 ? 22703 : 22809);
    };
    for (uint32_t rank : order)
      ranks.say(FromRankKind::Hello, rank);
    for (uint32_t rank : order)
      prepared(rank);
    for (uint32_t rank : order)
      ASSERT_EQ(ranks.inbox[rank].back().kind,
                rank == 0 ? FromRootKind::Listen : FromRootKind::Prepare);
    EXPECT_TRUE(ranks.meeting.deadline());
    ranks.say(FromRankKind::Listening, 2); // not the one that was asked
    EXPECT_FALSE(ranks.meeting.isOver());
    ranks.say(FromRankKind::Listening, 0);
    ASSERT_TRUE(ranks.allHave(FromRootKind::Across));
    EXPECT_EQ(ranks.text(3), "its reason"); // what rank 0 has said
    EXPECT_TRUE(ranks.meeting.isOver());
  }
}

TEST(Meeting, FailsIfRankZeroCannotListen) {
  for (const bool isLate : {false, true}) {
    Ranks ranks(2);
    ranks.machines = {kThere, kHere};
    for (uint32_t rank : {0u, 1u})
      ranks.say(FromRankKind::Hello, rank);
    for (uint32_t rank : {0u, 1u})
      ranks.say(FromRankKind::Prepared, rank, ncclSystemError);
    if (isLate)
      ranks.meeting.expire(ranks.now + kPatience, ranks.send());
    else
      ranks.say(FromRankKind::Listening, 0, ncclSystemError);
    ASSERT_TRUE(ranks.allHave(FromRootKind::Failed));
    EXPECT_NE(ranks.text(1).find(isLate ? "ranks are missing: 0" : "rank 0 on host0"),
              std::string::npos)
        << ranks.text(1);
  }
}

TEST(Meeting, FailsOnAllWhateverFailsOnOne) {
  // Where rank 1 fails: opening the library, having another version, making the communicator,
  // going.
  for (int where = 0; where < 5; ++where) {
    Ranks ranks(3);
    ranks.wish = "its wish";
    ranks.say(FromRankKind::Hello, 0);
    ranks.say(FromRankKind::Hello, 1);
    ranks.say(FromRankKind::Prepared, 0);
    if (where == 0)
      ranks.say(FromRankKind::Prepared, 1, ncclSystemError);
    if (where == 1)
      ranks.say(FromRankKind::Prepared, 1, ncclSuccess, 22703);
    if (where == 2)
      ranks.meeting.leave(1, ranks.send());
    if (where > 2)
      ranks.say(FromRankKind::Prepared, 1);
    ranks.say(FromRankKind::Hello, 2); // which comes later hears of it as well
    if (where > 2) {
      ranks.say(FromRankKind::Prepared, 2);
      ranks.say(FromRankKind::Done, 0);
      if (where == 3)
        ranks.say(FromRankKind::Done, 1, ncclSystemError);
      else
        ranks.meeting.leave(1, ranks.send());
    }
    for (uint32_t rank : {0u, 2u}) {
      ASSERT_EQ(ranks.inbox[rank].back().kind, FromRootKind::Failed) << where;
      EXPECT_NE(ranks.text(rank).find("rank 1 on host1"), std::string::npos) << ranks.text(rank);
    }
    EXPECT_TRUE(ranks.meeting.isOver()) << where;
    const size_t numMessages = ranks.inbox[0].size();
    ranks.say(FromRankKind::Done, 2); // too late
    ranks.meeting.leave(0, ranks.send());
    ranks.meeting.expire(ranks.now + 10 * kPatience, ranks.send());
    EXPECT_EQ(ranks.inbox[0].size(), numMessages);
  }
}

TEST(Meeting, NamesWhoIsMissingAtTheDeadline) {
  Ranks ranks(40);
  ranks.machines.assign(40, kThere);
  ranks.say(FromRankKind::Hello, 3);
  ranks.say(FromRankKind::Prepared, 3);
  ranks.meeting.expire(ranks.now + kPatience - std::chrono::milliseconds(1), ranks.send());
  EXPECT_EQ(ranks.inbox[3].back().kind, FromRootKind::Prepare);
  ranks.meeting.expire(ranks.now + kPatience, ranks.send());
  ASSERT_EQ(ranks.inbox[3].back().kind, FromRootKind::Failed);
  EXPECT_EQ(ranks.inbox[3].back().result, ncclRemoteError);
  EXPECT_NE(ranks.text(3).find("after 2 s ranks are missing: 0, 1, 2, 4, 5"), std::string::npos)
      << ranks.text(3);
  EXPECT_NE(ranks.text(3).find("16 and more"), std::string::npos) << ranks.text(3);
}

TEST(Meeting, GivesMakingTheCommunicatorATimeOfItsOwn) {
  Ranks ranks(2);
  ranks.wish = "its wish";
  for (uint32_t rank : {0u, 1u})
    ranks.say(FromRankKind::Hello, rank);
  ranks.now += kPatience / 2;
  for (uint32_t rank : {0u, 1u})
    ranks.say(FromRankKind::Prepared, rank);
  ranks.say(FromRankKind::Done, 0);
  ranks.meeting.expire(ranks.now + kPatience / 2, ranks.send());
  EXPECT_EQ(ranks.inbox[1].back().kind, FromRootKind::Init);
  ranks.meeting.expire(ranks.now + kPatience, ranks.send());
  ASSERT_TRUE(ranks.allHave(FromRootKind::Failed));
  EXPECT_NE(ranks.text(0).find("in the other NCCL's communicator: 1"), std::string::npos)
      << ranks.text(0);
}

TEST(Meeting, RefusesRanksThatDoNotBelongThere) {
  Ranks ranks(3);
  ranks.say(FromRankKind::Prepared, 1); // before it has come
  EXPECT_FALSE(ranks.wasTaken);
  ranks.say(FromRankKind::Hello, 1);
  EXPECT_TRUE(ranks.wasTaken);
  ranks.say(FromRankKind::Hello, 1);
  EXPECT_FALSE(ranks.wasTaken);
  EXPECT_NE(ranks.meeting.refusal().text.str().find("rank 1 on host1 has come twice"),
            std::string::npos);
  EXPECT_EQ(ranks.inbox[1].back().kind, FromRootKind::Failed);

  Ranks others(2);
  others.say(FromRankKind::Hello, 0);
  others.numRanks = 4;
  others.say(FromRankKind::Hello, 1);
  EXPECT_TRUE(others.allHave(FromRootKind::Failed));
  EXPECT_NE(others.text(0).find("rank 1 on host1 has nranks 4, rank 0 on host0 has 2"),
            std::string::npos)
      << others.text(0);
}
