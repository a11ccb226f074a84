// The programs that docs/partitioned.md shows, as they stand there.
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

#include "runtime/api/tests/partitioned/docs_example.inc"

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

} // namespace
} // namespace occl::communicator::testing
