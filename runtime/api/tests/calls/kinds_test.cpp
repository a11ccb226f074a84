// The standard collectives with the plans that come with OCCL: any kind, count, type, operation and
// root, against the definitions.
#include "plan/collectives/collectives.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/exec/conformance/reference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace occl::communicator::testing {
namespace {

using interpreter::conformance::encode;
using interpreter::conformance::exactInput;
using interpreter::conformance::expectedOutput;
using interpreter::conformance::multiplied;
using interpreter::conformance::Numbers;

using Kind = plan::StandardCollective;

/// All of them, in the order of occlKind_t.
constexpr Kind kKinds[] = {
#define OCCL_COLLECTIVE(enumerator, ...) Kind::enumerator,
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE
};

struct Shape {
  Kind kind;
  uint64_t count;
  DataType type;
  ReduceOp op;
  uint32_t root;

  std::string text() const {
    return std::string(nameOf(kind)) + " of " + std::to_string(count) + " " + nameOf(type) + ", " +
           nameOf(op) + ", root " + std::to_string(root);
  }
};

Shape draw(std::mt19937_64 &random, uint32_t n, uint64_t count) {
  Shape shape{kKinds[random() % std::size(kKinds)], count,
              static_cast<DataType>(random() % kNumDataTypes),
              static_cast<ReduceOp>(random() % kNumReduceOps), 0};
  shape.root = hasRoot(shape.kind) ? static_cast<uint32_t>(random() % n) : 0;
  if (shape.type == DataType::Float8E5m2 && n > 8 && shape.op == ReduceOp::Avg)
    shape.op = ReduceOp::Sum; // e5m2 has no 9 and no 13 that could be divided again
  return shape;
}

/// Makes the call as rank `rank` of n, in place where input and output are alike if it is asked
/// for.
std::string callOne(occlComm_t comm, uint32_t n, uint32_t rank, const Shape &shape, uint64_t seed,
                    bool inPlace) {
  const plan::Parts parts = {n, shape.root, shape.count};
  const uint64_t inputs = inputSize(shape.kind, parts), outputs = outputSize(shape.kind, parts);
  std::vector<Numbers> numbers;
  for (uint32_t r = 0; r < n; ++r) {
    numbers.push_back(exactInput(inputs, shape.type, shape.op, seed * n + r));
    if (shape.op == ReduceOp::Avg && isFloat(shape.type)) // each is divided before the sum
      numbers.back() = multiplied(numbers.back(), n, shape.type);
  }
  std::vector<char> input = encode(numbers[rank], shape.type);
  std::vector<char> want = encode(expectedOutput(nameOf(shape.kind), numbers, rank, shape.root,
                                                 shape.count, shape.type, shape.op),
                                  shape.type);
  std::vector<char> output(outputs * sizeOf(shape.type), 0x55);
  inPlace = inPlace && inputs == outputs;
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = static_cast<occlKind_t>(occlKindAllReduce + static_cast<int>(shape.kind));
  call.sendBuffer = input.data();
  call.recvBuffer = inPlace ? input.data() : output.data();
  call.count = shape.count;
  call.dataType = static_cast<occlDataType_t>(shape.type);
  call.op = static_cast<occlRedOp_t>(shape.op);
  call.root = shape.root;
  if (occlCall(comm, &call, nullptr) != occlSuccess)
    return shape.text() + ": " + lastError("occlCall");
  const void *got = call.recvBuffer;
  return want.empty() || std::memcmp(want.data(), got, want.size()) == 0
             ? ""
             : shape.text() + (inPlace ? ", in place" : "") + ": wrong";
}

class KindsOf : public ::testing::TestWithParam<uint32_t> {};

/// Every kind, with counts up to 2000 of which no run leaves out the same.
TEST_P(KindsOf, AllCountsInThreads) {
  const uint32_t n = GetParam();
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  Ranks ranks(n);
  ranks.run([&](uint32_t r) {
    std::mt19937_64 random(seed);
    for (uint64_t count = 0; count <= 2000; count += 1 + random() % (2 * n * kSlowness))
      for (const Kind &kind : kKinds) {
        Shape shape = draw(random, n, count);
        shape.kind = kind;
        shape.root = hasRoot(kind) ? static_cast<uint32_t>(random() % n) : 0;
        ASSERT_EQ(callOne(ranks[r], n, r, shape, count, random() % 2), "");
      }
  });
}

TEST_P(KindsOf, RandomCallsInProcesses) {
  const uint32_t n = GetParam();
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  inProcesses(n, "kinds", [&](occlComm_t comm, uint32_t rank) {
    std::mt19937_64 random(seed);
    std::string wrong;
    for (uint32_t i = 0; i < 300 / kSlowness && wrong.empty(); ++i) {
      const uint64_t most = i % 10 == 0 ? 100000 : 2000;
      const Shape shape = draw(random, n, random() % most);
      wrong = callOne(comm, n, rank, shape, i, random() % 2);
    }
    return wrong;
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, KindsOf, ::testing::Range(1u, 9u));

/// More ranks than processors, with plans that were made for this number of them.
class KindsOfMany : public ::testing::TestWithParam<uint32_t> {};

TEST_P(KindsOfMany, RandomCallsInThreads) {
  const uint32_t n = GetParam();
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  Ranks ranks(n);
  ranks.run([&](uint32_t r) {
    std::mt19937_64 random(seed);
    for (uint64_t most : {200, 2000, 20000})
      for (const Kind &kind : kKinds) {
        Shape shape = draw(random, n, random() % (most / kSlowness));
        shape.kind = kind;
        shape.root = hasRoot(kind) ? static_cast<uint32_t>(random() % n) : 0;
        ASSERT_EQ(callOne(ranks[r], n, r, shape, most, random() % 2), "");
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, KindsOfMany, ::testing::Values(9u, 13u, 16u, 32u));

TEST(Kinds, MoreRanksThanThereArePlansForIsRefused) {
  Ranks ranks(33);
  float mine = 1;
  EXPECT_EQ(occlAllReduce(&mine, &mine, 1, occlFloat32, occlSum, ranks[0], nullptr),
            occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("plans for 1 to 32 ranks"), std::string::npos)
      << occlGetLastError();
}

TEST(Kinds, InvalidArgumentsAreRefused) {
  Ranks ranks(2);
  float buffer[4] = {};
  EXPECT_EQ(occlBroadcast(buffer, buffer, 4, occlFloat32, 2, ranks[0], nullptr),
            occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("root is 2"), std::string::npos);
  ranks.run([&](uint32_t r) {
    float mine[4] = {1, 2, 3, 4};
    EXPECT_EQ(occlAllReduce(mine, mine, 4, occlFloat32, occlSum, ranks[r], nullptr), occlSuccess);
    EXPECT_EQ(mine[3], 8);
  });
}

} // namespace
} // namespace occl::communicator::testing
