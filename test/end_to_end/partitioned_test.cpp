// Partitioned collectives of all kinds, types and operations, against what they are by definition:
// marked in any order by some threads, started in an order of each rank's own beside other
// collectives, in partitions of each rank's own. Ranks are threads, or processes.
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "support/testing/seed.h"
#include "test/end_to_end/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::test {
namespace {

using Random = std::mt19937_64;

struct Kind {
  occlKind_t kind;
  const char *name;
  bool reduces, hasRoot;
};
constexpr Kind kKinds[] = {
    {occlKindAllReduce, "allreduce", true, false},
    {occlKindAllGather, "allgather", false, false},
    {occlKindReduceScatter, "reducescatter", true, false},
    {occlKindBroadcast, "broadcast", false, true},
    {occlKindReduce, "reduce", true, true},
    {occlKindAllToAll, "alltoall", false, false},
    {occlKindGather, "gather", false, true},
    {occlKindScatter, "scatter", false, true},
};
constexpr occlDataType_t kTypes[] = {occlUint8,   occlInt8,     occlInt32,      occlUint32,
                                     occlInt64,   occlUint64,   occlFloat16,    occlFloat32,
                                     occlFloat64, occlBfloat16, occlFloat8E4m3, occlFloat8E5m2};
constexpr occlRedOp_t kOps[] = {occlSum, occlProd, occlMin, occlMax, occlAvg};
constexpr int64_t kPartitions[] = {1, 2, 3, 4, 8, 17, 33, 64};

template <class T, size_t N> T oneOf(const T (&values)[N], Random &random) {
  return values[random() % N];
}

/// What all ranks say alike.
struct Wanted {
  Kind kind;
  Case what;
  bool isInPlace = false;
  uint64_t rounds = 0;
};

Wanted wantedAtRandom(uint32_t numRanks, uint64_t mostElements, Random &random) {
  Wanted wanted{oneOf(kKinds, random), {}, random() % 2 == 0, 0};
  Case &what = wanted.what;
  what.collective = wanted.kind.name;
  what.ranks = numRanks;
  std::uniform_real_distribution<double> magnitude(0, std::log2(static_cast<double>(mostElements)));
  what.count = random() % 16 == 0 ? 0 : static_cast<uint64_t>(std::exp2(magnitude(random)));
  what.type = oneOf(kTypes, random);
  what.op = wanted.kind.reduces ? oneOf(kOps, random) : occlSum;
  what.root = wanted.kind.hasRoot ? static_cast<uint32_t>(random() % numRanks) : 0;
  constexpr uint64_t kRounds[] = {0, 0, 1, 1, 2, 5, 16};
  wanted.rounds = oneOf(kRounds, random);
  return wanted;
}

/// A rank's request.
class Request {
public:
  Request(const Wanted &wanted, uint32_t rank, Random &random)
      : wanted(wanted), isRoot(rank == wanted.what.root), input(wanted.what.input(rank)),
        expected(wanted.what.output(rank)), sent(oneOf(kPartitions, random)),
        received(oneOf(kPartitions, random)) {
    size = sizeOf(wanted.what.type);
    const int64_t offset = wanted.what.is("alltoall")
                               ? 0
                               : wanted.what.inPlaceOffset(rank) * static_cast<int64_t>(size);
    const auto inBytes = static_cast<int64_t>(input.size()),
               outBytes = static_cast<int64_t>(expected.size());
    // In place the one lies `offset` behind the other; else side by side.
    const int64_t in = wanted.isInPlace ? std::max<int64_t>(offset, 0) : 0,
                  out = wanted.isInPlace ? std::max<int64_t>(-offset, 0) : inBytes;
    memory.resize(static_cast<size_t>(std::max(in + inBytes, out + outBytes)) + 1);
    inputAt = memory.data() + in;
    outputAt = memory.data() + out;
  }
  Request(const Request &) = delete;
  ~Request() { EXPECT_EQ(occlPfree(part), occlSuccess) << occlGetLastError(); }

  occlResult_t init(occlComm_t comm) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = wanted.kind.kind;
    call.sendBuffer = inputAt;
    call.recvBuffer = outputAt;
    call.count = wanted.what.count;
    call.dataType = wanted.what.type;
    call.op = wanted.what.op;
    call.root = wanted.what.root;
    occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
    config.rounds = wanted.rounds;
    return occlPcollInit(comm, &call, sent, received, &config, &part);
  }
  /// What is there before its mark, or its arrival, is seen.
  void poison() { std::ranges::fill(memory, 0xa5); }
  bool hasInput() const {
    return isRoot || !(wanted.what.is("broadcast") || wanted.what.is("scatter"));
  }
  bool hasOutput() const {
    return isRoot || !(wanted.what.is("reduce") || wanted.what.is("gather"));
  }
  int64_t numMarks() const { return hasInput() ? sent : 0; }
  int64_t numArrivals() const { return hasOutput() ? received : 0; }

  occlResult_t mark(int64_t p) const {
    const auto [begin, end] = bytesOf(p, sent, input.size());
    std::copy(input.begin() + begin, input.begin() + end, inputAt + begin);
    return occlPready(part, p);
  }
  /// "" or what is wrong with a partition that has arrived.
  std::string check(int64_t q) const {
    const auto [begin, end] = bytesOf(q, received, expected.size());
    for (int64_t at = begin; at < end; ++at)
      if (outputAt[at] != expected[static_cast<size_t>(at)])
        return describe() + ": output partition " + std::to_string(q) + " is wrong at byte " +
               std::to_string(at);
    return {};
  }
  std::string describe() const {
    return wanted.what.collective + " of " + std::to_string(wanted.what.count) + ", type " +
           std::to_string(wanted.what.type) + ", op " + std::to_string(wanted.what.op) + ", root " +
           std::to_string(wanted.what.root) + (wanted.isInPlace ? ", in place" : "") + ", rounds " +
           std::to_string(wanted.rounds) + ", " + std::to_string(sent) + " to " +
           std::to_string(received) + " partitions";
  }

  occlPart_t part = nullptr;

private:
  std::pair<int64_t, int64_t> bytesOf(int64_t p, int64_t of, size_t bytes) const {
    const auto elements = static_cast<int64_t>(bytes / size), each = (elements + of - 1) / of;
    const int64_t unit = static_cast<int64_t>(size);
    return {std::min(elements, p * each) * unit, std::min(elements, (p + 1) * each) * unit};
  }

  const Wanted wanted;
  const bool isRoot;
  const Bytes input, expected;
  const int64_t sent, received;
  size_t size = 1;
  Bytes memory;
  uint8_t *inputAt = nullptr, *outputAt = nullptr;
};

/// A rank in one run: makes all requests in one order, and passes some epochs of each.
class Rank {
public:
  Rank(occlComm_t comm, uint32_t rank, uint32_t numRanks, uint64_t seed, uint64_t mostElements)
      : comm(comm), rank(rank), random(seed ^ (rank + 1) * 0x9e3779b97f4a7c15),
        plainId(seed % 100) {
    Random common(seed);
    for (size_t i = 0; i < 6; ++i) {
      const Wanted wanted = wantedAtRandom(numRanks, mostElements, common);
      requests.push_back(std::make_unique<Request>(wanted, rank, random));
    }
    plain.assign(1000, static_cast<int32_t>(rank));
    sums.resize(plain.size());
    sumOfRanks = static_cast<int32_t>(numRanks * (numRanks - 1) / 2);
  }

  std::string run(uint64_t epochs) {
    for (const auto &request : requests)
      if (request->init(comm) != occlSuccess)
        return request->describe() + ": " + occlGetLastError();
    for (uint64_t epoch = 0; epoch < epochs; ++epoch)
      if (std::string wrong = runEpoch(); !wrong.empty())
        return "epoch " + std::to_string(epoch) + ": " + wrong;
    return {};
  }

private:
  /// An order of this rank's own, with a collective that is not partitioned somewhere between.
  std::string start(std::vector<Request *> order) {
    order.push_back(nullptr);
    std::ranges::shuffle(order, random);
    for (Request *request : order) {
      if (request)
        request->poison();
      occlResult_t result = occlAgain;
      while (result == occlAgain)
        result = request ? occlPstart(request->part) : startPlain();
      if (result != occlSuccess)
        return std::string("start: ") + occlGetLastError();
    }
    return {};
  }
  occlResult_t startPlain() {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = plain.data();
    call.recvBuffer = sums.data();
    call.count = plain.size();
    call.dataType = occlInt32;
    call.id = plainId;
    return occlStart(comm, &call, nullptr, nullptr, &started);
  }

  std::string runEpoch() {
    std::vector<Request *> order;
    for (const auto &request : requests)
      order.push_back(request.get());
    if (std::string wrong = start(order); !wrong.empty())
      return wrong;
    std::vector<std::pair<Request *, int64_t>> marks, arrivals;
    for (Request *request : order) {
      for (int64_t p = 0; p < request->numMarks(); ++p)
        marks.emplace_back(request, p);
      for (int64_t q = 0; q < request->numArrivals(); ++q)
        arrivals.emplace_back(request, q);
    }
    std::ranges::shuffle(marks, random);
    std::ranges::shuffle(arrivals, random);
    std::vector<std::string> wrongs(1 + random() % 3);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < wrongs.size(); ++t)
      threads.emplace_back([&, t] {
        for (size_t i = t; i < marks.size(); i += wrongs.size())
          if (marks[i].first->mark(marks[i].second) != occlSuccess && wrongs[t].empty())
            wrongs[t] = std::string("mark: ") + occlGetLastError();
      });
    std::string wrong = end(arrivals, order);
    for (std::thread &thread : threads)
      thread.join();
    for (const std::string &other : wrongs)
      wrong = wrong.empty() ? other : wrong;
    return wrong;
  }

  std::string end(const std::vector<std::pair<Request *, int64_t>> &arrivals,
                  std::vector<Request *> order) {
    for (const auto &[request, q] : arrivals) {
      if (random() % 4 == 0) // else the wait will do
        for (int32_t arrived = 0; !arrived;)
          if (occlParrived(request->part, q, &arrived) != occlSuccess)
            return std::string("arrived: ") + occlGetLastError();
      int32_t arrived = 0;
      if (occlParrived(request->part, q, &arrived) != occlSuccess)
        return std::string("arrived: ") + occlGetLastError();
      if (std::string wrong = arrived ? request->check(q) : ""; !wrong.empty())
        return wrong;
    }
    std::ranges::shuffle(order, random);
    for (Request *request : order) {
      while (random() % 3 == 0 && occlPtest(request->part) == occlInProgress)
        ;
      if (occlPwait(request->part) != occlSuccess)
        return std::string("wait: ") + occlGetLastError();
      for (int64_t q = 0; q < request->numArrivals(); ++q)
        if (std::string wrong = request->check(q); !wrong.empty())
          return "at the end: " + wrong;
    }
    if (occlWait(comm, started) != occlSuccess)
      return std::string("plain: ") + occlGetLastError();
    return std::ranges::count(sums, sumOfRanks) == static_cast<int64_t>(sums.size())
               ? ""
               : "the plain all-reduce is wrong";
  }

  occlComm_t comm;
  const uint32_t rank;
  Random random;
  const uint64_t plainId;
  std::vector<std::unique_ptr<Request>> requests;
  std::vector<int32_t> plain, sums;
  int32_t sumOfRanks = 0;
  occlRequest_t started = 0;
};

using communicator::testing::kSlowness;

TEST(Partitioned, BetweenThreads) {
  const uint64_t seed = printedSeed();
  for (uint32_t numRanks : {1u, 2u, 3u, 4u}) {
    const communicator::testing::Ranks ranks(numRanks);
    for (uint64_t round = 0; round < 20 / kSlowness + 1; ++round)
      ranks.run([&](uint32_t r) {
        EXPECT_EQ(Rank(ranks[r], r, numRanks, seed + round, 20000).run(3), "")
            << numRanks << " ranks, round " << round;
      });
  }
}

TEST(Partitioned, LargeOnes) {
  const uint64_t seed = printedSeed();
  const communicator::testing::Ranks ranks(2);
  for (uint64_t round = 0; round < 4 / kSlowness + 1; ++round)
    ranks.run(
        [&](uint32_t r) { EXPECT_EQ(Rank(ranks[r], r, 2, seed + round, 2 << 20).run(2), ""); });
}

TEST(Partitioned, BetweenProcesses) {
  const uint64_t seed = printedSeed();
  for (uint32_t numRanks : {2u, 3u})
    communicator::testing::inProcesses(
        numRanks, "pcollectives", [&](occlComm_t comm, uint32_t rank) {
          std::string wrong;
          for (uint64_t round = 0; round < 12 / kSlowness + 1 && wrong.empty(); ++round)
            wrong = Rank(comm, rank, numRanks, seed + round, 100000).run(3);
          return wrong;
        });
}

} // namespace
} // namespace occl::test
