// The programs that docs/partitioned.md shows, as they stand there.
#include "runtime/api/occl_partitioned.hpp"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <algorithm>
#include <atomic>

namespace occl::communicator::testing {
namespace {

std::atomic<uint64_t> wrong{0}, used{0};

void compute(float *values, uint64_t count, int epoch) {
  std::fill(values, values + count, static_cast<float>(epoch + 1));
}
void use(const float *values, uint64_t count, int epoch) {
  wrong += static_cast<uint64_t>(std::count_if(
      values, values + count, [&](float value) { return value != static_cast<float>(epoch + 1); }));
  used += count;
}

std::atomic<uint64_t> applied{0};

/// Of three ranks.
void apply(const float *values, uint64_t count, int epoch) {
  const auto sum = static_cast<float>(3 * (epoch + 1));
  wrong += static_cast<uint64_t>(
      std::count_if(values, values + count, [&](float value) { return value != sum; }));
  applied += count;
}

#include "runtime/api/tests/partitioned/docs_example.inc"
#include "runtime/api/tests/partitioned/docs_example_cpp.inc"

TEST(PartitionedExample, Works) {
  const Ranks ranks(2);
  constexpr uint64_t kElements = 64 * 48;
  constexpr int kEpochs = 5;
  ranks.run([&](uint32_t r) {
    std::vector<float> field(kElements);
    if (r == 0)
      produce(ranks[0], field.data(), kElements / 64, kEpochs);
    else
      consume(ranks[1], field.data(), kElements / 48, kEpochs);
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(used, kElements * kEpochs);
}

TEST(PartitionedExample, WorksInCpp) {
  std::vector<Communicator> ranks = Communicator::all(2);
  constexpr uint64_t kElements = 64 * 48;
  constexpr int kEpochs = 3;
  used = 0;
  std::thread sender([&] {
    std::vector<float> field(kElements);
    produce(ranks[0], field, kEpochs);
  });
  std::vector<float> field(kElements);
  consume(ranks[1].handle(), field.data(), kElements / 48, kEpochs);
  sender.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(used, kElements * kEpochs);
}

TEST(PartitionedExample, CollectivesWork) {
  const Ranks ranks(3);
  constexpr uint64_t kCount = 64 * 100;
  constexpr int kEpochs = 5;
  applied = 0;
  ranks.run([&](uint32_t r) {
    std::vector<float> gradients(kCount), sums(kCount);
    train(ranks[r], gradients.data(), sums.data(), kCount, kEpochs);
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(applied, 3 * kCount * kEpochs);
}

} // namespace
} // namespace occl::communicator::testing
