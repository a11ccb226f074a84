// Communicators of several machines that are divided: into some of several machines again, and of
// one.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/api/testing/transfer_graph.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

std::string contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? "" : "expected '" + part + "' in: " + text;
}

/// Divides it, and checks who this rank has become: `rank` of `size`; in none if size is 0.
std::string divide(occlComm_t parent, int32_t colour, int32_t key, uint32_t rank, uint32_t size,
                   occlComm_t &child) {
  child = nullptr;
  if (occlCommSplit(parent, colour, key, nullptr, &child) != occlSuccess)
    return lastError("occlCommSplit");
  if (size == 0)
    return child ? "a communicator without a colour" : "";
  uint32_t gotRank = 0, gotSize = 0;
  occlCommRank(child, &gotRank);
  occlCommSize(child, &gotSize);
  return gotRank == rank && gotSize == size
             ? ""
             : "it is rank " + std::to_string(gotRank) + " of " + std::to_string(gotSize) +
                   ", expected " + std::to_string(rank) + " of " + std::to_string(size);
}

/// Collectives and transfers.
std::string use(occlComm_t comm, uint64_t seed) {
  uint32_t rank = 0, size = 0;
  occlCommRank(comm, &rank);
  occlCommSize(comm, &size);
  std::string wrong = runCollectives(comm, 3000);
  return wrong.empty() ? TransferGraph(size, 40, 200000, seed).run(comm, rank) : wrong;
}

class Divided : public ::testing::TestWithParam<std::vector<uint32_t>> {};

/// By a number that each rank has: in the order of ranks, or in the opposite one.
TEST_P(Divided, ByColours) {
  const std::vector<uint32_t> &hosts = GetParam();
  const auto numRanks = static_cast<uint32_t>(hosts.size());
  const uint64_t seed = printedSeed();
  const auto parity = [](uint32_t r) { return r % 2; };
  const auto host = [&](uint32_t r) { return hosts[r]; };
  const auto none = [](uint32_t) { return 0u; };
  onIslands(hosts, [&](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    const auto by = [&](const auto &colour, bool isReversed) {
      uint32_t before = 0, size = 0;
      for (uint32_t r = 0; r < numRanks; ++r) {
        size += colour(r) == colour(rank);
        before += colour(r) == colour(rank) && (isReversed ? r > rank : r < rank);
      }
      occlComm_t child = nullptr;
      if (wrong.empty())
        wrong = divide(comm, static_cast<int32_t>(colour(rank)),
                       isReversed ? -static_cast<int32_t>(rank) : 0, before, size, child);
      if (wrong.empty())
        wrong = use(child, seed);
      occlCommDestroy(child);
    };
    for (bool isReversed : {false, true}) {
      by(parity, isReversed);
      by(host, isReversed);
      by(none, isReversed);
    }
    return wrong.empty() ? use(comm, seed) : wrong;
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Divided,
                         ::testing::Values(std::vector<uint32_t>{0, 1},
                                           std::vector<uint32_t>{0, 0, 1, 1},
                                           std::vector<uint32_t>{0, 1, 1, 0, 2}));

const std::vector<uint32_t> kHosts = {0, 0, 1, 1};
constexpr uint32_t kRanks = 4;

TEST(DividedOnce, WithoutAColourIsInNone) {
  const uint64_t seed = printedSeed();
  onIslands(kHosts, [&](occlComm_t comm, uint32_t rank) {
    occlComm_t child = nullptr;
    std::string wrong = divide(comm, rank == 0 ? -1 : 3, 0, rank - 1, rank == 0 ? 0 : 3, child);
    if (wrong.empty() && child)
      wrong = use(child, seed);
    occlCommDestroy(child);
    return wrong;
  });
}

/// Without the one that it came of, and while both are used.
TEST(DividedOnce, IsOnItsOwn) {
  const uint64_t seed = printedSeed();
  onIslands(kHosts, [&](occlComm_t comm, uint32_t rank) {
    occlComm_t first = nullptr, second = nullptr;
    std::string wrong = divide(comm, 0, 0, rank, kRanks, first);
    if (wrong.empty())
      wrong = divide(first, static_cast<int32_t>(rank % 2), 0, rank / 2, 2, second);
    std::string wrongToo;
    if (wrong.empty()) {
      std::thread other([&] { wrongToo = use(second, seed); });
      wrong = use(comm, seed);
      other.join();
    }
    occlCommDestroy(first);
    if (wrong.empty() && wrongToo.empty())
      wrong = use(second, seed + 1);
    occlCommDestroy(second);
    return wrong + wrongToo;
  });
}

/// So it does what one of several machines does not.
TEST(DividedOnce, OfOneIslandIsOfOneMachine) {
  const uint64_t seed = printedSeed();
  onIslands(kHosts, [&](occlComm_t comm, uint32_t rank) -> std::string {
    occlComm_t child = nullptr, smaller = nullptr;
    std::string wrong = divide(comm, static_cast<int32_t>(kHosts[rank]), 0, rank % 2, 2, child);
    if (wrong.empty() && occlCommShrink(child, nullptr, 0, nullptr, &smaller) != occlSuccess)
      wrong = lastError("occlCommShrink");
    if (wrong.empty())
      wrong = use(smaller, seed);
    occlCommDestroy(smaller);
    occlCommDestroy(child);
    return wrong;
  });
}

/// Others know why it is not made, and may try again.
TEST(DividedOnce, ARankThatDoesNotComeIsNamed) {
  const uint64_t seed = printedSeed();
  onIslands(
      kHosts,
      [&](occlComm_t comm, uint32_t rank) -> std::string {
        occlComm_t child = nullptr;
        const occlConfig_t soon = withTimeout(500);
        if (rank != 2) {
          if (occlCommSplit(comm, 0, 0, &soon, &child) == occlSuccess)
            return "without rank 2";
          if (std::string wrong = contains(occlGetLastError(), "dividing the communicator: rank ");
              !wrong.empty())
            return wrong;
        } else {
          std::this_thread::sleep_for(1500ms);
          if (occlCommSplit(comm, 0, 0, &soon, &child) == occlSuccess)
            return "after the others";
        }
        std::string wrong = divide(comm, 0, 0, rank, kRanks, child);
        if (wrong.empty())
          wrong = use(child, seed);
        occlCommDestroy(child);
        return wrong;
      },
      withTimeout(20000));
}

TEST(DividedOnce, ARankThatIsKilledIsNamed) {
  constexpr uint32_t kVictim = 3;
  const std::string address = newAddress();
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr, child = nullptr;
    if (std::string wrong = joinOn(kHosts[rank], comm, kRanks, rank, address); !wrong.empty())
      return wrong;
    if (rank == kVictim) {
      std::this_thread::sleep_for(300ms); // until the others have joined
      raise(SIGKILL);
    }
    const occlResult_t result = occlCommSplit(comm, 0, 0, nullptr, &child);
    const std::string text = occlGetLastError();
    occlCommDestroy(comm);
    return result == occlPeerFailed ? contains(text, "dividing the communicator: rank ")
                                    : "no failure: " + text;
  });
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0)
        << "rank " << r << ": " << processes.wrong(r);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "long before any deadline";
}

/// Also not by one that comes much later, after two divisions that it has missed.
TEST(DividedOnce, ARankThatHasGivenUpTwiceIsNotWaitedFor) {
  const uint64_t seed = printedSeed();
  onIslands({0, 1, 1}, [&](occlComm_t comm, uint32_t rank) -> std::string {
    const occlConfig_t soon = withTimeout(300), late = withTimeout(40000);
    std::this_thread::sleep_for(rank * 1500ms);
    const auto begin = std::chrono::steady_clock::now();
    occlComm_t child = nullptr;
    for (int i = 0; i < 2; ++i)
      if (occlCommSplit(comm, 0, 0, rank == 0 ? &soon : &late, &child) == occlSuccess)
        return "not all were there";
    if (std::chrono::steady_clock::now() - begin > 15s)
      return std::string("waited for nobody: ") + occlGetLastError();
    std::string wrong = divide(comm, 0, 0, rank, 3, child);
    if (wrong.empty())
      wrong = use(child, seed);
    occlCommDestroy(child);
    return wrong;
  });
}

/// At any time of it, so also once all have come and make their new communicator.
TEST(DividedOnce, ARankThatIsKilledMeanwhileIsNotWaitedFor) {
  constexpr uint32_t kVictim = 2;
  for (const auto lives : {300us, 1000us, 2000us, 4000us, 8000us}) {
    const std::string address = newAddress();
    Processes processes(kRanks, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr, child = nullptr;
      if (std::string wrong = joinOn(kHosts[rank], comm, kRanks, rank, address); !wrong.empty())
        return wrong;
      if (std::string wrong = runCollectives(comm, 10); !wrong.empty())
        return wrong;
      if (rank == kVictim)
        std::thread([lives] {
          std::this_thread::sleep_for(lives);
          raise(SIGKILL);
        }).detach();
      const occlConfig_t late = withTimeout(60000);
      const auto begin = std::chrono::steady_clock::now();
      const occlResult_t result = occlCommSplit(comm, 0, 0, &late, &child);
      const std::string text = result == occlSuccess ? "" : occlGetLastError();
      if (rank == kVictim)
        std::this_thread::sleep_for(20s);
      if (std::chrono::steady_clock::now() - begin > 15s)
        return "waited for the victim: " + text;
      return result == occlSuccess || result == occlPeerFailed ? "" : text;
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0)
          << "rank " << r << ": " << processes.wrong(r);
  }
}

/// For all, whatever of the others they hear first.
TEST(DividedOnce, OtherSizesAreAMismatch) {
  for (uint32_t i = 0; i < 15; ++i)
    onIslands(kHosts, [](occlComm_t comm, uint32_t rank) -> std::string {
      occlComm_t child = nullptr;
      occlConfig_t config = OCCL_CONFIG_INITIALIZER;
      config.arenaBytes = rank == 3 ? 8 << 20 : 4 << 20;
      return occlCommSplit(comm, 0, 0, &config, &child) == occlMismatch
                 ? contains(occlGetLastError(), "use the same arenaBytes and heapBytes")
                 : std::string("no mismatch: ") + occlGetLastError();
    });
}

} // namespace
} // namespace occl::communicator::testing
