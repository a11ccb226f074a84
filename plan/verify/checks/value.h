// What a chunk holds, in the symbolic execution: which contributions it is the sum of, as two sums
// modulo 2^61 - 1 of keys that nobody who writes a plan can know. Two different multisets of
// contributions have equal sums with probability below 2^-60 each; only the number of contributions
// is exact (it tells a sum that wrapped around from the right one).
#pragma once

#include "plan/model/plan.h"
#include "support/mix.h"

#include <cstdint>

namespace occl::plan::verify {

/// Trivial, and all zero bits mean "as at entry", so that memory for it can come from calloc.
struct Value {
  uint64_t sums[2];
  uint32_t numContributions; // saturates
  uint32_t extent : 31;
  uint32_t isFinal : 1; // passed a reduction that was marked final
  /// What it was made by: 1 + the number of the result (see Symbolic), or 0 at entry.
  uint32_t origin;
  uint32_t isWritten;
};

inline constexpr uint64_t kModulus = (uint64_t{1} << 61) - 1;

constexpr uint64_t addModulo(uint64_t a, uint64_t b) {
  uint64_t sum = a + b;
  return sum >= kModulus ? sum - kModulus : sum;
}

/// Adds the contributions of `other` to `value`.
constexpr void accumulate(Value &value, const Value &other) {
  for (int i = 0; i < 2; ++i)
    value.sums[i] = addModulo(value.sums[i], other.sums[i]);
  uint64_t number = uint64_t{value.numContributions} + other.numContributions;
  value.numContributions = number > ~0u ? ~0u : static_cast<uint32_t>(number);
}

/// Random keys of contributions, fresh for each.
class Keys {
public:
  Keys();

  Value of(Contribution contribution) const {
    uint64_t name = uint64_t{contribution.rank} << 32 | contribution.chunk;
    Value value = {};
    for (int i = 0; i < 2; ++i)
      value.sums[i] =
          support::mix(support::mix(name ^ secrets[2 * i]) + secrets[2 * i + 1]) % kModulus;
    value.numContributions = 1;
    return value;
  }

private:
  uint64_t secrets[4];
};

} // namespace occl::plan::verify
