#include "plan/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace occl::plan {
namespace {

/// The unit of each element, by counting.
std::vector<uint64_t> unitsByCounting(const UniformCut &cut) {
  std::vector<uint64_t> units;
  for (uint64_t unit = 0; units.size() < cut.total; ++unit)
    for (uint64_t i = 0; i < cut.unit && units.size() < cut.total; ++i)
      units.push_back(unit);
  return units;
}

/// For each unit of one cut which of the other overlap it, against what the elements say.
void expectAsCounted(const UniformCut &of, const UniformCut &by) {
  ASSERT_EQ(of.total, by.total);
  const std::vector<uint64_t> ofUnits = unitsByCounting(of), byUnits = unitsByCounting(by);
  ASSERT_EQ(of.numUnits(), of.total == 0 ? 0 : ofUnits.back() + 1);
  uint64_t element = 0;
  for (uint64_t unit = 0; unit < of.numUnits(); ++unit) {
    const uint64_t begin = element;
    while (element < of.total && ofUnits[element] == unit)
      ++element;
    ASSERT_EQ(of.elementsOf(unit), (Range{begin, element}));
    ASSERT_EQ(by.covering({begin, element}), (Range{byUnits[begin], byUnits[element - 1] + 1}))
        << of.unit << " and " << by.unit << " of " << of.total << ", unit " << unit;
  }
}

/// P partitions on one side and Q on the other, of `times` elements where both begin.
void expectExact(uint64_t p, uint64_t q, uint64_t times) {
  const uint64_t total = p * q * times;
  expectAsCounted({total, q * times}, {total, p * times});
  expectAsCounted({total, p * times}, {total, q * times});
}

TEST(Cover, AllOf64) {
  for (uint64_t p = 1; p <= 64; ++p)
    for (uint64_t q = 1; q <= 64; ++q)
      expectExact(p, q, 1);
}

TEST(Cover, CountsThatDoNotDivideEachOther) {
  for (auto [p, q] : {std::pair<uint64_t, uint64_t>{33, 17}, {17, 33}, {8192, 512}, {512, 8192}})
    for (uint64_t times : {1, 3})
      expectExact(p, q, p * q > 1000000 ? 1 : times);
}

/// Partitions in messages of `group`, the last of which may have fewer.
TEST(Cover, MessagesThatEndAtSendersPartitions) {
  for (uint64_t p : {1, 2, 5, 16, 33, 64})
    for (uint64_t q : {1, 3, 17, 33, 64})
      for (uint64_t group = 1; group <= p; ++group) {
        const UniformCut messages{p * q, group * q}, received{p * q, p}, sent{p * q, q};
        ASSERT_EQ(messages.numUnits(), (p + group - 1) / group);
        expectAsCounted(received, messages);
        expectAsCounted(messages, sent);
        for (uint64_t m = 0; m < messages.numUnits(); ++m)
          ASSERT_EQ(sent.covering(messages.elementsOf(m)),
                    (Range{m * group, std::min(p, (m + 1) * group)}));
      }
}

/// Any two cuts of any length.
TEST(Cover, LastUnitsThatAreShorter) {
  for (uint64_t total = 0; total <= 40; ++total)
    for (uint64_t a = 1; a <= 41; ++a)
      for (uint64_t b = 1; b <= 41; ++b)
        expectAsCounted({total, a}, {total, b});
}

TEST(Cover, Nothing) {
  EXPECT_EQ((UniformCut{0, 0}.numUnits()), 0u);
  EXPECT_EQ((UniformCut{0, 5}.numUnits()), 0u);
  EXPECT_TRUE((UniformCut{0, 0}.covering({0, 0}).isEmpty()));
  EXPECT_TRUE((UniformCut{10, 3}.covering({5, 5}).isEmpty()));
  EXPECT_FALSE((Range{2, 2}.overlaps({0, 4})));
  EXPECT_FALSE((Range{0, 2}.overlaps({2, 4})));
  EXPECT_TRUE((Range{0, 3}.overlaps({2, 4})));
}

/// Where a product or a sum of 64 bits would wrap around.
TEST(Cover, UpToTheLastElementOf64Bits) {
  constexpr uint64_t kAll = ~uint64_t{0};
  constexpr UniformCut halves{kAll, kAll / 2}, threes{kAll, 3}, whole{kAll, kAll};
  EXPECT_EQ(halves.numUnits(), 3u); // the last is one element
  EXPECT_EQ(halves.elementsOf(2), (Range{kAll - 1, kAll}));
  EXPECT_EQ(threes.numUnits(), kAll / 3);
  EXPECT_EQ(threes.covering(halves.elementsOf(2)), (Range{kAll / 3 - 1, kAll / 3}));
  EXPECT_EQ(threes.covering(halves.elementsOf(1)), (Range{kAll / 2 / 3, kAll / 3}));
  EXPECT_EQ(whole.numUnits(), 1u);
  EXPECT_EQ(whole.covering({kAll - 1, kAll}), (Range{0, 1}));
  constexpr UniformCut many{uint64_t{1} << 58, uint64_t{1} << 38};
  EXPECT_EQ(many.covering({(uint64_t{1} << 58) - 1, uint64_t{1} << 58}),
            (Range{(1 << 20) - 1, 1 << 20}));
}

} // namespace
} // namespace occl::plan
