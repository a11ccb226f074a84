#include "runtime/control/membership/consensus.h"

#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace occl::daemon {
namespace {

using namespace std::chrono_literals;

using Value = Consensus::Value;
using Record = Consensus::Record;

Value valueOf(uint64_t number) { return {number, {}}; }

/// Some voters, of which each sees records of the others when a test lets it.
class Voters {
public:
  explicit Voters(uint32_t numRanks) : seen(numRanks, std::vector<Record>(numRanks)) {
    for (uint32_t r = 0; r < numRanks; ++r)
      parts.emplace_back(r, numRanks);
  }

  void see(uint32_t reader, uint32_t writer) { seen[reader][writer] = parts[writer].record(); }
  void step(uint32_t rank) {
    std::vector<const Record *> all;
    for (const Record &record : seen[rank])
      all.push_back(&record);
    parts[rank].step(all, now);
  }
  /// All of `group` see each other and step, so often.
  void run(const std::vector<uint32_t> &group, int times) {
    for (int i = 0; i < times; ++i, now += 1ms)
      for (uint32_t r : group) {
        for (uint32_t w : group)
          see(r, w);
        step(r);
      }
  }
  void want(uint32_t rank, uint64_t number) { parts[rank].want(valueOf(number), now); }
  /// 0: nothing that the rank knows of.
  uint64_t chosen(uint32_t rank, uint64_t instance) const {
    const Value *value = parts[rank].chosenIn(instance);
    return value ? value->attempt : 0;
  }

  std::deque<Consensus> parts;
  std::vector<std::vector<Record>> seen; // [reader][writer]
  Consensus::Time now{};
};

TEST(Consensus, ThatOfTheOnlyProposerIsChosenByAll) {
  Voters voters(3);
  voters.want(1, 7);
  voters.run({0, 1, 2}, 10);
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(voters.chosen(r, 1), 7u);
}

TEST(Consensus, OfSeveralProposersOneIsFollowedByAll) {
  Voters voters(5);
  for (uint32_t r = 0; r < 5; ++r)
    voters.want(r, r + 1);
  voters.run({0, 1, 2, 3, 4}, 2000);
  ASSERT_NE(voters.chosen(0, 1), 0u);
  for (uint32_t r = 1; r < 5; ++r)
    EXPECT_EQ(voters.chosen(r, 1), voters.chosen(0, 1));
}

TEST(Consensus, AMinorityChoosesNothing) {
  Voters voters(5);
  voters.want(0, 1);
  voters.run({0, 1}, 2000);
  EXPECT_EQ(voters.chosen(0, 1), 0u);
  voters.run({0, 1, 2}, 2000);
  EXPECT_EQ(voters.chosen(2, 1), 1u);
}

TEST(Consensus, HalfOfThemChooseWithTheFirstAndNotWithoutIt) {
  Voters voters(4);
  voters.want(1, 1);
  voters.want(2, 2);
  voters.run({2, 3}, 2000);
  EXPECT_EQ(voters.chosen(2, 1), 0u);
  voters.run({0, 1}, 2000);
  EXPECT_EQ(voters.chosen(0, 1), 1u);
}

/// What may have been chosen is kept by whoever comes next.
TEST(Consensus, ALaterProposerTakesWhatAVoterHasAccepted) {
  Voters voters(3);
  voters.want(0, 1);
  voters.step(0); // a ballot
  voters.see(1, 0);
  voters.step(1); // is promised
  voters.see(0, 1);
  voters.step(0); // and proposed, and accepted by itself
  EXPECT_EQ(voters.parts[0].record().accepted, voters.parts[0].record().ballot);
  EXPECT_EQ(voters.chosen(0, 1), 0u);
  voters.want(2, 2); // rank 1 has not seen it
  voters.run({0, 2}, 2000);
  EXPECT_EQ(voters.chosen(2, 1), 1u);
}

/// Of two values that were accepted by one voter each.
TEST(Consensus, ALaterProposerTakesWhatWasAcceptedLast) {
  Voters voters(3);
  const auto tell = [&](uint32_t from, uint32_t to) {
    voters.see(to, from);
    voters.step(to);
  };
  voters.want(0, 1);
  voters.step(0);
  tell(0, 1);
  tell(1, 0); // rank 0 proposes 1, and nobody sees it
  voters.want(1, 2);
  voters.now += 2s;
  voters.step(1);
  tell(1, 2);
  tell(2, 1); // rank 1 proposes 2, and nobody sees it
  voters.want(2, 3);
  voters.now += 2s;
  voters.step(2);
  tell(2, 0);
  tell(2, 1);
  EXPECT_EQ(voters.parts[0].record().acceptedValue.attempt, 1u);
  EXPECT_EQ(voters.parts[1].record().acceptedValue.attempt, 2u);
  voters.see(2, 0);
  tell(1, 2);
  EXPECT_TRUE(voters.parts[2].record().isAccepting);
  EXPECT_EQ(voters.parts[2].record().proposal.attempt, 2u);
}

TEST(Consensus, ARankThatHasPromisedMoreAcceptsNoEarlierBallot) {
  Voters voters(3);
  voters.want(0, 1);
  voters.step(0);
  voters.see(1, 0);
  voters.step(1);
  voters.see(0, 1);
  voters.want(2, 2);
  voters.see(2, 0);
  voters.now += 1s;
  voters.step(2); // leaves the other ballot alone
  voters.now += 1s;
  voters.step(2); // a larger ballot
  voters.see(1, 2);
  voters.step(1);
  EXPECT_EQ(voters.parts[1].record().promised, voters.parts[2].record().ballot);
  voters.step(0);
  voters.see(1, 0);
  voters.step(1);
  EXPECT_EQ(voters.parts[1].record().accepted, 0u);
}

TEST(Consensus, ALateRankReadsTheChosenValue) {
  Voters voters(3);
  for (uint64_t instance : {1, 2, 3, 4}) {
    voters.want(0, 10 + instance);
    voters.run({0, 1}, 100);
    ASSERT_NE(voters.chosen(0, instance), 0u);
  }
  voters.see(2, 1);
  voters.step(2);
  for (uint64_t instance : {1, 2, 3, 4})
    EXPECT_EQ(voters.chosen(2, instance), 10 + instance);
}

/// Ranks that see each other late or never, stop, and want different things.
void chooseAtRandom(std::mt19937 &random, uint64_t &numChosen) {
  const uint32_t numRanks = 2 + random() % 5;
  Voters voters(numRanks);
  std::map<uint64_t, uint64_t> chosen;
  std::vector<std::vector<bool>> isCut(numRanks, std::vector<bool>(numRanks));
  for (auto &of : isCut)
    for (size_t w = 0; w < of.size(); ++w)
      of[w] = random() % 6 == 0;
  std::vector<bool> hasStopped(numRanks);
  for (int i = 0; i < 3000; ++i) {
    voters.now += std::chrono::microseconds(random() % 2000);
    const uint32_t r = random() % numRanks, w = random() % numRanks;
    if (random() % 2000 == 0)
      hasStopped[r] = true;
    if (!isCut[r][w])
      voters.see(r, w); // also what ranks have said that have stopped since
    if (hasStopped[r])
      continue;
    const uint64_t instance = voters.parts[r].record().instance;
    if (random() % 20 == 0)
      voters.want(r, 100 * instance + random() % 3);
    if (random() % 2 == 0)
      continue;
    voters.step(r);
    for (uint64_t done = instance; done < voters.parts[r].record().instance; ++done) {
      const uint64_t value = voters.chosen(r, done);
      if (value == 0)
        continue; // long ago
      EXPECT_EQ(value / 100, done) << "nobody wanted that";
      const auto [first, isNew] = chosen.emplace(done, value);
      EXPECT_EQ(first->second, value) << "instance " << done << ", rank " << r;
      numChosen += isNew;
    }
  }
}

TEST(Consensus, LateAndLostMessagesLeaveAllRanksWithOneChoice) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  uint64_t numChosen = 0;
  for (int trial = 0; trial < 2000 && !::testing::Test::HasFailure(); ++trial)
    chooseAtRandom(random, numChosen);
  EXPECT_GT(numChosen, 2000u);
}

} // namespace
} // namespace occl::daemon
