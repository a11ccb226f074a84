#include "runtime/cuda/kernels/early_start.h"

#include <gtest/gtest.h>

namespace occl::cuda {
namespace {

TEST(EarlyStart, TwoKernelsInEachStreamFit) {
  for (uint32_t multiprocessors : {1u, 78u, 114u, 132u})
    for (uint32_t streams : {1u, 2u, 3u, 7u, 8u, 32u, 1024u})
      EXPECT_LE(2ull * streams * mostEarlyThreads(multiprocessors, streams, 1024),
                uint64_t{multiprocessors} * kThreads);
}

TEST(EarlyStart, PlansOfOneStreamStartEarlyWithinTheirNeeds) {
  EXPECT_GE(mostEarlyThreads(132, 1, kMostEarlyBytes), 64 * kThreads);
  EXPECT_GE(mostEarlyThreads(132, 2, 1024), 32 * kThreads);
  EXPECT_EQ(mostEarlyThreads(132, kDefaultStreams, 1024), 4224);
}

TEST(EarlyStart, NothingLargeDoes) {
  EXPECT_EQ(mostEarlyThreads(132, 1, kMostEarlyBytes + 1), 0u);
  EXPECT_EQ(mostEarlyThreads(132, kDefaultStreams, 1ull << 40), 0u);
}

} // namespace
} // namespace occl::cuda
