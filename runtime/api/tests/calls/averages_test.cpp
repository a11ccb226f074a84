// Averages of floats and integers: what is divided when, and how it rounds.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"
#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
namespace conformance = interpreter::conformance;
using conformance::Numbers;

constexpr DataType kFloats[] = {DataType::Float16, DataType::Bfloat16,   DataType::Float32,
                                DataType::Float64, DataType::Float8E4m3, DataType::Float8E5m2};

/// An all-reduce of the library or of a plan.
struct Averaging {
  occlKind_t kind;
  PlanHandle plan; // of kind occlKindPlan
};

/// Half a unit in the last place, relative.
double roundingOf(DataType type) {
  switch (type) {
  case DataType::Float16:
    return 0x1p-11;
  case DataType::Bfloat16:
    return 0x1p-8;
  case DataType::Float32:
    return 0x1p-24;
  case DataType::Float64:
    return 0x1p-53;
  case DataType::Float8E4m3:
    return 0x1p-4;
  default:
    return 0x1p-3;
  }
}

std::string average(occlComm_t comm, const Averaging &what, DataType type,
                    const std::vector<char> &input, std::vector<char> &output) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = what.kind;
  call.plan = what.plan.get();
  call.sendBuffer = input.data();
  call.recvBuffer = output.data();
  call.count = input.size() / sizeOf(type);
  call.dataType = static_cast<occlDataType_t>(type);
  call.op = occlAvg;
  return occlCall(comm, &call, nullptr) == occlSuccess ? "" : lastError("occlCall");
}

/// With a last reduction that reads all inputs, and with partial sums.
std::vector<Averaging> averagesFor(uint32_t n) {
  return {{occlKindAllReduce, nullptr}, {occlKindPlan, handleOf(ringAllReduce(n))}};
}

/// Averages of any floats: each input is rounded once, and so is each partial sum, of which there
/// are fewer than ranks.
TEST(Averages, OfFloatsAreWithinTheirBound) {
  constexpr uint32_t kRanks = 3;
  constexpr uint64_t kCount = 4099;
  Ranks ranks(kRanks);
  const std::vector<Averaging> averages = averagesFor(kRanks);
  for (DataType type : kFloats) {
    std::vector<std::vector<char>> inputs;
    std::vector<Numbers> numbers;
    std::mt19937_64 random(7);
    for (uint32_t r = 0; r < kRanks; ++r) {
      Numbers drawn;
      for (uint64_t i = 0; i < kCount; ++i)
        drawn.floats.push_back(std::uniform_real_distribution(-100.0, 100.0)(random));
      inputs.push_back(conformance::encode(drawn, type));
      numbers.push_back(conformance::decode(inputs.back().data(), kCount, type));
    }
    ranks.run([&](uint32_t r) {
      for (const Averaging &what : averages) {
        std::vector<char> output(inputs[r].size());
        ASSERT_EQ(average(ranks[r], what, type, inputs[r], output), "");
        const Numbers got = conformance::decode(output.data(), kCount, type);
        for (uint64_t i = 0; i < kCount; ++i) {
          double mean = 0, magnitude = 0;
          for (const Numbers &each : numbers) {
            mean += each.floats[i] / kRanks;
            magnitude += std::abs(each.floats[i]) / kRanks;
          }
          const double bound = (kRanks + 1) * roundingOf(type) * magnitude + 0x1p-14;
          ASSERT_LE(std::abs(got.floats[i] - mean), bound) << nameOf(type) << ' ' << i;
        }
      }
    });
  }
}

/// The sum has no place in the type, the average has.
TEST(Averages, OfLargeFloatsDoNotOverflow) {
  constexpr uint32_t kRanks = 4;
  Ranks ranks(kRanks);
  const std::vector<Averaging> averages = averagesFor(kRanks);
  for (auto [type, large] : {std::pair(DataType::Float16, 65504.0),
                             {DataType::Bfloat16, 0x1.fep127},
                             {DataType::Float32, 0x1.fffffep127},
                             {DataType::Float64, 0x1.fffffffffffffp1023},
                             {DataType::Float8E4m3, 448.0},
                             {DataType::Float8E5m2, 57344.0}})
    for (uint64_t count : {1, 100, 70000}) {
      const std::vector<char> input =
          conformance::encode({std::vector<double>(count, large), {}}, type);
      ranks.run([&, type = type](uint32_t r) {
        for (const Averaging &what : averages) {
          std::vector<char> output(input.size());
          ASSERT_EQ(average(ranks[r], what, type, input, output), "");
          EXPECT_EQ(output, input)
              << nameOf(type) << " of " << count << ' ' << (what.plan ? "ring" : "");
        }
      });
    }
}

TEST(Averages, OfIntegersDivideTheSumTowardsZero) {
  constexpr uint32_t kRanks = 2;
  Ranks ranks(kRanks);
  ranks.run([&](uint32_t r) {
    int8_t small = r == 0 ? -4 : -3;
    ASSERT_EQ(occlAllReduce(&small, &small, 1, occlInt8, occlAvg, ranks[r], nullptr), occlSuccess);
    EXPECT_EQ(small, -3);
    int8_t wraps = 100;
    ASSERT_EQ(occlAllReduce(&wraps, &wraps, 1, occlInt8, occlAvg, ranks[r], nullptr), occlSuccess);
    EXPECT_EQ(wraps, -28); // 200 is -56
    uint32_t large = 0x80000001;
    ASSERT_EQ(occlAllReduce(&large, &large, 1, occlUint32, occlAvg, ranks[r], nullptr),
              occlSuccess);
    EXPECT_EQ(large, 1u); // 2^32 + 2
    uint64_t whole = r == 0 ? ~0ull : 0;
    ASSERT_EQ(occlAllReduce(&whole, &whole, 1, occlUint64, occlAvg, ranks[r], nullptr),
              occlSuccess);
    EXPECT_EQ(whole, ~0ull / 2);
  });
}

/// An average of floats that is started is divided like one that is called, with any plan.
TEST(Averages, OfOwnPlans) {
  constexpr uint32_t kRanks = 4;
  Ranks ranks(kRanks);
  const PlanHandle plans[] = {handleOf(oneShotAllReduce(kRanks)), handleOf(ringAllReduce(kRanks))};
  for (const PlanHandle &plan : plans)
    ranks.run([&](uint32_t r) {
      const float large = 0x1.fffffep127f;
      float input[2] = {large, static_cast<float>(r)}, output[2];
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.plan = plan.get();
      call.id = 3;
      call.count = 2;
      call.op = occlAvg;
      call.sendBuffer = input;
      call.recvBuffer = output;
      for (int i = 0; i < 100; ++i) {
        if (i % 2) {
          ASSERT_EQ(occlCall(ranks[r], &call, nullptr), occlSuccess) << occlGetLastError();
        } else {
          occlRequest_t request;
          ASSERT_EQ(occlStart(ranks[r], &call, nullptr, nullptr, &request), occlSuccess)
              << occlGetLastError();
          ASSERT_EQ(occlWait(ranks[r], request), occlSuccess);
        }
        EXPECT_EQ(output[0], large);
        EXPECT_EQ(output[1], 1.5f);
      }
    });
}

} // namespace
} // namespace occl::communicator::testing
