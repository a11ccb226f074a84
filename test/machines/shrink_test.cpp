// Communicators of several machines of which some ranks go on in a smaller one: after a rank or a
// whole machine was lost, or without that.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

using Ranks = std::vector<uint32_t>;

std::string contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? "" : "expected '" + part + "' in: " + text;
}

/// Collectives and transfers.
std::string use(occlComm_t comm) {
  uint32_t rank = 0, size = 0;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &size);
  std::string wrong = runCollectives(comm, 3000);
  return wrong.empty() ? TransferGraph(size, 20, 100000, 1).run(comm, rank) : wrong;
}

/// Shrinks, expects that just `members` are left, of which this rank is one, and uses it.
std::string shrinkTo(const Ranks &members, uint32_t rank, occlComm_t comm, occlComm_t &smaller,
                     const Ranks &excluded = {}) {
  smaller = nullptr;
  if (occlCommShrink(comm, excluded.data(), static_cast<uint32_t>(excluded.size()), nullptr,
                     &smaller) != occlSuccess)
    return lastError("occlCommShrink");
  uint32_t newRank = 0, size = 0;
  occlCommRank(smaller, &newRank);
  occlCommSize(smaller, &size);
  const auto place = std::ranges::lower_bound(members, rank) - members.begin();
  if (newRank != place || size != members.size())
    return "it is rank " + std::to_string(newRank) + " of " + std::to_string(size) + ", expected " +
           std::to_string(place) + " of " + std::to_string(members.size());
  return use(smaller);
}

void callUntilFailure(occlComm_t comm) {
  std::vector<float> input(1000, 1), output(1000);
  while (occlAllReduce(input.data(), output.data(), input.size(), occlFloat32, occlSum, comm,
                       nullptr) == occlSuccess) {
  }
}

/// While all work.
void receiveSoon(int signal) {
  std::thread([signal] {
    std::this_thread::sleep_for(200ms);
    raise(signal);
  }).detach();
}

TEST(Shrink, WithoutAFailureAndAgain) {
  onIslands({0, 0, 1, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    occlComm_t smaller = nullptr, smallest = nullptr;
    if (rank == 1) // excluded: it does not call, and its communicator stays as it is
      return use(comm);
    std::string wrong = shrinkTo({0, 2, 3}, rank, comm, smaller, {1});
    if (wrong.empty() && rank != 0)
      wrong = shrinkTo({1, 2}, rank - 1, smaller, smallest, {0});
    if (wrong.empty())
      wrong = use(comm); // with rank 1
    occlCommDestroy(smallest);
    occlCommDestroy(smaller);
    return wrong;
  });
}

TEST(Shrink, TheSameCommunicatorAgain) {
  onIslands({0, 1, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    std::string wrong;
    for (int call = 0; call < 6 && wrong.empty(); ++call) {
      occlComm_t smaller = nullptr;
      wrong = shrinkTo({0, 1, 2}, rank, comm, smaller);
      occlCommDestroy(smaller);
    }
    return wrong;
  });
}

TEST(Shrink, ARankThatOthersExcludeIsToldSo) {
  onIslands({0, 1, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    occlComm_t smaller = nullptr;
    std::string wrong;
    if (rank == 1) {
      if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlPeerFailed)
        return "not left out";
      return contains(occlGetLastError(), "rank 1 is not a member");
    }
    wrong = shrinkTo({0, 2}, rank, comm, smaller, {1});
    occlCommDestroy(smaller);
    return wrong;
  });
}

/// What is excluded votes, though it calls nothing.
TEST(Shrink, MostMayBeExcluded) {
  onIslands({0, 0, 1, 1, 2}, [](occlComm_t comm, uint32_t rank) -> std::string {
    occlComm_t smaller = nullptr;
    std::string wrong;
    if (rank == 1 || rank == 4)
      wrong = shrinkTo({1, 4}, rank, comm, smaller, {0, 2, 3});
    occlCommDestroy(smaller);
    return wrong.empty() ? use(comm) : wrong;
  });
}

TEST(Shrink, DifferentArenasAreAnErrorThatNamesBoth) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    occlComm_t smaller = nullptr;
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.arenaBytes = (8 + 8 * rank) << 20;
    if (occlCommShrink(comm, nullptr, 0, &config, &smaller) != occlMismatch)
      return lastError("expected occlMismatch");
    return contains(occlGetLastError(), "wants a segment of");
  });
}

struct Loss {
  std::vector<uint32_t> hosts;
  Ranks lost;
  int signal = SIGKILL;
};

/// The lost ranks end, or stop, while all work; the others go on.
std::string goOnWithout(const Loss &loss, uint32_t rank, const std::string &address) {
  const auto numRanks = static_cast<uint32_t>(loss.hosts.size());
  const auto isLost = [&](uint32_t r) { return std::ranges::count(loss.lost, r) != 0; };
  occlComm_t comm = nullptr, smaller = nullptr;
  const occlConfig_t config = withTimeout(loss.signal == SIGSTOP ? 1500 : 20000);
  if (std::string wrong = joinOn(loss.hosts[rank], comm, numRanks, rank, address, &config);
      !wrong.empty())
    return wrong;
  std::string wrong = runCollectives(comm, 100);
  if (isLost(rank))
    receiveSoon(loss.signal);
  callUntilFailure(comm);
  if (isLost(rank)) { // it had stopped, and goes on later than all others
    if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlPeerFailed)
      return "not left out";
    return contains(occlGetLastError(), "is not a member");
  }
  Ranks members;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (!isLost(r))
      members.push_back(r);
  if (wrong.empty())
    wrong = shrinkTo(members, rank, comm, smaller);
  occlCommDestroy(comm); // at once: others may not know of their success yet
  if (wrong.empty())
    wrong = use(smaller);
  occlCommDestroy(smaller);
  return wrong;
}

class ShrunkAfter : public ::testing::TestWithParam<Loss> {};

TEST_P(ShrunkAfter, TheOthersGoOn) {
  const Loss &loss = GetParam();
  const std::string address = newAddress();
  const auto numRanks = static_cast<uint32_t>(loss.hosts.size());
  Processes processes(numRanks, [&](uint32_t rank) { return goOnWithout(loss, rank, address); });
  for (uint32_t r = 0; r < numRanks; ++r)
    if (std::ranges::count(loss.lost, r) == 0) {
      EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
    }
  for (uint32_t r : loss.lost) {
    if (loss.signal == SIGSTOP)
      processes.signal(r, SIGCONT);
    EXPECT_EQ(processes.join(r), loss.signal == SIGSTOP ? 0 : -1)
        << "rank " << r << ": " << processes.wrong(r);
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, ShrunkAfter,
                         ::testing::Values(Loss{{0, 0, 1, 1}, {0}}, Loss{{0, 0, 1, 1}, {3}},
                                           Loss{{0, 0, 1, 1}, {2, 3}}, Loss{{0, 1, 2}, {0}},
                                           Loss{{0, 1, 1}, {0}}, Loss{{0, 0, 1, 2, 2}, {1, 2}},
                                           Loss{{0, 0, 1, 1}, {2}, SIGSTOP},
                                           Loss{{0, 0, 1, 1}, {0}, SIGSTOP}));

/// Half of the ranks are left, and not the first one: on the other side others might go on.
TEST(Shrink, AHalfWithoutTheFirstRankIsRefused) {
  const std::string address = newAddress();
  Processes processes(4, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr, smaller = nullptr;
    const occlConfig_t config = withTimeout(500);
    if (std::string wrong = joinOn(rank / 2, comm, 4, rank, address, &config); !wrong.empty())
      return wrong;
    if (std::string wrong = runCollectives(comm, 100); !wrong.empty())
      return wrong;
    if (rank < 2)
      receiveSoon(SIGKILL);
    callUntilFailure(comm);
    if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlTimeout)
      return lastError("expected occlTimeout");
    const std::string text = occlGetLastError();
    return contains(text, "a majority has to, or half of them with rank 0") +
           contains(text, "; ranks 0, 1");
  });
  for (uint32_t r = 0; r < 4; ++r)
    EXPECT_EQ(processes.join(r), r < 2 ? -1 : 0) << "rank " << r << ": " << processes.wrong(r);
}

TEST(Shrink, AfterAnAbort) {
  onIslands({0, 1, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    if (rank == 2)
      occlCommAbort(comm);
    callUntilFailure(comm);
    occlComm_t smaller = nullptr;
    std::string wrong = shrinkTo({0, 1, 2}, rank, comm, smaller);
    occlCommDestroy(smaller);
    return wrong;
  });
}

/// One more dies at any time after a failure, most often while the rest shrinks. It is left out
/// then, or by the next shrinking.
std::string loseOneMore(uint32_t rank, uint32_t victim, std::chrono::microseconds lives,
                        const std::string &address) {
  constexpr uint32_t kRanks = 6;
  occlComm_t comm = nullptr;
  const occlConfig_t config = withTimeout(3000);
  if (std::string wrong = joinOn(rank / 2, comm, kRanks, rank, address, &config); !wrong.empty())
    return wrong;
  if (std::string wrong = runCollectives(comm, 10); !wrong.empty())
    return wrong;
  if (rank == 5)
    receiveSoon(SIGKILL);
  callUntilFailure(comm);
  if (rank == victim)
    std::thread([lives] {
      std::this_thread::sleep_for(lives);
      raise(SIGKILL);
    }).detach();
  for (uint32_t size = kRanks; size != kRanks - 2;) {
    occlComm_t smaller = nullptr;
    if (occlCommShrink(comm, nullptr, 0, nullptr, &smaller) != occlSuccess)
      return lastError("occlCommShrink");
    occlCommDestroy(comm);
    comm = smaller;
    occlCommSize(comm, &size);
    if (size == kRanks - 1)
      callUntilFailure(comm);
  }
  std::string wrong = use(comm);
  occlCommDestroy(comm);
  return wrong;
}

TEST(Shrink, OneMoreIsLostMeanwhile) {
  std::mt19937 random(static_cast<uint32_t>(printedSeed()));
  for (int trial = 0; trial < 12 && !::testing::Test::HasFailure(); ++trial) {
    const std::string address = newAddress();
    const uint32_t victim = random() % 5;
    const std::chrono::microseconds lives(random() % (trial % 2 ? 60000 : 15000));
    Processes processes(6,
                        [&](uint32_t rank) { return loseOneMore(rank, victim, lives, address); });
    for (uint32_t r = 0; r < 6; ++r)
      EXPECT_EQ(processes.join(r), r == victim || r == 5 ? -1 : 0)
          << "rank " << r << ": " << processes.wrong(r) << "; rank " << victim << " lived for "
          << lives.count() << " us";
  }
}

} // namespace
} // namespace occl::communicator::testing
