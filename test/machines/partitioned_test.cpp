// Partitioned collectives of ranks of several islands: processes of this machine with host ids of
// their own.
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

constexpr occlKind_t kKinds[] = {occlKindAllReduce, occlKindAllGather, occlKindReduceScatter,
                                 occlKindBroadcast, occlKindReduce,    occlKindAllToAll,
                                 occlKindGather,    occlKindScatter};

/// What a rank has at a place in an epoch: sums of them are exact.
int32_t numberOf(uint32_t rank, uint64_t place, uint32_t epoch) {
  return static_cast<int32_t>((rank * 31 + place * 7 + place / 1000 + epoch * 13) % 101);
}

/// A collective of `count` elements a part between so many ranks.
struct Shape {
  occlKind_t kind;
  uint32_t numRanks, root;
  uint64_t count;

  bool hasInput(uint32_t rank) const {
    return rank == root || (kind != occlKindBroadcast && kind != occlKindScatter);
  }
  bool hasOutput(uint32_t rank) const {
    return rank == root || (kind != occlKindReduce && kind != occlKindGather);
  }
  uint64_t inputSize() const {
    const bool hasParts =
        kind == occlKindReduceScatter || kind == occlKindAllToAll || kind == occlKindScatter;
    return hasParts ? numRanks * count : count;
  }
  uint64_t outputSize() const {
    const bool hasParts =
        kind == occlKindAllGather || kind == occlKindAllToAll || kind == occlKindGather;
    return hasParts ? numRanks * count : count;
  }
  /// Element i of the output of a rank that has one.
  int32_t expected(uint32_t rank, uint64_t i, uint32_t epoch) const {
    switch (kind) {
    case occlKindAllReduce:
    case occlKindReduce:
      return sum(i, epoch);
    case occlKindReduceScatter:
      return sum(rank * count + i, epoch);
    case occlKindBroadcast:
      return numberOf(root, i, epoch);
    case occlKindScatter:
      return numberOf(root, rank * count + i, epoch);
    case occlKindAllToAll:
      return numberOf(static_cast<uint32_t>(i / count), rank * count + i % count, epoch);
    default:
      return numberOf(static_cast<uint32_t>(i / count), i % count, epoch);
    }
  }
  int32_t sum(uint64_t place, uint32_t epoch) const {
    int32_t all = 0;
    for (uint32_t r = 0; r < numRanks; ++r)
      all += numberOf(r, place, epoch);
    return all;
  }
};

/// A request of a rank, freed with it, whose buffers are in so many partitions.
class Request {
public:
  Request(occlComm_t comm, const Shape &shape, int64_t marked, int64_t asked, uint64_t rounds)
      : shape(shape), marked(marked), asked(asked), input(shape.inputSize()),
        output(shape.outputSize()) {
    occlCommRank(comm, &rank);
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.rounds = rounds;
    made = occlPinitOfKind(shape.kind, input.data(), marked, output.data(), asked, shape.count,
                           occlInt32, occlSum, shape.root, comm, &config, &part);
  }
  ~Request() { occlPfree(part); }
  Request(const Request &) = delete;
  Request &operator=(const Request &) = delete;

  occlResult_t start(uint32_t ofEpoch) {
    epoch = ofEpoch;
    for (uint64_t i = 0; i < input.size(); ++i)
      input[i] = numberOf(rank, i, epoch);
    std::ranges::fill(output, -1);
    return occlPstart(part);
  }
  /// The partitions that a rank with input marks.
  std::vector<int64_t> shuffled(std::mt19937 &random) const {
    std::vector<int64_t> order(shape.hasInput(rank) ? static_cast<size_t>(marked) : 0);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    return order;
  }
  /// Asks until it is there, and compares; "" or what is wrong.
  std::string await(int64_t q) const {
    for (int32_t arrived = 0; !arrived;)
      if (occlParrived(part, q, &arrived) != occlSuccess)
        return lastError("occlParrived");
    const uint64_t size = (output.size() + asked - 1) / asked;
    return compare(std::min(output.size(), q * size), std::min(output.size(), (q + 1) * size));
  }
  std::string wait() const {
    if (occlPwait(part) != occlSuccess)
      return lastError("occlPwait");
    return shape.hasOutput(rank) ? compare(0, output.size()) : "";
  }

  const Shape shape;
  const int64_t marked, asked;
  occlPart_t part = nullptr;
  occlResult_t made = occlSuccess;

private:
  std::string compare(uint64_t begin, uint64_t end) const {
    for (uint64_t i = begin; i < end; ++i)
      if (output[i] != shape.expected(rank, i, epoch))
        return "kind " + std::to_string(shape.kind) + ", epoch " + std::to_string(epoch) +
               ": element " + std::to_string(i) + " of rank " + std::to_string(rank) + " is " +
               std::to_string(output[i]) + ", expected " +
               std::to_string(shape.expected(rank, i, epoch));
    return "";
  }

  uint32_t rank = 0, epoch = 0;
  std::vector<int32_t> input, output;
};

/// A request of each kind, all at a time, started and waited for in other orders on each rank, and
/// marked in any.
std::string runAllKinds(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint64_t count) {
  std::vector<std::unique_ptr<Request>> requests;
  for (const occlKind_t kind : kKinds) {
    const bool hasRoot = kind == occlKindBroadcast || kind == occlKindReduce ||
                         kind == occlKindGather || kind == occlKindScatter;
    const Shape shape = {kind, numRanks, hasRoot ? numRanks - 1 : 0, count};
    requests.push_back(std::make_unique<Request>(comm, shape, 3 + rank, 5 - rank % 3, 2));
    if (requests.back()->made != occlSuccess)
      return lastError("occlPcollInit");
  }
  std::mt19937 random(rank);
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    std::ranges::shuffle(requests, random);
    for (const auto &request : requests)
      if (request->start(epoch) != occlSuccess)
        return lastError("occlPstart");
    std::ranges::shuffle(requests, random);
    for (const auto &request : requests)
      for (const int64_t p : request->shuffled(random))
        if (occlPready(request->part, p) != occlSuccess)
          return lastError("occlPready");
    std::ranges::shuffle(requests, random);
    for (const auto &request : requests)
      if (std::string wrong = request->wait(); !wrong.empty())
        return wrong;
  }
  return "";
}

class PartitionedIslands : public ::testing::TestWithParam<std::vector<uint32_t>> {};

TEST_P(PartitionedIslands, AllKinds) {
  const auto numRanks = static_cast<uint32_t>(GetParam().size());
  onIslands(GetParam(), [numRanks](occlComm_t comm, uint32_t rank) {
    std::string wrong;
    for (const uint64_t count : {1, 1000, 100000})
      if (wrong.empty())
        wrong = runAllKinds(comm, rank, numRanks, count);
    return wrong;
  });
}

/// What a round's pieces need is marked, and nothing else before it has arrived everywhere: each
/// rank marks a quarter only once it has that of another round.
TEST_P(PartitionedIslands, RoundsArriveWhileOthersAreNotMarked) {
  const auto numRanks = static_cast<uint32_t>(GetParam().size());
  onIslands(GetParam(), [numRanks](occlComm_t comm, uint32_t) -> std::string {
    Request request(comm, {occlKindAllReduce, numRanks, 0, 1 << 16}, 4, 4, 4);
    for (uint32_t epoch = 1; epoch <= 5; ++epoch) {
      if (request.start(epoch) != occlSuccess)
        return lastError("occlPstart");
      for (const int64_t p : {2, 0, 3, 1}) {
        if (occlPready(request.part, p) != occlSuccess)
          return lastError("occlPready");
        if (std::string wrong = request.await(p); !wrong.empty())
          return wrong;
      }
      if (std::string wrong = request.wait(); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

/// The root of a broadcast is epochs ahead: its next one finds the room still taken by what other
/// ranks have not ended, and begins later by itself.
TEST_P(PartitionedIslands, EpochsBeginOnceTheLastOneHasEndedElsewhere) {
  const auto numRanks = static_cast<uint32_t>(GetParam().size());
  onIslands(GetParam(), [numRanks](occlComm_t comm, uint32_t rank) -> std::string {
    Request request(comm, {occlKindBroadcast, numRanks, 0, 3000}, 3, 2, 1);
    for (uint32_t epoch = 1; epoch <= 40; ++epoch) {
      if (rank + 1 == numRanks && epoch % 10 == 0)
        std::this_thread::sleep_for(20ms);
      if (request.start(epoch) != occlSuccess ||
          (rank == 0 && occlPreadyRange(request.part, 0, 2) != occlSuccess))
        return lastError("start and mark");
      if (std::string wrong = request.wait(); !wrong.empty())
        return wrong;
    }
    return "";
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, PartitionedIslands,
                         ::testing::Values(std::vector<uint32_t>{0, 1},
                                           std::vector<uint32_t>{0, 0, 1, 1},
                                           std::vector<uint32_t>{0, 1, 1, 0, 2}));

std::string contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos ? "" : "expected '" + part + "' in: " + text;
}

/// In the middle of an epoch, long before its deadline.
TEST(PartitionedIslandsFail, AKilledRankIsNamedByAll) {
  constexpr uint32_t kRanks = 4, kVictim = 3;
  const std::string address = newAddress();
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (std::string wrong = joinOn(rank / 2, comm, kRanks, rank, address); !wrong.empty())
      return wrong;
    {
      // Up to the first call that finds it, which may be any once the victim is gone.
      Request request(comm, {occlKindAllReduce, kRanks, 0, 1 << 14}, 4, 4, 4);
      const bool hasFirst = request.start(1) == occlSuccess &&
                            occlPready(request.part, 0) == occlSuccess && request.await(0).empty();
      if (rank == kVictim)
        raise(SIGKILL);
      if (hasFirst && occlPreadyRange(request.part, 1, 3) == occlSuccess)
        occlPwait(request.part);
    }
    const std::string wrong = contains(occlCommGetLastError(comm), "process of rank 3 is gone");
    occlCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0) << "rank " << r << processes.wrong(r);
}

/// Nobody marks anything, so no survivor waits for it yet: those that ask find out as those that
/// wait do. On one machine and on two.
TEST(PartitionedIslandsFail, AKilledRankIsNamedBeforeAnythingIsMarked) {
  constexpr uint32_t kRanks = 4, kVictim = 3;
  const occlConfig_t config = withTimeout(20000);
  for (const uint32_t ranksOfAnIsland : {2u, kRanks}) {
    const std::string address = newAddress();
    Processes processes(kRanks, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (std::string wrong = joinOn(rank / ranksOfAnIsland, comm, kRanks, rank, address, &config);
          !wrong.empty())
        return wrong;
      {
        Request request(comm, {occlKindAllReduce, kRanks, 0, 1 << 14}, 4, 4, 1);
        const occlResult_t started = request.start(1);
        if (rank == kVictim)
          raise(SIGKILL);
        if (started == occlSuccess && rank == 0)
          occlPwait(request.part);
        while (started == occlSuccess && rank == 1 && request.await(0).empty()) {
        }
        while (started == occlSuccess && rank == 2 && occlPtest(request.part) == occlInProgress) {
        }
      }
      const std::string wrong = contains(occlCommGetLastError(comm), "process of rank 3 is gone");
      occlCommDestroy(comm);
      return wrong;
    });
    for (uint32_t r = 0; r < kRanks; ++r)
      EXPECT_EQ(processes.join(r), r == kVictim ? -1 : 0) << "rank " << r << processes.wrong(r);
  }
}

/// A leaf of a gather that has ended, freed and destroyed what it had is none that its root, which
/// has not marked its own part, would miss. On one machine and on two.
TEST(PartitionedIslands, ALeafThatIsDoneMayLeaveBeforeTheRootMarks) {
  for (const uint32_t hostOfLeaf : {0u, 1u}) {
    const std::string address = newAddress();
    int ends[2]; // the leaf closes one of them by its end
    ASSERT_EQ(pipe(ends), 0);
    Processes processes(2, [&](uint32_t rank) -> std::string {
      occlComm_t comm = nullptr;
      if (std::string wrong = joinOn(rank * hostOfLeaf, comm, 2, rank, address); !wrong.empty())
        return wrong;
      std::string wrong;
      {
        Request request(comm, {occlKindGather, 2, 0, 1000}, 2, 2, 1);
        if (request.start(1) != occlSuccess)
          return lastError("occlPstart");
        close(ends[1 - rank]);
        if (char byte = 0; rank == 0 && read(ends[0], &byte, sizeof byte) != 0)
          return "the leaf is not awaited";
        // For many looks of the watchdog.
        for (const auto end = std::chrono::steady_clock::now() + 1s;
             rank == 0 && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(1ms))
          if (occlPtest(request.part) != occlInProgress)
            return lastError("occlPtest");
        wrong = occlPreadyRange(request.part, 0, 1) == occlSuccess ? request.wait()
                                                                   : lastError("occlPreadyRange");
      }
      occlCommDestroy(comm);
      return wrong;
    });
    for (const int end : ends)
      close(end);
    for (uint32_t r = 0; r < 2; ++r)
      EXPECT_EQ(processes.join(r), 0)
          << "rank " << r << " of " << hostOfLeaf << ": " << processes.wrong(r);
  }
}

/// On a rank of another machine, whose edges cross the network.
TEST(PartitionedIslandsFail, ReportsNameWhatIsNotMarked) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    Request request(comm, {occlKindAllReduce, 2, 0, 100}, 2, 1, 1);
    if (request.start(1) != occlSuccess || occlPready(request.part, rank) != occlSuccess)
      return lastError("start and mark");
    std::string wrong, report;
    const std::string own = "its program, to mark partition " + std::to_string(1 - rank);
    const std::string other = "its program, to mark partition " + std::to_string(rank);
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         (report.find(own) == std::string::npos || report.find(other) == std::string::npos) &&
         std::chrono::steady_clock::now() < end;)
      report = reportOf(comm);
    for (const auto &part : {own, other})
      if (wrong.empty())
        wrong = contains(report, part);
    // Both have looked before either goes on.
    Request both(comm, {occlKindAllReduce, 2, 0, 1}, 1, 1, 1);
    if (both.start(1) != occlSuccess || occlPready(both.part, 0) != occlSuccess)
      return lastError("start and mark");
    if (wrong.empty())
      wrong = both.wait();
    if (occlPready(request.part, 1 - rank) != occlSuccess)
      return lastError("occlPready");
    return wrong.empty() ? request.wait() : wrong;
  });
}

/// By its number, of the epoch: never by the id of the sequence.
TEST(PartitionedIslandsFail, AMismatchNamesTheRequest) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    Request alike(comm, {occlKindAllReduce, 2, 0, 100}, 1, 1, 1);
    Request request(comm, {occlKindAllReduce, 2, 0, 100 + rank}, 1, 1, 1);
    // Whichever call is the first that finds it.
    occlResult_t result = request.start(1);
    if (result == occlSuccess)
      result = occlPready(request.part, 0);
    if (result == occlSuccess)
      result = occlPwait(request.part);
    if (result != occlMismatch)
      return lastError("not a mismatch");
    return contains(occlCommGetLastError(comm), "partitioned request 1, epoch 1");
  });
}

/// Their ids stay: the last one that is refused is so on all ranks, when it is made.
TEST(PartitionedIslandsFail, RequestsAreLimited) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t) -> std::string {
    constexpr uint32_t kMost = 8192;
    for (uint32_t k = 0; k < kMost; ++k)
      if (Request request(comm, {occlKindAllReduce, 2, 0, 10}, 1, 1, 1);
          request.made != occlSuccess)
        return lastError("a request that is allowed");
    const Request one(comm, {occlKindAllReduce, 2, 0, 10}, 1, 1, 1);
    if (one.made != occlInvalidArgument)
      return "one too many is not refused";
    return contains(occlGetLastError(), "between machines makes at most 8192");
  });
}

/// Between machines nobody reads the sender's buffer.
TEST(PartitionedIslandsFail, SendsAreRefused) {
  onIslands({0, 1}, [](occlComm_t comm, uint32_t rank) -> std::string {
    int32_t value = 0;
    occlPart_t part = nullptr;
    if (occlPsendInit(comm, &value, 1, 1, occlInt32, 1 - rank, 0, nullptr, &part) !=
        occlInvalidArgument)
      return "not refused";
    return contains(occlGetLastError(), "spans machines");
  });
}

} // namespace
} // namespace occl::communicator::testing
