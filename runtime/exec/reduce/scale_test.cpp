// The scale of an element, which devices use, against the loops of hosts.
#include "runtime/exec/reduce/scale.h"

#include "runtime/exec/conformance/reference.h"
#include "runtime/exec/reduce/fold_host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace occl::interpreter {
namespace {

constexpr uint64_t kElements = 1000;

/// From tiny to the largest that a type has, of both signs.
conformance::Numbers drawn(DataType type, uint64_t seed) {
  conformance::Numbers numbers;
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < kElements; ++i) {
    numbers.integers.push_back(static_cast<int64_t>(random()));
    numbers.floats.push_back(std::ldexp(std::uniform_real_distribution(-1.0, 1.0)(random),
                                        std::uniform_int_distribution(-20, 128)(random)));
  }
  (isFloat(type) ? numbers.integers.clear() : numbers.floats.clear());
  return numbers;
}

/// Each element by itself.
struct OneByOne {
  const char *from;
  char *to;
  const char *factor;
  uint64_t divisor;

  template <class Element, class> void operator()() const {
    using Storage = typename Element::Storage;
    Storage by;
    std::memcpy(&by, factor, sizeof by);
    const ElementScale<Element> scale = {Element::load(by), divisor};
    for (uint64_t i = 0; i < kElements; ++i) {
      Storage element;
      std::memcpy(&element, from + i * sizeof element, sizeof element);
      element = scale.of(element);
      std::memcpy(to + i * sizeof element, &element, sizeof element);
    }
  }
};

TEST(Scale, IsThatOfHosts) {
  for (unsigned t = 0; t < kNumDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    const std::vector<char> from = conformance::encode(drawn(type, t), type);
    const std::vector<char> factor = conformance::encode(
        isFloat(type) ? conformance::Numbers{{-1.75}, {}} : conformance::Numbers{{}, {-77}}, type);
    for (uint64_t divisor : {1, 3, 8}) {
      if (divisor != 1 && !isFloat(type))
        continue;
      std::vector<char> right(from.size()), found(from.size());
      scaleElements(type, {divisor == 1 ? factor.data() : nullptr, divisor}, right.data(),
                    from.data(), kElements);
      dispatchFold(type, ReduceOp::Sum,
                   OneByOne{from.data(), found.data(), factor.data(), divisor});
      EXPECT_EQ(found, right) << nameOf(type) << " divided by " << divisor;
    }
  }
}

} // namespace
} // namespace occl::interpreter
