// Every collective, type and operation, by ranks that are threads.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace occl::nccl;
using namespace occl::nccl::testing;

namespace {

/// Element i of what a rank gives: small, so that sums are exact in all types.
double given(int rank, size_t i) {
  return static_cast<double>((static_cast<size_t>(rank) + i) % 2 + 1);
}

std::vector<char> bufferOf(ncclDataType_t type, size_t count, int rank) {
  std::vector<char> buffer(count * sizeOf(type));
  for (size_t i = 0; i < count; ++i)
    store(type, buffer.data() + i * sizeOf(type), given(rank, i));
  return buffer;
}

double at(ncclDataType_t type, const std::vector<char> &buffer, size_t i) {
  return load(type, buffer.data() + i * sizeOf(type));
}

double reduced(ncclRedOp_t op, int numRanks, size_t i) {
  double sum = 0, product = 1, least = 100, most = 0;
  for (int rank = 0; rank < numRanks; ++rank) {
    const double value = given(rank, i);
    sum += value;
    product *= value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  switch (op) {
  case ncclProd:
    return product;
  case ncclMax:
    return most;
  case ncclMin:
    return least;
  case ncclAvg:
    return sum / numRanks;
  default:
    return sum;
  }
}

bool isInteger(ncclDataType_t type) { return type <= ncclUint64; }

class Types : public ::testing::TestWithParam<int> {};

} // namespace

TEST_P(Types, AllOperations) {
  const auto type = static_cast<ncclDataType_t>(GetParam());
  constexpr size_t kCount = 37;
  Ranks ranks(4);
  eachRank(4, [&](int rank) {
    for (int op = ncclSum; op < ncclNumOps; ++op) {
      const auto mine = bufferOf(type, kCount, rank);
      std::vector<char> all(mine.size());
      ASSERT_EQ(ncclAllReduce(mine.data(), all.data(), kCount, type, static_cast<ncclRedOp_t>(op),
                              ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < kCount; ++i) {
        double right = reduced(static_cast<ncclRedOp_t>(op), 4, i);
        if (op == ncclAvg && isInteger(type))
          right = static_cast<int>(right);
        ASSERT_EQ(at(type, all, i), right) << "type " << type << ", operation " << op;
      }
    }
  });
}

TEST_P(Types, PreMultipliedSumsDifferByRank) {
  const auto type = static_cast<ncclDataType_t>(GetParam());
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    for (ncclScalarResidence_t residence : {ncclScalarHostImmediate, ncclScalarDevice}) {
      char scalar[8] = {};
      store(type, scalar, rank + 1);
      auto mine = bufferOf(type, 5, 0);
      ncclRedOp_t op = ncclSum;
      ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, scalar, type, residence, ranks[rank]), ncclSuccess);
      EXPECT_GE(op, ncclNumOps);
      if (residence == ncclScalarHostImmediate)
        std::memset(scalar, 0x7f, sizeof(scalar)); // it was read
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(
          ncclAllReduce(mine.data(), mine.data(), 5, type, op, ranks[rank], ranks.stream(rank)),
          ncclSuccess);
      ASSERT_EQ(ncclRedOpDestroy(op, ranks[rank]), ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < 5; ++i)
        ASSERT_EQ(at(type, mine, i), given(0, i) * 6) << "type " << type;
    }
  });
}

TEST_P(Types, AllToAllInPlace) {
  const auto type = static_cast<ncclDataType_t>(GetParam());
  Ranks ranks(3);
  eachRank(3, [&](int rank) {
    const auto value = [](int of, size_t i) {
      return static_cast<double>(1 + (3 * static_cast<size_t>(of) + i) % 7);
    };
    for (const size_t part : {1, 37, 10'007}) {
      std::vector<char> mine(3 * part * sizeOf(type));
      for (size_t i = 0; i < 3 * part; ++i)
        store(type, mine.data() + i * sizeOf(type), value(rank, i));
      ASSERT_EQ(ncclAlltoAll(mine.data(), mine.data(), part, type, ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < 3 * part; ++i)
        ASSERT_EQ(at(type, mine, i),
                  value(static_cast<int>(i / part), static_cast<size_t>(rank) * part + i % part))
            << "type " << type << ", parts of " << part;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Types, ::testing::Range(0, static_cast<int>(ncclNumTypes)));

class Sizes : public ::testing::TestWithParam<int> {};

TEST_P(Sizes, Broadcast) {
  Ranks ranks(GetParam());
  eachRank(ranks.size(), [&](int rank) {
    for (int root = 0; root < ranks.size(); ++root) {
      auto mine = bufferOf(ncclInt32, 100, rank), to = mine;
      ASSERT_EQ(ncclBroadcast(rank == root ? mine.data() : nullptr, to.data(), 100, ncclInt32, root,
                              ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ASSERT_EQ(ncclBcast(mine.data(), 100, ncclInt32, root, ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      EXPECT_EQ(to, bufferOf(ncclInt32, 100, root));
      EXPECT_EQ(mine, to);
    }
  });
}

TEST_P(Sizes, ReduceNeedsNoReceiveBufferBesideTheRoot) {
  Ranks ranks(GetParam());
  eachRank(ranks.size(), [&](int rank) {
    for (int root = 0; root < ranks.size(); ++root) {
      auto mine = bufferOf(ncclInt64, 9, rank), all = mine;
      ASSERT_EQ(ncclReduce(mine.data(), rank == root ? all.data() : nullptr, 9, ncclInt64, ncclSum,
                           root, ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; rank == root && i < 9; ++i)
        EXPECT_EQ(at(ncclInt64, all, i), reduced(ncclSum, ranks.size(), i));
    }
  });
}

TEST_P(Sizes, AllGatherAndReduceScatterAlsoInPlace) {
  const auto numRanks = static_cast<size_t>(GetParam());
  constexpr size_t kPart = 6;
  Ranks ranks(GetParam());
  eachRank(ranks.size(), [&](int rank) {
    const size_t offset = static_cast<size_t>(rank) * kPart * 4;
    for (bool inPlace : {false, true}) {
      auto mine = bufferOf(ncclUint32, kPart, rank);
      std::vector<char> all(mine.size() * numRanks);
      std::memcpy(all.data() + offset, mine.data(), mine.size());
      ASSERT_EQ(ncclAllGather(inPlace ? all.data() + offset : mine.data(), all.data(), kPart,
                              ncclUint32, ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < kPart * numRanks; ++i)
        ASSERT_EQ(at(ncclUint32, all, i), given(static_cast<int>(i / kPart), i % kPart));
      ASSERT_EQ(ncclReduceScatter(all.data(), inPlace ? all.data() + offset : mine.data(), kPart,
                                  ncclUint32, ncclSum, ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < kPart; ++i)
        ASSERT_EQ(inPlace ? load(ncclUint32, all.data() + offset + i * 4) : at(ncclUint32, mine, i),
                  given(rank, i) * static_cast<double>(numRanks));
    }
  });
}

TEST_P(Sizes, AllToAllGatherAndScatter) {
  const auto numRanks = static_cast<size_t>(GetParam());
  constexpr size_t kPart = 3;
  Ranks ranks(GetParam());
  eachRank(ranks.size(), [&](int rank) {
    auto value = [&](int of, size_t i) { return of * 100 + static_cast<int>(i); };
    std::vector<int> mine(kPart * numRanks), all(mine.size(), -1), back(kPart, -1);
    for (size_t i = 0; i < mine.size(); ++i)
      mine[i] = value(rank, i);
    ASSERT_EQ(
        ncclAlltoAll(mine.data(), all.data(), kPart, ncclInt32, ranks[rank], ranks.stream(rank)),
        ncclSuccess);
    ranks.synchronize(rank);
    for (size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i],
                value(static_cast<int>(i / kPart), static_cast<size_t>(rank) * kPart + i % kPart));
    for (int root = 0; root < ranks.size(); ++root) {
      const bool isRoot = rank == root;
      ASSERT_EQ(ncclGather(mine.data(), isRoot ? all.data() : nullptr, kPart, ncclInt32, root,
                           ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ASSERT_EQ(ncclScatter(isRoot ? all.data() : nullptr, back.data(), kPart, ncclInt32, root,
                            ranks[rank], ranks.stream(rank)),
                ncclSuccess);
      ranks.synchronize(rank);
      for (size_t i = 0; i < kPart; ++i)
        ASSERT_EQ(back[i], value(rank, i));
      for (size_t i = 0; isRoot && i < all.size(); ++i)
        ASSERT_EQ(all[i], value(static_cast<int>(i / kPart), i % kPart));
    }
  });
}

/// Twice in a group, so all parts are back where they were, and once more.
TEST_P(Sizes, AllToAllsInPlaceInAGroup) {
  const auto numRanks = static_cast<size_t>(GetParam());
  constexpr size_t kPart = 1003;
  Ranks ranks(GetParam());
  eachRank(ranks.size(), [&](int rank) {
    auto value = [&](size_t of, size_t i) { return static_cast<int>(of * 100'000 + i); };
    std::vector<int> mine(kPart * numRanks);
    const auto exchange = [&] {
      return ncclAlltoAll(mine.data(), mine.data(), kPart, ncclInt32, ranks[rank],
                          ranks.stream(rank));
    };
    const auto self = static_cast<size_t>(rank);
    for (size_t i = 0; i < mine.size(); ++i)
      mine[i] = value(self, i);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(exchange(), ncclSuccess);
    ASSERT_EQ(exchange(), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
    ranks.synchronize(rank);
    for (size_t i = 0; i < mine.size(); ++i)
      ASSERT_EQ(mine[i], value(self, i));
    ASSERT_EQ(exchange(), ncclSuccess);
    ranks.synchronize(rank);
    for (size_t i = 0; i < mine.size(); ++i)
      ASSERT_EQ(mine[i], value(i / kPart, self * kPart + i % kPart));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sizes, ::testing::Values(1, 2, 3, 5));

TEST(Collectives, CountZeroIsNothingAndPairsWithNothing) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, ranks[0], ranks.stream(0)),
                ncclSuccess);
    }
    EXPECT_EQ(allReduceOnce(ranks[rank], ranks.stream(rank)), "");
  });
}

TEST(Collectives, BuffersNeedNoAlignment) {
  Ranks ranks(2);
  eachRank(2, [&](int rank) {
    std::vector<char> buffer(1 + 4 * 1000);
    for (size_t i = 0; i < 1000; ++i)
      store(ncclFloat32, buffer.data() + 1 + i * 4, given(rank, i));
    ASSERT_EQ(ncclAllReduce(buffer.data() + 1, buffer.data() + 1, 1000, ncclFloat32, ncclSum,
                            ranks[rank], ranks.stream(rank)),
              ncclSuccess);
    ranks.synchronize(rank);
    for (size_t i = 0; i < 1000; ++i)
      ASSERT_EQ(load(ncclFloat32, buffer.data() + 1 + i * 4), 3);
  });
}

TEST(Collectives, RefuseWhatIsWrongAtOnce) {
  Ranks ranks(2);
  const ncclComm_t comm = ranks[0];
  float x = 0;
  auto reduce = [&](const void *send, void *recv, int type, int op, int root, ncclComm_t with,
                    cudaStream_t stream = nullptr) {
    return ncclReduce(send, recv, 1, static_cast<ncclDataType_t>(type),
                      static_cast<ncclRedOp_t>(op), root, with, stream);
  };
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclSum, 0, nullptr), ncclInvalidArgument);
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclReduce: comm"), std::string::npos);
  EXPECT_EQ(reduce(&x, &x, ncclNumTypes, ncclSum, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, -1, ncclSum, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclNumOps, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, -1, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclSum, 2, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclSum, -1, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(nullptr, &x, ncclFloat32, ncclSum, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, nullptr, ncclFloat32, ncclSum, 0, comm), ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclSum, 0, comm, reinterpret_cast<cudaStream_t>(&x)),
            ncclInvalidArgument);
  EXPECT_EQ(reduce(&x, &x, ncclFloat32, ncclSum, 0, reinterpret_cast<ncclComm_t>(&x)),
            ncclInvalidArgument);
  for (const bool isSend : {true, false}) {
    const void *from = isSend ? nullptr : &x;
    void *to = isSend ? &x : nullptr;
    const auto kFloat = ncclFloat32;
    EXPECT_EQ(ncclAllReduce(from, to, 1, kFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclReduceScatter(from, to, 1, kFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclAllGather(from, to, 1, kFloat, comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclAlltoAll(from, to, 1, kFloat, comm, nullptr), ncclInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("buff must not be NULL"),
              std::string::npos);
  }
  eachRank(2, [&](int rank) { EXPECT_EQ(allReduceOnce(ranks[rank]), ""); }); // nothing has happened
}

TEST(Operations, AreOfACommunicatorAndAType) {
  Ranks ranks(2);
  float x = 2;
  ncclRedOp_t op = ncclSum;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(nullptr, &x, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &x, ncclNumTypes, ncclScalarHostImmediate, ranks[0]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, &x, ncclFloat32, static_cast<ncclScalarResidence_t>(2),
                                     ranks[0]),
            ncclInvalidArgument);
  ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &x, ncclFloat32, ncclScalarHostImmediate, ranks[0]),
            ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat32, op, ranks[1], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, op, ranks[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, ranks[1]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(ncclSum, ranks[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclRedOpDestroy(op, ranks[0]), ncclSuccess);
  EXPECT_EQ(ncclRedOpDestroy(op, ranks[0]), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat32, op, ranks[0], nullptr), ncclInvalidArgument);
}
