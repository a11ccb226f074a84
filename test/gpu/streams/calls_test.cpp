// Calls that need no registration, in streams and graphs: any plan, count and type, one after the
// other in the same connectors. Ranks are threads, on as many devices as there are. Skipped where
// there is no device.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/conformance/reference.h"
#include "test/gpu/harness/block_plans.h"
#include "test/gpu/harness/checked_rank.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

namespace conformance = interpreter::conformance;

constexpr uint32_t kStreams = 3;
constexpr uint64_t kMostBytes = 1 << 20;

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

class Calls : public RanksOnDevices {
protected:
  void startLarge() {
    occlConfig_t config = smallConfig();
    config.arenaBytes = 512 << 20;
    config.heapBytes = 128 << 20;
    start(numRanks(), config);
  }
  std::vector<std::unique_ptr<CheckedRank>> checkedRanks(uint32_t streams, uint64_t mostBytes) {
    const auto n = static_cast<uint32_t>(comms.size());
    std::vector<std::unique_ptr<CheckedRank>> ranks;
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      ranks.push_back(
          std::make_unique<CheckedRank>(std::vector{comms[r]}, r, n, streams, mostBytes, true));
    }
    return ranks;
  }
  void runAtRandom();
};

/// Each family of plans, whose messages lie in the same memory.
std::vector<plan::Plan> families(uint32_t n) {
  plan::Plan ring = plan::testing::ringAllReduce(n);
  std::vector<plan::Plan> plans = {oneShotInBlocks(n, 4, plan::Protocol::LL),
                                   oneShotInBlocks(n, 1, plan::Protocol::LL),
                                   oneShotInBlocks(n, 16, plan::Protocol::LL128),
                                   oneShotInBlocks(n, 8, plan::Protocol::Simple), ring};
  // Chunks that do not lie side by side, in messages of several slices.
  for (auto protocol : {plan::Protocol::LL, plan::Protocol::LL128, plan::Protocol::Simple}) {
    plans.push_back(conformance::aggregatedAllReduce(n));
    plans.back().protocol = protocol;
  }
  if (areBuffersShared())
    plans.push_back(directInBlocks(n, 8));
  return plans;
}

/// Counts, families and streams at random, the same on all ranks; nobody waits in between.
TEST_F(Calls, AnyCountsAndPlansInSeveralStreamsRunInTheOrderOfTheCalls) { runAtRandom(); }

/// Of a direct plan with one thread block, whose chunk is many slices long.
TEST_F(Calls, AThreadBlockTakesALargeChunkSliceBySlice) {
  if (!areBuffersShared())
    GTEST_SKIP() << "buffers are not accessed";
  startLarge();
  constexpr uint64_t kBytes = 48 << 20;
  const auto ranks = checkedRanks(1, kBytes);
  inThreads([&](uint32_t rank) -> std::string {
    Case what = one(directInBlocks(static_cast<uint32_t>(comms.size()), 1));
    what.count = kBytes / sizeof(float) - 5;
    std::string wrong;
    for (uint64_t i = 0; i < 3 && wrong.empty(); ++i)
      wrong = ranks[rank]->run(0, what, checkedOf(what, Expected::Sum), i);
    return wrong.empty() ? ranks[rank]->finish() : wrong;
  });
}

/// Some calls before a block's lines are cleared, and before the flags of LL come again.
TEST_F(Calls, AfterVeryManyOthers) {
  for (uint64_t first :
       {(1ull << 23) - 40, (1ull << 24) - 40, (1ull << 26) - 40, (1ull << 28) - 40}) {
    setenv("OCCL_FIRST_CALL", std::to_string(first).c_str(), 1);
    runAtRandom();
  }
  unsetenv("OCCL_FIRST_CALL");
}

void Calls::runAtRandom() {
  startLarge();
  const uint64_t seed = fromEnvironment("OCCL_TEST_SEED", std::random_device()());
  const uint64_t rounds = fromEnvironment("OCCL_TEST_ROUNDS", 150);
  std::fprintf(stderr, "OCCL_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const auto n = static_cast<uint32_t>(comms.size());
  const std::vector<plan::Plan> plans = families(n);
  const auto ranks = checkedRanks(kStreams, kMostBytes);
  inThreads([&](uint32_t rank) -> std::string {
    std::mt19937_64 random(seed);
    std::vector<Case> shapes; // some of which come back
    for (uint64_t round = 0; round < rounds; ++round) {
      std::string wrong;
      for (uint32_t i = 0; i < 16; ++i) {
        const uint64_t word = random();
        if (shapes.size() < 64 || word % 8 == 0) {
          Case what = one(plans[(word >> 8) % plans.size()]);
          what.count = 1 + (word >> 20) % (what.plan.protocol != plan::Protocol::Simple
                                               ? 3000
                                               : kMostBytes / sizeof(float) / (1 + word % 64));
          shapes.push_back(std::move(what));
        }
        const Case &what = shapes[(word >> 32) % shapes.size()];
        const auto stream = static_cast<uint32_t>(word >> 16 & 0xf) % kStreams;
        wrong =
            ranks[rank]->run(stream, what, checkedOf(what, Expected::Sum), mixed(seed, round, i));
        if (!wrong.empty())
          return "round " + std::to_string(round) + ": " + wrong;
      }
      if (shapes.size() > 256)
        shapes.erase(shapes.begin(), shapes.begin() + 128);
      if (round % 8 == 7 || round + 1 == rounds)
        wrong = ranks[rank]->finish();
      if (!wrong.empty())
        return "round " + std::to_string(round) + ": " + wrong;
    }
    return "";
  });
}

/// Of ones from each rank: the sum of floats, by call(), which returns "" or what is wrong.
template <class Call>
std::string sumOfOnes(occlComm_t comm, RankOnDevice &on, char *input, const char *output,
                      uint64_t count, uint32_t numRanks, const Call &call) {
  const std::vector<float> ones(count, 1), expected(count, static_cast<float>(numRanks));
  std::vector<float> actual(count);
  const uint64_t bytes = count * sizeof(float);
  cudaMemcpyAsync(input, ones.data(), bytes, cudaMemcpyHostToDevice, on.stream());
  std::string wrong = call();
  if (wrong.empty())
    wrong = on.synchronize();
  cudaMemcpyAsync(actual.data(), output, bytes, cudaMemcpyDeviceToHost, on.stream());
  if (wrong.empty())
    wrong = on.synchronize();
  if (wrong.empty() && actual != expected)
    wrong = "a wrong sum of " + std::to_string(count);
  if (wrong.empty() && *occlCommGetLastError(comm))
    wrong = "the communicator has failed";
  return wrong.empty() ? wrong : wrong + ". " + occlCommGetLastError(comm);
}

/// Once and again, by a plan of the test.
std::string sumTwice(occlComm_t comm, RankOnDevice &on, const Case &what, uint32_t numRanks) {
  std::string wrong;
  for (uint32_t i = 0; i < 2 && wrong.empty(); ++i)
    wrong = sumOfOnes(comm, on, on.input(true), on.output(true), what.count, numRanks, [&] {
      return callInStream(comm, what, on.input(true), on.output(true), on.stream());
    });
  return wrong;
}

/// It finds that the others have begun before it has looked where their buffers are: that is not in
/// words in which nothing was said, whatever low bits of the number these have.
TEST_F(Calls, ARankThatComesLateAccessesBuffersWhereTheyAre) {
  if (!areBuffersShared())
    GTEST_SKIP() << "buffers are not accessed";
  const uint32_t n = numRanks();
  for (uint32_t bits : {23, 24, 32}) {
    setenv("OCCL_FIRST_CALL", std::to_string((1ull << bits) - 1).c_str(), 1);
    start(n);
    inThreads([&](uint32_t rank) {
      std::this_thread::sleep_for(std::chrono::milliseconds(rank + 1 == n ? 200 : 0));
      Case what = one(directInBlocks(n, 8));
      what.isRegistered = true;
      const std::string wrong = sumTwice(comms[rank], *onDevices[rank], what, n);
      return wrong.empty() ? wrong : "2^" + std::to_string(bits) + ": " + wrong;
    });
  }
  unsetenv("OCCL_FIRST_CALL");
}

/// In buffers of the program's, by a plan that the library chooses.
std::string sumByLibrary(occlComm_t comm, RankOnDevice &on, const DeviceBuffer &input,
                         const DeviceBuffer &output, uint64_t count, uint32_t numRanks) {
  return sumOfOnes(comm, on, input.get(), output.get(), count, numRanks, [&]() -> std::string {
    const occlResult_t result =
        occlAllReduce(input.get(), output.get(), count, occlFloat32, occlSum, comm, on.stream());
    return result == occlSuccess ? "" : occlGetLastError();
  });
}

TEST_F(Calls, FewThreadBlocksServeAnySize) {
  occlConfig_t config = smallConfig();
  config.maxThreadBlocks = 15;
  occlComm_t none = nullptr;
  EXPECT_EQ(occlCommInitAll(&none, 1, &config), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("at least 16"), std::string::npos);
  config.maxThreadBlocks = 16;
  start(numRanks(), config);
  constexpr uint64_t kCounts[] = {1, 3001, 100'000, 5'000'001};
  inThreads([&](uint32_t rank) -> std::string {
    const DeviceBuffer input(kCounts[3] * sizeof(float)), output(kCounts[3] * sizeof(float));
    for (uint64_t count : kCounts)
      if (std::string wrong =
              sumByLibrary(comms[rank], *onDevices[rank], input, output, count, n());
          !wrong.empty())
        return wrong;
    return "";
  });
}

/// It is another plan, which the ranks that have the limit say.
TEST_F(Calls, ThreadBlocksOnSomeRanksAloneAreNamed) {
  if (numRanks() < 2)
    GTEST_SKIP() << "for two ranks";
  const std::string name = "thread-blocks-" + std::to_string(getpid());
  inThreads([&](uint32_t rank) -> std::string {
    constexpr uint64_t kCount = 5'000'001;
    const DeviceBuffer input(kCount * sizeof(float)), output(kCount * sizeof(float));
    occlConfig_t config = smallConfig();
    config.device = rank % devices;
    config.maxThreadBlocks = rank == 0 ? 16 : 0;
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, n(), rank, name.c_str(), &config) != occlSuccess)
      return occlGetLastError();
    const std::string failure = sumByLibrary(comm, *onDevices[rank], input, output, kCount, n());
    occlCommDestroy(comm);
    return failure.find("calls something else there") != std::string::npos
               ? ""
               : "not named: " + failure;
  });
}

/// What a rank calls, when all others call `what`.
struct Differing {
  const char *name;
  Case what;
};

TEST_F(Calls, CallsThatDifferAreNamedOnAllRanks) {
  const uint32_t n = numRanks();
  Case what = one(oneShotInBlocks(n, 4, plan::Protocol::LL));
  what.isRegistered = true;
  std::vector<Differing> all;
  auto differing = [&](const char *name, auto change) {
    Case other = what;
    change(other);
    all.push_back({name, other});
  };
  differing("count", [](Case &other) { other.count = 999; });
  differing("type", [](Case &other) { other.type = DataType::Int32; });
  differing("operation", [](Case &other) { other.op = ReduceOp::Max; });
  differing("protocol",
            [&](Case &other) { other.plan = oneShotInBlocks(n, 4, plan::Protocol::Simple); });
  if (areBuffersShared())
    differing("direct access", [&](Case &other) { other.plan = directInBlocks(n, 4); });
  for (const Differing &each : all) {
    start(n, smallConfig());
    for (uint32_t r = 0; r < n; ++r) {
      cudaSetDevice(static_cast<int>(r % devices));
      RankOnDevice &on = *onDevices[r];
      EXPECT_EQ(callInStream(comms[r], r + 1 == n ? each.what : what, on.input(true),
                             on.output(true), on.stream()),
                "");
    }
    for (uint32_t r = 0; r < n; ++r) {
      const std::string failure = failureOf(r);
      EXPECT_NE(failure.find("calls something else there"), std::string::npos)
          << each.name << ": " << failure;
      EXPECT_EQ(onDevices[r]->synchronize(), "") << each.name;
      EXPECT_NE(callInStream(comms[r], what, onDevices[r]->input(true), onDevices[r]->output(true),
                             onDevices[r]->stream()),
                "");
    }
  }
}

TEST_F(Calls, ARefusedCallTakesNoNumber) {
  const uint32_t n = numRanks();
  Case what = one(oneShotInBlocks(n, 4, plan::Protocol::LL));
  RankOnDevice &on = *onDevices[0];
  cudaSetDevice(0);
  std::vector<float> onHost(1000);
  EXPECT_NE(callInStream(comms[0], what, onHost.data(), on.output(false), on.stream()), "");
  EXPECT_NE(callInStream(comms[0], what, on.input(false), on.input(false) + 4, on.stream()), "");
  EXPECT_EQ(callCase(comms[0], what, nullptr, on.output(false), on.stream()), occlInvalidArgument);
  EXPECT_EQ(callCase(comms[0], what, on.input(false), nullptr, on.stream()), occlInvalidArgument);
  Case direct = one(directInBlocks(n, 4));
  EXPECT_NE(
      callInStream(comms[0], direct, on.input(false), on.output(false), on.stream())
          .find(areBuffersShared() ? "no memory of occlMemAlloc" : "data goes through host memory"),
      std::string::npos);
  const float factor = 2;
  occlCall_t multiplied = OCCL_CALL_INITIALIZER;
  multiplied.kind = occlKindAllReduce;
  multiplied.sendBuffer = on.input(false);
  multiplied.recvBuffer = on.output(false);
  multiplied.count = 16;
  multiplied.op = occlMax; // of sums alone
  multiplied.scalar = &factor;
  EXPECT_EQ(occlCall(comms[0], &multiplied, on.stream()), occlInvalidArgument);
  runAll({one(plan::testing::oneShotAllReduce(n))});
}

/// A stream that has come behind a kernel that gave up has nothing right: that is no secret then.
TEST_F(Calls, AFailureIsKnownWhenTheStreamIsSynchronized) {
  const Case what = one(plan::testing::oneShotAllReduce(numRanks()));
  callOnAll(what);
  ASSERT_EQ(call(0, what, 300), "");
  ASSERT_EQ(cudaStreamSynchronize(onDevices[0]->stream()), cudaSuccess);
  EXPECT_NE(std::string(occlCommGetLastError(comms[0])).find("rank 0 gave up"), std::string::npos);
}

/// What occlCall chooses plans for.
struct OfKind {
  occlKind_t kind;
  const char *name;
};
constexpr OfKind kKinds[] = {{occlKindAllReduce, "allreduce"},
                             {occlKindAllGather, "allgather"},
                             {occlKindReduceScatter, "reducescatter"},
                             {occlKindBroadcast, "broadcast"},
                             {occlKindReduce, "reduce"},
                             {occlKindAllToAll, "alltoall"}};

/// Parts of a rank's input and output.
std::pair<uint64_t, uint64_t> partsOf(occlKind_t kind, uint64_t n) {
  const bool isSpread = kind == occlKindReduceScatter || kind == occlKindAllToAll;
  return {isSpread ? n : 1, kind == occlKindAllGather || kind == occlKindAllToAll ? n : 1};
}

/// One call of a rank, from host to host: what its output is, "" if it is right.
std::string callOnce(occlComm_t comm, RankOnDevice &on, const OfKind &kind, uint32_t rank,
                     uint32_t n, uint64_t count, uint32_t root, DataType type = DataType::Int32,
                     ReduceOp op = ReduceOp::Sum) {
  const auto [inputParts, outputParts] = partsOf(kind.kind, n);
  std::vector<conformance::Numbers> numbers;
  for (uint32_t r = 0; r < n; ++r)
    numbers.push_back(conformance::exactInput(inputParts * count, type, op, count * 1000 + r));
  const std::vector<char> input = conformance::encode(numbers[rank], type);
  const std::vector<char> expected = conformance::encode(
      conformance::expectedOutput(kind.name, numbers, rank, root, count, type, op), type);
  const bool isInPlace = kind.kind == occlKindBroadcast;
  char *output = on.output(false), *from = isInPlace ? output : on.input(false);
  cudaMemcpyAsync(from, input.data(), input.size(), cudaMemcpyHostToDevice, on.stream());
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind.kind;
  call.sendBuffer = from;
  call.recvBuffer = output;
  call.count = count;
  call.dataType = static_cast<occlDataType_t>(type);
  call.op = static_cast<occlRedOp_t>(op);
  call.root = root;
  const std::string what = std::string(kind.name) + " of " + std::to_string(count) + ", root " +
                           std::to_string(root) + ", rank " + std::to_string(rank) + ", " +
                           nameOf(type) + ' ' + nameOf(op) + ": ";
  if (occlCall(comm, &call, on.stream()) != occlSuccess)
    return what + occlGetLastError();
  std::vector<char> actual(expected.size());
  if (std::string wrong = on.synchronize(); !wrong.empty()) // a copy to the host may hold others up
    return what + wrong + ". " + occlCommGetLastError(comm);
  cudaMemcpyAsync(actual.data(), output, actual.size(), cudaMemcpyDeviceToHost, on.stream());
  if (std::string wrong = on.synchronize(); !wrong.empty())
    return what + wrong + ". " + occlCommGetLastError(comm);
  return actual == expected && *occlCommGetLastError(comm) == 0
             ? ""
             : what + "wrong. " + occlCommGetLastError(comm);
}

TEST_F(Calls, AnyCountOfEachKindFromOrdinaryBuffers) {
  startLarge();
  const uint32_t n = numRanks();
  inThreads([&](uint32_t rank) -> std::string {
    for (const OfKind &kind : kKinds)
      for (uint64_t count : {0, 1, 2, 3, 5, 31, 64, 100, 1000, 1023, 4097, 20011, 65536})
        for (uint32_t root = 0; root < (kind.kind == occlKindBroadcast ? n : 1); ++root)
          if (std::string wrong =
                  callOnce(comms[rank], *onDevices[rank], kind, rank, n, count, root);
              !wrong.empty())
            return wrong;
    return "";
  });
}

/// Wrapped around, and averages of negative numbers, as on hosts.
TEST_F(Calls, EveryTypeAndOperationOfTheKindsThatReduce) {
  startLarge();
  const uint32_t n = numRanks();
  inThreads([&](uint32_t rank) -> std::string {
    for (const OfKind &kind : kKinds)
      for (uint32_t type = 0; type < kNumDataTypes; ++type)
        for (uint32_t op = 0; op < kNumReduceOps; ++op)
          for (uint64_t count : {1, 37, 4097})
            if (std::string wrong = callOnce(comms[rank], *onDevices[rank], kind, rank, n, count, 0,
                                             DataType(type), ReduceOp(op));
                !wrong.empty())
              return wrong;
    return "";
  });
}

} // namespace
} // namespace occl::gpu_test
