#include "tools/demo/gradients.h"

#include <gtest/gtest.h>
#include <vector>

namespace occl::demo {
namespace {

constexpr uint32_t kElements = 5000;

/// The sum of the given ranks' gradients, added up one by one.
std::vector<float> sumOf(const std::vector<uint32_t> &ranks, uint32_t iteration, uint32_t tensor) {
  Gradients gradients(8);
  std::vector<float> sum(kElements), one(kElements);
  for (uint32_t rank : ranks) {
    gradients.fill(one, rank, iteration, tensor);
    for (uint32_t i = 0; i < kElements; ++i)
      sum[i] += one[i];
  }
  return sum;
}

TEST(Gradients, acceptTheSumOfAllRanksInAnyOrder) {
  EXPECT_EQ(Gradients(8).countWrong(sumOf({5, 0, 7, 2, 1, 6, 3, 4}, 3, 160), 3, 160), 0u);
}

TEST(Gradients, noticeMissingDoubledAndUntouched) {
  Gradients gradients(8);
  EXPECT_EQ(gradients.countWrong(sumOf({0, 1, 2, 3, 4, 5, 6}, 0, 0), 0, 0), kElements);
  EXPECT_EQ(gradients.countWrong(sumOf({0, 0, 1, 2, 3, 4, 5, 6, 7}, 0, 0), 0, 0), kElements);
  EXPECT_EQ(gradients.countWrong(sumOf({1, 1, 2, 3, 4, 5, 6, 7}, 0, 0), 0, 0), kElements);
  EXPECT_EQ(gradients.countWrong(std::vector<float>(kElements), 0, 0), kElements);
}

TEST(Gradients, noticeOneWrongElement) {
  auto sum = sumOf({0, 1, 2, 3, 4, 5, 6, 7}, 1, 2);
  sum[4321] += 1;
  EXPECT_EQ(Gradients(8).countWrong(sum, 1, 2), 1u);
}

TEST(Gradients, noticeAnotherTensorIterationOrPlace) {
  auto sum = sumOf({0, 1, 2, 3, 4, 5, 6, 7}, 1, 2);
  Gradients gradients(8);
  EXPECT_GT(gradients.countWrong(sum, 1, 3), kElements / 2);
  EXPECT_GT(gradients.countWrong(sum, 2, 2), kElements / 2);
  std::vector<float> shifted(sum.begin() + 1, sum.end());
  EXPECT_GT(gradients.countWrong(shifted, 1, 2), kElements / 2);
}

} // namespace
} // namespace occl::demo
