// Every type and operation, and pre-multiplied sums, through occlCall and occlStart, in threads and
// processes, against a reference that shares no code with the runtime but the list of standard
// collectives. averages_test has what averages round.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
namespace conformance = interpreter::conformance;
using conformance::Numbers;

/// A call that reduces: of a kind, or of a plan that does the same.
struct Reducing {
  occlKind_t kind;
  const char *name;
  PlanHandle plan;           // of kind occlKindPlan
  std::string planName = {}; // likewise
  bool isDirect = false;

  bool isScattered() const { return std::strcmp(name, "reducescatter") == 0; }
};

std::vector<Reducing> kinds() {
  return {{occlKindAllReduce, "allreduce", nullptr},
          {occlKindReduceScatter, "reducescatter", nullptr},
          {occlKindReduce, "reduce", nullptr}};
}

/// Messages, lines, direct access, chunks that are sent to many and read several times.
std::vector<Reducing> plansFor(uint32_t n) {
  std::vector<Reducing> calls;
  auto add = [&](const char *name, plan::Plan plan) {
    for (bool inLines : {false, true}) {
      plan.protocol = inLines ? plan::Protocol::LL128 : plan::Protocol::Simple;
      calls.push_back({occlKindPlan, name, handleOf(plan), plan.name});
    }
  };
  add("allreduce", ringAllReduce(n));
  add("allreduce", oneShotAllReduce(n));
  add("allreduce", twoShotAllReduce(n));
  add("reducescatter", ringReduceScatter(n));
  add("reduce", chainReduce(n, 1, 0));
  calls.push_back({occlKindPlan, "allreduce", handleOf(directAllReduce(n)), "direct", true});
  return calls;
}

/// A rank's part in it.
struct Call {
  const Reducing *what;
  uint32_t n = 0, rank = 0;
  uint64_t count = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool inPlace = false;
  std::vector<double> factors = {}; // by rank; NaN: this one gives none
  occlComm_t memoryOf = nullptr;    // buffers are of its occlMemAlloc

  std::string text() const {
    return (what->plan ? "plan " + what->planName : what->name) + " of " + std::to_string(count) +
           " " + nameOf(type) + ", " + nameOf(op) + (inPlace ? ", in place" : "") +
           (factors.empty() ? "" : ", multiplied") + ", rank " + std::to_string(rank) + " of " +
           std::to_string(n);
  }
};

/// Memory of a communicator or of the process.
class Memory {
public:
  Memory(occlComm_t comm, size_t bytes) : comm(comm), own(comm ? 0 : bytes + 1) {
    if (comm && occlMemAlloc(comm, bytes + 1, &allocated) != occlSuccess)
      ADD_FAILURE() << occlGetLastError();
  }
  ~Memory() {
    if (allocated)
      occlMemFree(comm, allocated);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  char *data() { return comm ? static_cast<char *>(allocated) : own.data(); }

private:
  occlComm_t comm;
  void *allocated = nullptr;
  std::vector<char> own;
};

/// A call under way, its buffers and what is to come out.
class Running {
public:
  Running(const Call &call, uint64_t seed)
      : call(call), parts(call.what->isScattered() ? call.n : 1), size(sizeOf(call.type)),
        memory(call.memoryOf, (parts + 1) * call.count * size) {
    std::vector<Numbers> numbers;
    for (uint32_t r = 0; r < call.n; ++r) {
      numbers.push_back(
          conformance::exactInput(parts * call.count, call.type, call.op, seed * call.n + r));
      if (call.op == ReduceOp::Avg && isFloat(call.type))
        numbers.back() = conformance::multiplied(numbers.back(), call.n, call.type);
    }
    input = conformance::encode(numbers[call.rank], call.type);
    for (uint32_t r = 0; r < call.n && !call.factors.empty(); ++r)
      if (!std::isnan(call.factors[r]))
        numbers[r] = conformance::multiplied(numbers[r], call.factors[r], call.type);
    want = conformance::encode(conformance::expectedOutput(call.what->name, numbers, call.rank, 0,
                                                           call.count, call.type, call.op),
                               call.type);
    std::memcpy(memory.data(), input.data(), input.size());
    output = memory.data() + (!call.inPlace              ? parts * call.count * size
                              : call.what->isScattered() ? call.rank * call.count * size
                                                         : 0);
    if (!call.inPlace)
      std::memset(output, 0x55, call.count * size);
  }

  /// The scalar's memory is `scalar`.
  occlCall_t given(std::vector<char> &scalar) {
    occlCall_t made = OCCL_CALL_INITIALIZER;
    made.kind = call.what->kind;
    made.plan = call.what->plan.get();
    made.sendBuffer = memory.data();
    made.recvBuffer = output;
    made.count = call.count;
    made.dataType = static_cast<occlDataType_t>(call.type);
    made.op = static_cast<occlRedOp_t>(call.op);
    if (call.factors.empty() || std::isnan(call.factors[call.rank]))
      return made;
    const double factor = call.factors[call.rank];
    scalar = conformance::encode(isFloat(call.type) ? Numbers{{factor}, {}}
                                                    : Numbers{{}, {static_cast<int64_t>(factor)}},
                                 call.type);
    made.scalar = scalar.data();
    return made;
  }

  std::string check() {
    if (!want.empty() && std::memcmp(want.data(), output, want.size()) != 0)
      return call.text() + ": wrong";
    if (!call.inPlace && std::memcmp(input.data(), memory.data(), input.size()) != 0)
      return call.text() + ": the input was changed";
    return "";
  }
  const Call &what() const { return call; }

private:
  const Call call;
  const uint64_t parts, size;
  std::vector<char> input, want;
  Memory memory;
  char *output;
};

std::string callAndCheck(occlComm_t comm, const Call &call, uint64_t seed) {
  Running running(call, seed);
  std::vector<char> scalar;
  const occlCall_t made = running.given(scalar);
  return occlCall(comm, &made, nullptr) == occlSuccess ? running.check()
                                                       : call.text() + ": " + lastError("occlCall");
}

/// Another one for each rank, the second has none; small enough for results to be exact.
std::vector<double> factorsFor(uint32_t n, DataType type, uint64_t seed) {
  std::vector<double> factors;
  for (uint32_t r = 0; r < n; ++r) {
    const auto drawn = static_cast<double>((seed + r) % 5);
    factors.push_back(sizeOf(type) == 1 && isFloat(type) ? (r % 2 ? -1 : 1) : drawn - 2);
  }
  if (n > 1)
    factors[1] = NAN;
  return factors;
}

class TypesOf : public ::testing::TestWithParam<uint32_t> {};

TEST_P(TypesOf, EveryTypeAndOperationOfEveryKindThatReduces) {
  const uint32_t n = GetParam();
  Ranks ranks(n);
  const std::vector<Reducing> calls = kinds();
  ranks.run([&](uint32_t r) {
    uint64_t seed = 0;
    for (const Reducing &what : calls)
      for (unsigned type = 0; type < kNumDataTypes; ++type)
        for (unsigned op = 0; op < kNumReduceOps; ++op)
          for (uint64_t count : {0, 1, 17, 1009})
            for (bool inPlace : {false, true}) {
              const Call call{&what, n, r, count, DataType(type), ReduceOp(op), inPlace};
              ASSERT_EQ(callAndCheck(ranks[r], call, ++seed), "");
            }
  });
}

TEST_P(TypesOf, PreMultipliedSumsOfEveryTypeWithAScalarOfEachRank) {
  const uint32_t n = GetParam();
  Ranks ranks(n);
  std::vector<Reducing> calls = plansFor(n);
  for (const Reducing &kind : kinds())
    calls.push_back(kind);
  ranks.run([&](uint32_t r) {
    uint64_t seed = 0;
    for (const Reducing &what : calls)
      for (unsigned type = 0; type < kNumDataTypes; ++type)
        for (uint64_t count :
             n < 8 ? std::vector<uint64_t>{0, 1, 17, 1009, 20011} : std::vector<uint64_t>{1009})
          for (bool inPlace : {false, true}) {
            Call call{&what, n, r, count, DataType(type), ReduceOp::Sum, inPlace};
            call.factors = factorsFor(n, call.type, ++seed);
            ASSERT_EQ(callAndCheck(ranks[r], call, seed), "");
          }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TypesOf, ::testing::Values(1u, 2u, 3u, 8u));

/// Large messages are references to what the sender has; memory of occlMemAlloc is read where it
/// is; sums without a scalar, of the same shape, between.
std::string callBetweenProcesses(occlComm_t comm, uint32_t n, uint32_t rank, uint64_t seed,
                                 const std::vector<Reducing> &calls) {
  std::mt19937_64 random(seed);
  std::string wrong;
  for (uint32_t i = 0; i < 400 / kSlowness && wrong.empty(); ++i) {
    const Reducing &what = calls[random() % calls.size()];
    Call call{&what, n, rank};
    call.count = random() % (i % 8 == 0 ? 300000 : 3000);
    call.type = DataType(random() % kNumDataTypes);
    call.inPlace = random() % 2;
    if (random() % 4 == 0)
      call.op = ReduceOp::Avg;
    else if (random() % 3 != 0)
      call.factors = factorsFor(n, call.type, i);
    if (random() % 2 || what.isDirect)
      call.memoryOf = comm;
    wrong = callAndCheck(comm, call, i);
  }
  return wrong;
}

TEST(Types, BetweenProcesses) {
  constexpr uint32_t kRanks = 3;
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  inProcesses(kRanks, "types", [&](occlComm_t comm, uint32_t rank) {
    std::vector<Reducing> calls = plansFor(kRanks);
    for (const Reducing &kind : kinds())
      calls.push_back(kind);
    return callBetweenProcesses(comm, kRanks, rank, seed, calls);
  });
}

/// A direct plan's copy must lie where peers can read it.
TEST(Types, WithoutRoomInTheHeapADirectPlanSaysSo) {
  constexpr uint32_t kRanks = 2;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.heapBytes = 1 << 20;
  inProcesses(
      kRanks, "types_heap",
      [&](occlComm_t comm, uint32_t rank) -> std::string {
        const Reducing direct{occlKindPlan, "allreduce", handleOf(directAllReduce(kRanks)),
                              "direct", true};
        Call call{&direct, kRanks, rank, 100000};
        call.memoryOf = comm;
        Running running(call, 1); // takes most of it
        const float factor = 2;
        std::vector<char> none;
        occlCall_t made = running.given(none);
        made.scalar = &factor;
        occlRequest_t request;
        occlResult_t result = occlStart(comm, &made, nullptr, nullptr, &request);
        const std::string text = occlGetLastError();
        if (result != occlAgain || text.find("of the heap") == std::string::npos)
          return "result " + std::to_string(result) + ": " + text;
        result = occlCall(comm, &made, nullptr); // does not wait for what only we can free
        if (result != occlSystemError)
          return "result " + std::to_string(result) + ": " + occlGetLastError();
        made.scalar = nullptr; // they had no number
        if (occlStart(comm, &made, nullptr, nullptr, &request) != occlSuccess ||
            occlWait(comm, request) != occlSuccess)
          return lastError("occlStart");
        return running.check();
      },
      config);
}

/// Several in flight, in an order of each rank's own; the scalar is gone when occlStart returns.
TEST(Types, StartedInConflictingOrders) {
  constexpr uint32_t kRanks = 3, kIds = 8;
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  Ranks ranks(kRanks);
  const std::vector<Reducing> calls = plansFor(kRanks);
  ranks.run([&](uint32_t r) {
    std::mt19937_64 random(seed), own(seed + r + 1);
    for (uint32_t round = 0; round < 100 / kSlowness + 1; ++round) {
      std::vector<std::unique_ptr<Running>> running;
      std::vector<uint32_t> order;
      for (uint32_t id = 0; id < kIds; ++id) {
        Call call{&calls[random() % calls.size()], kRanks, r};
        call.count = random() % 5000;
        call.type = DataType(random() % kNumDataTypes);
        call.factors = factorsFor(kRanks, call.type, round);
        running.push_back(std::make_unique<Running>(call, round * kIds + id));
        order.push_back(id);
      }
      std::shuffle(order.begin(), order.end(), own);
      std::vector<occlRequest_t> requests(kIds);
      for (uint32_t id : order) {
        std::vector<char> scalar;
        occlCall_t made = running[id]->given(scalar);
        made.id = id;
        ASSERT_EQ(occlStart(ranks[r], &made, nullptr, nullptr, &requests[id]), occlSuccess)
            << occlGetLastError();
        std::ranges::fill(scalar, char{0x7f});
      }
      ASSERT_EQ(waitForAll(ranks[r], requests), "");
      for (const auto &each : running)
        ASSERT_EQ(each->check(), "");
    }
  });
}

/// Each has a copy of its own until it has ended, however many of a sequence are in flight.
TEST(Types, SeveralOfASequenceInFlight) {
  constexpr uint32_t kRanks = 2, kInFlight = 6;
  Ranks ranks(kRanks);
  const std::vector<Reducing> calls = plansFor(kRanks);
  ranks.run([&](uint32_t r) {
    uint64_t seed = 0;
    for (const Reducing &what : calls)
      for (uint32_t round = 0; round < 20; ++round) {
        std::vector<std::unique_ptr<Running>> running;
        std::vector<occlRequest_t> requests(kInFlight);
        for (uint32_t i = 0; i < kInFlight; ++i) {
          Call call{&what, kRanks, r, 5000};
          call.factors = {static_cast<double>(i + 1), static_cast<double>(round)};
          running.push_back(std::make_unique<Running>(call, ++seed));
        }
        if ((round + r) % 2) // the other one's are all in flight by then
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
        for (uint32_t i = 0; i < kInFlight; ++i) {
          std::vector<char> scalar;
          occlCall_t made = running[i]->given(scalar);
          made.id = 5;
          occlResult_t started; // nobody waits for the leaves of a reduction
          while ((started = occlStart(ranks[r], &made, nullptr, nullptr, &requests[i])) ==
                 occlAgain)
            std::this_thread::yield();
          ASSERT_EQ(started, occlSuccess) << occlGetLastError();
        }
        ASSERT_EQ(waitForAll(ranks[r], requests), "");
        for (const auto &each : running)
          ASSERT_EQ(each->check(), "");
      }
  });
}

/// Small ones in the lane, with another scalar each time, and none.
TEST(Types, ManySmallOnesOfOneShape) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  const Reducing allReduce = kinds()[0];
  ranks.run([&](uint32_t r) {
    for (uint32_t i = 0; i < 5000 / kSlowness; ++i) {
      float input[5] = {1, 2, 3, 4, 5}, output[5];
      const float factor = static_cast<float>(i % 7 + r);
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = occlKindAllReduce;
      call.sendBuffer = input;
      call.recvBuffer = i % 2 ? output : input;
      call.count = 5;
      call.scalar = i % 3 ? &factor : nullptr;
      ASSERT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << occlGetLastError();
      const float sum = i % 3 ? static_cast<float>(i % 7 + i % 7 + 1) : 2;
      for (uint32_t e = 0; e < 5; ++e)
        ASSERT_EQ(static_cast<const float *>(call.recvBuffer)[e], sum * static_cast<float>(e + 1));
    }
  });
}

/// There is no other buffer to scale into: the sum is divided, and a scalar refused.
TEST(Types, PlansThatRunInPlaceOnly) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  plan::Plan plan = ringAllReduce(kRanks);
  plan.outOfPlace = false;
  const Reducing inPlaceOnly{occlKindPlan, "allreduce", handleOf(plan), "in place only"};
  ranks.run([&](uint32_t r) {
    Call call{&inPlaceOnly, kRanks, r, 1000, DataType::Float32, ReduceOp::Avg, true};
    EXPECT_EQ(callAndCheck(ranks[r], call, 1), "");
    call.op = ReduceOp::Sum;
    call.factors = {2, 3, 4};
    EXPECT_NE(callAndCheck(ranks[r], call, 2).find("valid out of place"), std::string::npos);
    call.factors.clear();
    EXPECT_EQ(callAndCheck(ranks[r], call, 3), "");
  });
}

TEST(Types, InfinityAndNaN) {
  Ranks ranks(2);
  for (occlRedOp_t op : {occlSum, occlAvg, occlMin, occlMax, occlProd})
    ranks.run([&](uint32_t r) {
      // NaN on the one, on the other; infinities of both signs, of one sign on the one
      float values[4] = {r == 0 ? NAN : 1, r == 0 ? 1 : NAN, r == 0 ? INFINITY : -INFINITY,
                         r == 0 ? INFINITY : 1};
      ASSERT_EQ(occlAllReduce(values, values, 4, occlFloat32, op, ranks[r], nullptr), occlSuccess);
      EXPECT_TRUE(std::isnan(values[0])) << op;
      EXPECT_TRUE(std::isnan(values[1])) << op;
      if (op == occlSum || op == occlAvg)
        EXPECT_TRUE(std::isnan(values[2]));
      else
        EXPECT_EQ(values[2], op == occlMax ? INFINITY : -INFINITY);
      EXPECT_EQ(values[3], op == occlMin ? 1 : INFINITY);
    });
}

TEST(Types, InvalidScalarsAreRefused) {
  Ranks ranks(2);
  const PlanHandle gather = handleOf(ringAllGather(2));
  float buffer[8] = {}, factor = 2;
  auto refused = [&](auto change, const char *why) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = buffer;
    call.recvBuffer = buffer + 4;
    call.count = 2;
    call.scalar = &factor;
    change(call);
    EXPECT_EQ(occlCall(ranks[0], &call, nullptr), occlInvalidArgument);
    EXPECT_NE(std::string(occlGetLastError()).find(why), std::string::npos) << occlGetLastError();
  };
  for (occlRedOp_t op : {occlProd, occlMin, occlMax, occlAvg})
    refused([&](occlCall_t &call) { call.op = op; }, "a scalar is for occlSum alone");
  for (occlKind_t kind :
       {occlKindAllGather, occlKindBroadcast, occlKindAllToAll, occlKindGather, occlKindScatter})
    refused([&](occlCall_t &call) { call.kind = kind; }, "reduces nothing");
  refused(
      [&](occlCall_t &call) {
        call.kind = occlKindPlan;
        call.plan = gather.get();
      },
      "reduces nothing");
  refused([&](occlCall_t &call) { call.recvBuffer = buffer + 1; }, "overlap");
  // None of them had a number.
  ranks.run([&](uint32_t r) {
    float mine = 3, by = r == 0 ? 2.0f : 10.0f;
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = call.recvBuffer = &mine;
    call.count = 1;
    call.scalar = &by;
    EXPECT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << occlGetLastError();
    EXPECT_EQ(mine, 36);
  });
}

} // namespace
} // namespace occl::communicator::testing
