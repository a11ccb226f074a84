#include "runtime/control/membership/majority_agreement.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::daemon {
namespace {

using namespace std::chrono_literals;

using Clock = std::chrono::steady_clock;
using Members = std::vector<uint32_t>;
using transport::ShrinkRecord;

/// Records on their way between ranks, each of which is a thread.
class Links {
public:
  explicit Links(uint32_t numRanks)
      : numRanks(numRanks), links(numRanks, std::vector<Link>(numRanks)), hasEnded(numRanks) {}

  /// What `to` sees of `from` is late by this.
  void delay(uint32_t from, uint32_t to, std::chrono::microseconds by) {
    links[from][to].delay = by;
  }
  /// Nothing gets through any more, which `to` notices after a while.
  void cut(uint32_t from, uint32_t to) {
    std::lock_guard lock(mutex);
    links[from][to].cutAt = Clock::now();
  }
  void end(uint32_t rank) {
    std::lock_guard lock(mutex);
    hasEnded[rank] = Clock::now();
  }
  bool isEnded(uint32_t rank) {
    std::lock_guard lock(mutex);
    return hasEnded[rank].has_value();
  }

  std::unique_ptr<ShrinkRecords> of(uint32_t rank) { return std::make_unique<View>(*this, rank); }

  const uint32_t numRanks;

private:
  static constexpr auto kSilence = 20ms;

  struct Link {
    std::chrono::microseconds delay{0};
    std::optional<Clock::time_point> cutAt;
    std::deque<std::pair<Clock::time_point, ShrinkRecord>> underWay;
    ShrinkRecord last;
  };
  struct View final : ShrinkRecords {
    View(Links &all, uint32_t rank) : all(all), rank(rank) {}
    std::optional<ShrinkRecord> load(uint32_t from) const override {
      std::lock_guard lock(all.mutex);
      Link &link = all.links[from][rank];
      while (!link.underWay.empty() && link.underWay.front().first <= Clock::now()) {
        link.last = link.underWay.front().second;
        link.underWay.pop_front();
      }
      return link.last;
    }
    void store(const ShrinkRecord &record) override {
      std::lock_guard lock(all.mutex);
      for (uint32_t to = 0; to < all.numRanks; ++to)
        if (Link &link = all.links[rank][to]; !link.cutAt)
          link.underWay.emplace_back(Clock::now() + link.delay, record);
    }
    bool isGone(uint32_t from) const override {
      std::lock_guard lock(all.mutex);
      const Link &link = all.links[from][rank];
      return (link.cutAt && Clock::now() > *link.cutAt + kSilence) ||
             (all.hasEnded[from] && Clock::now() > *all.hasEnded[from] + link.delay);
    }
    Links &all;
    const uint32_t rank;
  };

  std::mutex mutex;
  std::vector<std::vector<Link>> links; // [from][to]
  std::vector<std::optional<Clock::time_point>> hasEnded;
};

std::vector<bool> without(uint32_t numRanks, const Members &excluded) {
  std::vector<bool> set(numRanks, false);
  for (uint32_t r : excluded)
    set[r] = true;
  return set;
}

/// body(rank, its part) on a thread for each rank; another one votes until all are through, or the
/// rank has ended.
void onAll(Links &links, const std::function<void(uint32_t, MajorityAgreement &)> &body) {
  std::deque<MajorityAgreement> parts;
  for (uint32_t r = 0; r < links.numRanks; ++r)
    parts.emplace_back(r, links.numRanks, links.of(r));
  std::vector<std::thread> threads, voters;
  std::atomic<bool> isOver{false};
  for (uint32_t r = 0; r < links.numRanks; ++r) {
    threads.emplace_back([&, r] { body(r, parts[r]); });
    voters.emplace_back([&, r] {
      for (; !isOver && !links.isEnded(r); std::this_thread::sleep_for(1ms))
        parts[r].vote();
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  isOver = true;
  for (std::thread &voter : voters)
    voter.join();
}

/// One call with one attempt.
StatusOr<Agreed> agree(MajorityAgreement &part, uint32_t numRanks, const Members &excluded,
                       std::chrono::milliseconds timeout) {
  part.begin(timeout);
  return part.agree(without(numRanks, excluded), {}, Deadline(timeout));
}

Verdict conclude(MajorityAgreement &part, const Members &members, bool formed,
                 std::chrono::milliseconds timeout) {
  const auto verdict = part.conclude(members, formed, Deadline(timeout));
  EXPECT_TRUE(verdict.ok()) << verdict.status().message();
  return verdict.ok() ? *verdict : Verdict();
}

TEST(MajorityAgreement, AllThatAnswerAreMembersInEachCall) {
  Links links(4);
  onAll(links, [](uint32_t, MajorityAgreement &part) {
    uint64_t before = 0;
    for (int call = 0; call < 4; ++call) {
      const auto agreed = agree(part, 4, {}, 60s);
      ASSERT_TRUE(agreed.ok()) << agreed.status().message();
      EXPECT_EQ(agreed->members, (Members{0, 1, 2, 3}));
      const Verdict verdict = conclude(part, agreed->members, true, 60s);
      EXPECT_EQ(verdict.kind, Verdict::Confirmed);
      EXPECT_EQ(verdict.attempt, part.attempt());
      EXPECT_GT(verdict.attempt, before);
      before = verdict.attempt;
    }
  });
}

TEST(MajorityAgreement, TheFirstMembersOfferIsThatOfTheAttempt) {
  Links links(3);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    for (uint64_t call = 1; call < 4; ++call) {
      part.begin(60s);
      const auto agreed = part.agree(without(3, {}), {{10 * call + rank, 0}, 4096}, Deadline(60s));
      ASSERT_TRUE(agreed.ok()) << agreed.status().message();
      EXPECT_EQ(part.offerOf(0).handle.place, 10 * call);
      EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
    }
  });
}

TEST(MajorityAgreement, DifferentSizesAreAnErrorThatNamesBoth) {
  Links links(2);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    part.begin(60s);
    const auto agreed = part.agree(without(2, {}), {{}, 4096 + rank}, Deadline(60s));
    EXPECT_EQ(agreed.status().code(), StatusCode::Mismatch);
    EXPECT_NE(agreed.status().message().find("rank " + std::to_string(1 - rank) +
                                             " wants a segment of " + std::to_string(4097 - rank)),
              std::string::npos)
        << agreed.status().message();
  });
}

/// Also of a rank that has found out before, and left.
TEST(MajorityAgreement, ADifferentSizeIsNamedThoughItsRankHasGone) {
  Links links(2);
  ShrinkRecord other;
  other.call = other.attempt = other.abandoned = 1;
  other.segmentBytes = 4096;
  links.of(0)->store(other);
  links.end(0);
  std::this_thread::sleep_for(1ms);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    if (rank == 0)
      return;
    part.begin(60s);
    const auto agreed = part.agree(without(2, {}), {{}, 8192}, Deadline(60s));
    EXPECT_EQ(agreed.status().code(), StatusCode::Mismatch) << agreed.status().message();
  });
}

/// They need not call, only vote.
TEST(MajorityAgreement, MostMayBeExcluded) {
  Links links(5);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    if (rank < 3)
      return;
    const auto agreed = agree(part, 5, rank == 3 ? Members{0, 1, 2} : Members{}, 60s);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{3, 4}));
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

TEST(MajorityAgreement, AnExcludedRankIsToldSoForGood) {
  Links links(3);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    const auto agreed = agree(part, 3, rank == 1 ? Members{} : Members{1}, 60s);
    if (rank != 1) {
      EXPECT_EQ(agreed->members, (Members{0, 2}));
      EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
      return;
    }
    EXPECT_EQ(agreed.status().code(), StatusCode::PeerFailed);
    EXPECT_NE(agreed.status().message().find("rank 1 is not a member"), std::string::npos);
    EXPECT_EQ(agree(part, 3, {}, 60s).status().code(), StatusCode::PeerFailed);
  });
}

TEST(MajorityAgreement, ThoseWhoDoNotComeAreOut) {
  Links links(5);
  onAll(links, [&](uint32_t rank, MajorityAgreement &part) {
    if (rank == 1)
      return;
    if (rank == 4)
      return links.end(rank);
    const auto agreed = agree(part, 5, {}, 300ms);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{0, 2, 3}));
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

TEST(MajorityAgreement, AMinorityIsToldWhoIsMissing) {
  Links links(5);
  for (uint32_t from : {2u, 3u, 4u})
    for (uint32_t to : {0u, 1u})
      links.delay(from, to, 100s);
  onAll(links, [&](uint32_t rank, MajorityAgreement &part) {
    if (rank > 1)
      return;
    Status why;
    part.begin(50ms);
    while (why.ok()) {
      const auto agreed = part.agree(without(5, {}), {}, Deadline(50ms));
      why = agreed.status();
      if (agreed.ok()) {
        EXPECT_EQ(conclude(part, agreed->members, true, 50ms).kind, Verdict::Open);
      }
    }
    EXPECT_EQ(why.code(), StatusCode::Timeout);
    EXPECT_NE(why.message().find("ranks 2, 3, 4 did not answer rank"), std::string::npos)
        << why.message();
  });
}

/// Long before any deadline.
TEST(MajorityAgreement, WithoutAMajorityNothingIsWaitedFor) {
  Links links(4);
  onAll(links, [&](uint32_t rank, MajorityAgreement &part) {
    if (rank % 2 == 0)
      return links.end(rank);
    const auto begin = Clock::now();
    EXPECT_EQ(agree(part, 4, {}, 60s).status().code(), StatusCode::Timeout);
    EXPECT_LT(Clock::now() - begin, 20s);
  });
}

TEST(MajorityAgreement, AfterATimeoutAllMayTryAgain) {
  Links links(3);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    if (rank == 2) { // alone, as nobody else has called yet
      const auto alone = agree(part, 3, {0, 1}, 5ms);
      ASSERT_TRUE(alone.ok()) << alone.status().message();
      conclude(part, alone->members, false, 5ms);
      part.abandon();
    } else {
      std::this_thread::sleep_for(100ms);
    }
    const auto agreed = agree(part, 3, {}, 60s);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{0, 1, 2}));
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

TEST(MajorityAgreement, WhereOneCannotFormTheGroupTheOthersTryAgain) {
  Links links(4);
  onAll(links, [&](uint32_t rank, MajorityAgreement &part) {
    part.begin(60s);
    for (int attempt = 0;; ++attempt) {
      const auto agreed = part.agree(without(4, {}), {}, Deadline(60s));
      ASSERT_TRUE(agreed.ok()) << agreed.status().message();
      const Verdict verdict = conclude(part, agreed->members, rank != 1, 60s);
      if (rank == 1) {
        EXPECT_EQ(verdict.kind, Verdict::Refused);
        return links.end(rank);
      }
      ASSERT_LT(attempt, 5);
      if (verdict.kind != Verdict::Confirmed)
        continue;
      EXPECT_EQ(agreed->members, (Members{0, 2, 3}));
      return;
    }
  });
}

TEST(MajorityAgreement, OfTwoThatDoNotReachEachOtherTheLowerOneIsIn) {
  Links links(4);
  links.cut(1, 3);
  links.cut(3, 1);
  std::this_thread::sleep_for(50ms); // noticed
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    const auto agreed = agree(part, 4, {}, 300ms);
    if (rank == 3) {
      EXPECT_EQ(agreed.status().code(), StatusCode::PeerFailed) << agreed.status().message();
      return;
    }
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{0, 1, 2})) << rank;
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

/// The first deadline counts for all that have come by then.
TEST(MajorityAgreement, ALeaderThatComesLaterIsNotSkipped) {
  Links links(5);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    if (rank == 4)
      return; // lives, and does not call
    if (rank != 1)
      std::this_thread::sleep_for(450ms);
    const auto agreed = agree(part, 5, {}, 500ms);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{0, 1, 2, 3}));
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

/// The lowest one has stopped, once it has come.
TEST(MajorityAgreement, TheNextOneNamesTheMembersIfTheLowestDoesNot) {
  Links links(4);
  ShrinkRecord stopped;
  stopped.call = stopped.attempt = 1;
  links.of(0)->store(stopped);
  links.delay(0, 0, 100s);
  for (uint32_t to : {1u, 2u, 3u})
    links.delay(0, to, 100s);
  onAll(links, [](uint32_t rank, MajorityAgreement &part) {
    if (rank == 0)
      return;
    const auto agreed = agree(part, 4, {}, 200ms);
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_EQ(agreed->members, (Members{1, 2, 3}));
    EXPECT_EQ(conclude(part, agreed->members, true, 60s).kind, Verdict::Confirmed);
  });
}

/// What forms the groups of a test: whoever comes with the same members in the same attempt.
class Groups {
public:
  bool form(uint64_t attempt, const Members &members, std::chrono::milliseconds patience) {
    for (const Deadline deadline(patience); !deadline.passed();
         std::this_thread::sleep_for(200us)) {
      std::lock_guard lock(mutex);
      auto &here = waiting[{attempt, members}];
      here.insert(std::this_thread::get_id());
      if (here.size() == members.size())
        return true;
    }
    return false;
  }

private:
  std::mutex mutex;
  std::map<std::pair<uint64_t, Members>, std::set<std::thread::id>> waiting;
};

struct RandomTrial {
  struct Rank {
    bool comes = true;
    std::chrono::microseconds delay{0}; // before it comes
    int endsIn = 0;   // it dies after it has agreed (1), formed (2), concluded (3)
    int numCalls = 1; // at most, as long as none succeeds
    Members excluded;
  };
  explicit RandomTrial(std::mt19937 &random)
      : links(3 + random() % 4), ranks(links.numRanks), outcomes(links.numRanks) {
    for (uint32_t r = 0; r < links.numRanks; ++r) {
      ranks[r].comes = random() % 6 != 0;
      ranks[r].delay = std::chrono::microseconds(random() % 30000);
      ranks[r].endsIn = random() % 4 == 0 ? 1 + static_cast<int>(random() % 3) : 0;
      ranks[r].numCalls = 1 + static_cast<int>(random() % 3);
      if (random() % 4 == 0)
        ranks[r].excluded = {(r + 1) % links.numRanks};
      for (uint32_t to = 0; to < links.numRanks; ++to) {
        links.delay(r, to, std::chrono::microseconds(random() % 3000));
        if (random() % 10 == 0)
          cuts.emplace_back(r, to);
      }
    }
  }

  void run() {
    std::thread cutter([&] {
      for (const auto &[from, to] : cuts) {
        std::this_thread::sleep_for(5ms);
        links.cut(from, to);
      }
    });
    onAll(links, [&](uint32_t rank, MajorityAgreement &part) {
      std::this_thread::sleep_for(ranks[rank].delay);
      if (ranks[rank].comes)
        runRank(rank, part);
    });
    cutter.join();
  }

  /// As Shrinker does.
  void runRank(uint32_t rank, MajorityAgreement &part) {
    std::map<uint64_t, Members> formed;
    for (int call = 0; call < ranks[rank].numCalls; ++call) {
      part.begin(40ms);
      for (bool goesOn = true; goesOn;)
        goesOn = attempt(rank, part, formed);
      if (links.isEnded(rank) || !outcomes[rank].second.empty())
        return;
      part.abandon();
    }
  }

  /// Whether there is to be another one.
  bool attempt(uint32_t rank, MajorityAgreement &part, std::map<uint64_t, Members> &formed) {
    const Rank &plan = ranks[rank];
    const auto succeed = [&](uint64_t attempt) {
      if (formed.count(attempt))
        outcomes[rank] = {attempt, formed[attempt]};
      return false;
    };
    const auto end = [&] {
      links.end(rank);
      return false;
    };
    const auto agreed = part.agree(without(links.numRanks, plan.excluded), {}, Deadline(40ms));
    if (plan.endsIn == 1)
      return end();
    if (!agreed.ok())
      return false;
    if (agreed->confirmed)
      return succeed(*agreed->confirmed);
    const bool isFormed = groups.form(part.attempt(), agreed->members, 30ms);
    if (isFormed)
      formed[part.attempt()] = agreed->members;
    if (plan.endsIn == 2)
      return end();
    const auto verdict = part.conclude(agreed->members, isFormed, Deadline(40ms));
    if (verdict.ok() && verdict->kind == Verdict::Refused)
      formed.erase(part.attempt());
    if (verdict.ok() && verdict->kind == Verdict::Confirmed)
      succeed(verdict->attempt);
    if (plan.endsIn == 3)
      return end();
    return verdict.ok() && verdict->kind != Verdict::Confirmed;
  }

  Links links;
  Groups groups;
  std::vector<Rank> ranks;
  std::vector<std::pair<uint32_t, uint32_t>> cuts;
  std::vector<std::pair<uint64_t, Members>> outcomes; // without members: none
};

TEST(MajorityAgreement, AtMostOneGroupGoesOnWhateverHappens) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  int numWithGroup = 0;
  for (int i = 0; i < 50 && !::testing::Test::HasFailure(); ++i) {
    RandomTrial trial(random);
    trial.run();
    std::set<std::pair<uint64_t, Members>> groups;
    for (const auto &outcome : trial.outcomes)
      if (!outcome.second.empty())
        groups.insert(outcome);
    EXPECT_LE(groups.size(), 1u) << "trial " << i;
    numWithGroup += static_cast<int>(groups.size());
  }
  EXPECT_GT(numWithGroup, 8);
}

} // namespace
} // namespace occl::daemon
