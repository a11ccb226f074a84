// What a tool of NVTX sees of calls of NCCL's interface: those, and in them those of OCCL's that
// execute them.
#include "nccl/testing/ranks.h"
#include "test/nvtx/recorded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace occl::nvtx_test {
namespace {

/// Of a rank: categories are numbers that depend on the order in which ranks connect.
uint64_t numberOf(const std::vector<std::string> &seen, int rank, const std::string &call) {
  const std::string end = ", rank " + std::to_string(rank) + " of 2 | " + call;
  return static_cast<uint64_t>(std::ranges::count_if(seen, [&](const std::string &range) {
    return range.starts_with("OCCL | ncclComm ") && range.ends_with(end);
  }));
}

TEST(NcclRanges, OfCollectivesTransfersAndGroups) {
  const Tool tool;
  nccl::testing::Ranks ranks(2);
  nccl::testing::eachRank(2, [&](int rank) { // before it is connected a communicator has no ranges
    float one = 1;
    EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclFloat32, ncclSum, ranks[rank], ranks.stream(rank)),
              ncclSuccess);
    ranks.synchronize(rank);
  });
  tool.take();
  nccl::testing::eachRank(2, [&](int rank) {
    std::vector<float> data(1000, 1), received(1000);
    cudaStream_t stream = ranks.stream(rank);
    EXPECT_EQ(
        ncclAllReduce(data.data(), data.data(), 1000, ncclFloat32, ncclSum, ranks[rank], stream),
        ncclSuccess);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(data.data(), 500, ncclFloat32, 1 - rank, ranks[rank], stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(received.data(), 500, ncclFloat32, 1 - rank, ranks[rank], stream),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(tool.open(), 0) << "a range has no end";
    ranks.synchronize(rank);
  });
  const std::vector<std::string> seen = tool.take();
  std::string all;
  for (const std::string &range : seen)
    all += range + "\n";
  for (int rank = 0; rank < 2; ++rank)
    for (const char *call :
         {"ncclAllReduce | 4000", "ncclSend | 2000", "ncclRecv | 2000", "ncclGroupEnd | 2000"})
      EXPECT_EQ(numberOf(seen, rank, call), 1u) << call << " among\n" << all;
  EXPECT_EQ(std::ranges::count_if(seen,
                                  [](const std::string &range) {
                                    return range.starts_with("OCCL | communicator ") &&
                                           range.ends_with("occlAllReduce | 4000");
                                  }),
            2)
      << all;
}

} // namespace
} // namespace occl::nvtx_test
